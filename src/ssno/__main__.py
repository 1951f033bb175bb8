"""`python -m ssno` is the `ssno` command, so that `torchrun -m ssno train ...` works."""

from ssno.cli import main

if __name__ == "__main__":
    main()
