"""`make verify`: campaigns of hours, in pieces of any length.

    python -m verify                          all parts, one after the other, until all are done
    python -m verify --minutes 14             for so long; the same command goes on
    python -m verify kills mutations          these parts
    python -m verify kills --numbers 17 18    repeat these trials
    python -m verify --list                   parts, and how far they are
    python -m verify --page                   write docs/evidence/trust.md from what is stored

Results are in results/verify/. Exit code 1 if a trial failed that has not been mended.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before PyTorch is imported: forked processes must not have threads

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro

from verify.campaign import RESULTS, read_record, run_part
from verify.page import write_page
from verify.parts import parts


def main(
    names: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    *,
    minutes: float = float("inf"),
    numbers: tuple[int, ...] = (),
    list_parts: Annotated[bool, tyro.conf.arg(name="list")] = False,
    page: bool = False,
    results: Path = RESULTS,
) -> None:
    """Go on with campaigns.

    Args:
        names: of parts; all by default.
        minutes: stop after this long; the same command goes on.
        numbers: repeat these trials of one part.
        list_parts: print how far every part is, and stop.
        page: write the page of results, and stop.
        results: the folder of results.
    """
    known = {part.name: part for part in parts()}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"verify: there is no part {unknown[0]!r}. There are: {', '.join(known)}.")
    chosen = [known[name] for name in names] or list(known.values())
    if page:
        write_page(list(known.values()), results=results)
        return
    end, failed = time.monotonic() + 60 * minutes, 0
    for part in chosen:
        record = replace(read_record(part, results), goal=part.goal)
        left = end - time.monotonic()
        if not list_parts and left > 0 and (numbers or not record.complete):
            record = run_part(part, results=results, seconds=left, numbers=numbers or None)
        failed += record.counts["failed"]
        state = "complete" if record.complete else "unfinished"
        counts = ", ".join(f"{count} {name}" for name, count in sorted(record.counts.items()))
        print(f"{part.name}: {record.done} of {part.goal} {part.unit}, {state}; {counts}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    tyro.cli(main)
