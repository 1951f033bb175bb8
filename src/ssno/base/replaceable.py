"""Whether a file that a user names may be replaced: only by its like, and only if ssno wrote it.

Pages, tables and pictures are made again and again under one name, so an earlier one gives way without a question. Any
other file of that name (data, a config, a paper) is somebody's work and stays.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

ENDS = 2**14
"""Bytes at either end of a file that are looked at."""


@dataclass(frozen=True)
class Kind:
    """What a command writes: its name in words, and what the first or last bytes of every such file match."""

    words: str
    mark: re.Pattern[bytes]


def check_replaceable(path: Path, kind: Kind, *, option: str) -> None:
    """Refuse to replace what is not an earlier file of this kind; `option` named it. A new or empty file is free."""
    if not path.exists():
        return
    if not path.is_file():
        raise FileExistsError(
            f"`{option}` must name a file to write, but {path} is a folder, a pipe or a device. Name a file."
        )
    if path.stat().st_size and not kind.mark.search(_ends(path)):
        raise FileExistsError(
            f"{path} exists and is not {kind.words} that ssno wrote, so `{option}` does not replace it. Choose another "
            "name, or move it away."
        )


def _ends(path: Path) -> bytes:
    with open(path, "rb") as file:
        first = file.read(ENDS)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(len(first), size - ENDS))
        return first + file.read()
