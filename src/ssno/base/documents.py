"""JSON on disk, read and written in one way.

    {"format": "ssno-model", "version": 1, ...}          `write_document`, `read_document`
    {"kind": "epoch", "step": 128, ...}                  `write_json`, `read_json`, or text: `to_text`, `from_text`

Files come from anywhere, so reading takes regular files only (no pipes, no devices), of a stated size and depth, and
runs nothing. JSON has no infinity: a number that is not finite is written as null and read as None, also where an older
file spells it `Infinity`, `NaN` or 1e999. Whatever is wrong ends in `DocumentError`, which names the file and a remedy.
"""

import json
import math
import os
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ssno.base.whole import write_whole

LARGEST = 64 * 2**20
"""Bytes of a document unless its reader says otherwise."""
DEEPEST = 64
"""Lists and objects inside each other."""


class DocumentError(ValueError):
    """A file is no readable document of the kind that was asked for; the message says why and what to do."""


def read_regular(path: Path, *, limit: int = LARGEST) -> bytes:
    """The bytes of a regular file of at most `limit` bytes; pipes and devices are refused instead of waited for."""
    odd = f"{path} is not a regular file (a folder, a pipe or a device). Give an ordinary file."
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise DocumentError(odd)
            if status.st_size > limit:
                raise DocumentError(f"{path} has more than the {limit} bytes that are read of such a file.")
            return file.read(status.st_size)
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise DocumentError(odd) from None


def from_text(text: str | bytes) -> Any:
    """Parse JSON. Raises `ValueError` if it is not valid, or nested too deeply."""
    try:
        value = json.loads(text, parse_constant=lambda _: None, parse_float=_finite)
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} deep") from None
    level, depth = [value], 0
    while level := [inner for outer in level for inner in _inside(outer)]:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} deep")
    return value


def to_text(value: Any, *, indent: int | None = None) -> str:
    """JSON of plain values; numbers that are not finite become null."""
    return json.dumps(_plain(value), indent=indent, allow_nan=False)


def read_json(path: Path, *, remedy: str, limit: int = LARGEST) -> Any:
    """The value in a JSON file. `remedy` is the sentence that tells what to do with a damaged one."""
    try:
        return from_text(read_regular(path, limit=limit))
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(f"{path} is not valid JSON ({error}). {remedy}") from None


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all."""
    write_whole(path, (to_text(value, indent=1) + "\n").encode())


def read_document(path: Path, *, format: str, versions: Collection[int], remedy: str) -> dict[str, Any]:
    """The object in a JSON file that says which format and version it has; both are checked, and stay in it."""
    content = read_json(path, remedy=remedy)
    found = content.get("format") if isinstance(content, dict) else None
    if found != format:
        raise DocumentError(f"{path} does not have the format {format!r}, it has {found!r}. {remedy}")
    if (version := content.get("version")) not in versions:
        known = " and ".join(map(str, versions))
        raise DocumentError(f"{path} has format version {version!r}; this ssno reads version {known}. Upgrade ssno.")
    return content


def write_document(path: Path, content: Mapping[str, Any], *, format: str, version: int) -> None:
    """Write what `read_document` reads, whole or not at all."""
    write_json(path, {"format": format, "version": version, **content})


def number(value: float | int | None) -> float:
    """A number as it was before it was written: what was not finite counts as infinite."""
    return math.inf if value is None else float(value)


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting for somebody to write to the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _inside(value: Any) -> Collection[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
