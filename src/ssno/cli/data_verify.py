"""`ssno data verify FOLDER`: check every bit of a dataset against its manifest."""

import json as json_format
from dataclasses import asdict
from pathlib import Path

import tyro
from rich.table import Table

from ssno.base import byte_size
from ssno.base.terminal import Console
from ssno.cli.progress import progress
from ssno.data.store.verify import Verification
from ssno.data.store.verify import verify as verify_dataset


def verify(path: tyro.conf.Positional[Path], *, json: bool = False) -> None:
    """Check a dataset's folder: manifest, missing and extra files, checksums, shapes, types, values.

    Ends with code 1 if anything is wrong.

    Args:
        path: The folder that holds manifest.json.
        json: Print the result as JSON.
    """
    with progress(f"verify {path.name}") as advance:
        verdict = verify_dataset(path, report=advance)
    if json:
        content = {**asdict(verdict), "folder": str(verdict.folder), "fine": verdict.fine}
        print(json_format.dumps(content, indent=1))
    else:
        Console().print(as_table(verdict))
    if not verdict.fine:
        raise SystemExit(1)


def as_table(verdict: Verification) -> Table:
    """What was looked at, and what is wrong with it."""
    counts = ", ".join(f"{count} {split}" for split, count in verdict.trajectories.items())
    looked_at = f"{verdict.shards} shards, {counts}, {byte_size(verdict.bytes)}"
    state = "fine" if verdict.fine else "NOT as written"
    table = Table("file", "finding", title=f"{verdict.folder.name}: {state}", min_width=60)
    for finding in verdict.findings:
        table.add_row(finding.file, finding.what)
    table.caption = looked_at
    return table
