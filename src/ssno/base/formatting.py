"""How long something takes and how large it is, in words: the same in every command, above all in every dry run.

What a dry run foresees has the same names everywhere, in Python and in JSON: `seconds`, `memory_bytes`, `disk_bytes`.
"""

import hashlib
import math
import re
from pathlib import Path


def duration(seconds: float) -> str:
    """850 ms, 12.3 s, 42 min, 5.1 h."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def byte_size(count: int) -> str:
    """Bytes in units of 1024: 12 KiB, 3.4 MiB, 1.2 GiB."""
    power = next((power for power in range(3) if count < 1000 * 1024**power), 3)
    return f"{count / 1024**power:.3g} {('bytes', 'KiB', 'MiB', 'GiB')[power]}"


def cost_rows(seconds: float, memory_bytes: int, disk_bytes: int) -> list[tuple[str, str]]:
    """What something will take, a pair of words per line of a table."""
    return [("time", duration(seconds)), ("memory", byte_size(memory_bytes)), ("disk", byte_size(disk_bytes))]


def cost_words(seconds: float, memory_bytes: int, disk_bytes: int) -> str:
    """What something will take, in a clause."""
    return f"about {duration(seconds)}, {byte_size(memory_bytes)} of memory, {byte_size(disk_bytes)} on disk"


def number(value: float | int | None) -> str:
    """Three digits that matter; what is not known or not finite says so."""
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.1e}"


# Names that come from files (of fields, axes, datasets, runs), made safe to show and to use.
#
# A file may call a field `../../x`, `u$^$` or something that clears the screen. Such names pass through here wherever
# they leave the program: `as_file_name` for files, `printable` for lines of text. The terminal (`ssno.base.formatting`)
# and figures (`ssno.plots.style`) call `printable` for everything they show; HTML is escaped by `ssno.report.template`.

LONGEST = 60
"""Bytes of a name that a file's name keeps: two of them and some words of ours stay below the 255 of file systems."""


def printable(text: str) -> str:
    """The text with characters that act instead of showing (escapes, reversed writing) spelt as in `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else letter.encode("unicode_escape").decode()
        for letter in text
    )


def as_file_name(name: str) -> str:
    """The name as one part of a file's name: letters, digits and `_.-`, beginning with none of `.-`.

    Names that had to be changed end in a digest of the original, so that different ones stay different.
    """
    kept = re.sub(r"[^\w.-]|\A[.-]|\A\Z", "_", name)
    kept = kept.encode(errors="ignore")[:LONGEST].decode(errors="ignore")
    if kept == name:
        return name
    return f"{kept}-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]}"


def stem(path: Path) -> str:
    """A file's name without its ending; a folder's name may contain dots."""
    return path.name if path.is_dir() else path.stem
