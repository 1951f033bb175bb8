"""One command with verbs. Each verb is a typed function; tyro derives its flags and help from the signature."""

import sys

import tyro

from ssno.cli import data, demo


def main() -> None:
    """Run the verb named on the command line. A mistake of the caller ends in one line on stderr and code 2."""
    try:
        tyro.extras.subcommand_cli_from_dict(
            {**data.VERBS, "demo": demo.demo},
            prog="ssno",
            description="Learn the solution operator of a time-dependent PDE from trajectories.",
        )
    except (ValueError, TypeError, FileNotFoundError, FileExistsError, PermissionError) as error:
        print(f"ssno: {error}", file=sys.stderr)
        raise SystemExit(2) from error
