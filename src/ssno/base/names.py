"""Names that come from files (of fields, axes, datasets, runs), made safe to show and to use.

A file may call a field `../../x`, `u$^$` or something that clears the screen. Such names pass through here wherever
they leave the program: `as_file_name` for files, `printable` for lines of text. The terminal (`ssno.base.terminal`) and
figures (`ssno.plots.style`) call `printable` for everything they show; HTML is escaped by `ssno.report.markup`.
"""

import hashlib
import re

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
