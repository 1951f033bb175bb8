"""Rows on disk, and whether anything became slower since the stored ones.

CSV, one row per contestant of an entry, each with date, commit, versions and hardware, so that rows of several
machines and days can live in one file. Two runs are compared by their ratios to the reference, which do not depend
on how fast the machine is.
"""

import csv
import datetime
import io
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from benchmarks.measure import Row
from ssno.base.atomic_write import write_whole
from ssno.base.provenance import provenance

TOLERANCE = 1.15
"""A ratio counts as worse if it fell by more than this factor and its quartiles do not reach the stored ones."""

Stored = dict[str, Any]


def with_origin(rows: Iterable[Row], *, load: float = 0.0) -> list[Stored]:
    """Rows with when and where they were measured; `load` is how many processes were busy before the run began."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return [{**asdict(row), "date": now, "load": round(load, 1), **provenance()} for row in rows]


def read(path: Path) -> list[Stored]:
    """Stored rows, numbers as numbers; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows: list[Stored] = list(csv.DictReader(file))
    expected = {field.name for field in fields(Row)}
    for row in rows:
        if missing := expected - row.keys():
            raise ValueError(f"{path} has no column {', '.join(sorted(missing))}: it was not written by this harness.")
        for field in fields(Row):
            row[field.name] = _value(row[field.name], str(field.type))
    return rows


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows atomically."""
    rows = list(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue().encode())


def merged(old: Iterable[Stored], new: Iterable[Stored]) -> list[Stored]:
    """The old rows with those of entries measured anew replaced, in the order of the old ones."""
    new = list(new)
    again = {row["entry"] for row in new}
    kept = [row for row in old if row["entry"] not in again]
    return kept + new


def slow_downs(before: Iterable[Stored], after: Iterable[Row]) -> list[str]:
    """A line for every contestant whose ratio to the reference is clearly worse than stored."""
    old = {(row["entry"], row["contestant"], row["reference"]): row for row in before}
    lines = []
    for row in after:
        was = old.get((row.entry, row.contestant, row.reference))
        if was is None or row.contestant == row.reference:
            continue
        if row.ratio_upper < was["ratio_lower"] and row.ratio * TOLERANCE < was["ratio"]:
            lines.append(
                f"slower: {row.entry}, {row.contestant}: {was['ratio']:.2f}x {row.reference} before "
                f"(commit {was['commit'][:10]}), {row.ratio:.2f}x now"
            )
    return lines


def _value(text: str, kind: str) -> Any:
    if text == "":
        return "" if kind == str(str) else None
    if kind == str(str):
        return text
    if "bool" in kind:
        return text == "True"
    return int(text) if kind == str(int) else float(text)
