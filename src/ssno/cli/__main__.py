"""`python -m ssno.cli` is the `ssno` command, as `python -m ssno` is."""

from ssno.cli import main

if __name__ == "__main__":
    main()
