"""The `ssno` command. Each verb lives in its own module beside this one; nothing imports this package."""

from ssno.cli.main import main

__all__ = ["main"]
