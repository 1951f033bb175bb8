"""`make bench`: measure, check, compare, store.

    python -m benchmarks                     everything, about ten minutes on two idle cores
    python -m benchmarks training-step ks    entries with these words in their names
    python -m benchmarks --list              their names
    python -m benchmarks --replace           and make the new rows the stored ones (benchmarks/baseline.csv)
    python -m benchmarks --table             the stored rows as Markdown
    python -m benchmarks --page docs/design/performance-tables.md    put tables and pictures of the stored rows there

Exit code 1 if an answer was wrong or something became slower than stored. Finer questions have programs of their own:
`benchmarks.cost` (all models), `benchmarks.short_axes` and `benchmarks.long_axes` (which method where).
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import torch
import tyro

from benchmarks.catalogue import catalogue, chosen
from benchmarks.entry import Entry, Unavailable
from benchmarks.figures import draw
from benchmarks.measure import Row, WrongAnswer, measure
from benchmarks.peak import gemm_peak
from benchmarks.rows import merged, read, slow_downs, with_origin, write
from benchmarks.tables import refresh, tables

BASELINE = Path(__file__).parent / "baseline.csv"


def main(
    names: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    *,
    list_names: Annotated[bool, tyro.conf.arg(name="list")] = False,
    table: bool = False,
    page: Path | None = None,
    replace: bool = False,
    out: Path = Path("runs/benchmarks"),
    baseline: Path = BASELINE,
) -> None:
    """Measure entries, compare with the stored rows.

    Args:
        names: words; entries with any of them in their name are measured, all by default.
        list_names: print the names and stop.
        table: print the stored rows as Markdown and stop.
        page: put the stored rows into this page as tables, and pictures into images/ beside its folder; stop.
        replace: put the new rows into the stored ones.
        out: folder for rows.csv with the rows of this run.
        baseline: the stored rows.
    """
    if list_names:
        print("\n".join(entry.name for entry in chosen(catalogue(), names)))
    elif table:
        print(tables(read(baseline)))
    elif page is not None:
        refresh(page, read(baseline))
        draw(read(baseline), page.parent.parent / "images")
    else:
        sys.exit(run(chosen(catalogue(), names), out=out / "rows.csv", baseline=baseline, replace=replace))


def run(entries: Sequence[Entry], *, out: Path, baseline: Path, replace: bool) -> int:
    """Measure entry after entry, keep what is measured; 1 if something is wrong or slower, else 0."""
    load = os.getloadavg()[0]
    for count in sorted({1, torch.get_num_threads()}):
        print(f"sgemm peak, {count} thread{'s' * (count > 1)}: {gemm_peak(threads=count):.0f} GFLOP/s", flush=True)
    rows: list[Row] = []
    complaints: list[str] = []
    for entry in entries:
        try:
            measured = measure(entry)
        except Unavailable as reason:
            print(f"{entry.name}: left out. {reason}", flush=True)
            continue
        except WrongAnswer as error:
            complaints.append(f"wrong: {error}")
            print(complaints[-1], flush=True)
            continue
        print(*map(line, measured), sep="\n", flush=True)
        rows += measured
        write(out, with_origin(rows, load=load))
    stored = read(baseline)
    complaints += slow_downs(stored, rows)
    if replace and rows:
        write(baseline, merged(stored, with_origin(rows, load=load)))
    missed = [row for row in rows if row.met is False]
    print(f"{len(rows)} rows; {sum(row.met is True for row in rows)} goals reached, {len(missed)} missed.")
    print(*(f"missed: {line(row)}" for row in missed), *complaints, sep="\n")
    return 1 if complaints else 0


def line(row: Row) -> str:
    """A row for the terminal."""
    parts = [f"{row.entry}  {row.contestant}: {row.ms:.4g} ms [{row.ms_lower:.4g}, {row.ms_upper:.4g}]"]
    if row.contestant != row.reference:
        parts.append(f"{row.ratio:.3g}x {row.reference} [{row.ratio_lower:.3g}, {row.ratio_upper:.3g}]")
    if row.fraction is not None:
        parts.append(f"{row.gflop_per_s:.0f} GFLOP/s, {100 * row.fraction:.0f} % of peak")
    if row.exponent is not None:
        parts.append(f"exponent {row.exponent:.2f}")
    if row.error is not None:
        parts.append(f"error {row.error:.1e}")
    if row.met is not None:
        parts.append(f"{row.goal}: {'reached' if row.met else 'MISSED'}")
    return "; ".join(parts)


if __name__ == "__main__":
    tyro.cli(main)
