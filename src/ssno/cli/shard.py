"""Which part of the work a job does, as a word on the command line: `--shard 2/8` in a job array."""

import re


def parse_part(text: str) -> tuple[int, int]:
    """`"2/4"` as (2, 4)."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"`shard` must be i/n with 1 <= i <= n, as 2/4, got {text!r}.")
    return int(match[1]), int(match[2])
