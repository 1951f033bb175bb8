"""`ssno data convert FILE OUT`: write trajectories of any readable file or folder in our own layout."""

import json as json_format
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table
from rich.text import Text

from ssno.base import byte_size
from ssno.base.terminal import Console
from ssno.cli.progress import progress
from ssno.data.division import FRACTIONS
from ssno.data.files.inspection import open_sets
from ssno.data.files.readers.protocol import ReadOptions
from ssno.data.files.readers.registry import DEFAULTS
from ssno.data.load import parse_index
from ssno.data.reduction import How
from ssno.data.sizes import trajectory_bytes
from ssno.data.store.convert import convert_data, divided, finite_only
from ssno.data.trajectories import Trajectories
from ssno.data.units import PhysicalUnits


def convert(
    path: tyro.conf.Positional[Path],
    out: tyro.conf.Positional[Path],
    *,
    splits: tuple[float, ...] = FRACTIONS,
    cut: int | None = None,
    time_index: str | None = None,
    points: int | None = None,
    reduction: How = "stride",
    drop_not_finite: bool = False,
    read: Annotated[ReadOptions, tyro.conf.arg(name="")] = DEFAULTS,
    per_shard: int | None = None,
    dry_run: bool = False,
    json: bool = False,
) -> None:
    """Write a file or folder as a dataset of ssno: checksummed, divided, ready for `ssno train OUT`.

    Args:
        path: A file (HDF5, NetCDF, NPZ, NPY), a Zarr store, or a folder with train, valid and test.
        out: The new folder.
        splits: Fractions, or counts, for train, valid and test, if the source is not divided; in stored order.
        cut: Cut long runs into pieces of this many frames.
        time_index: Frames to keep, START:STOP:STEP.
        points: Points to keep along the first space axis; the others in proportion.
        reduction: How to reduce points.
        drop_not_finite: Leave out trajectories with NaN or infinity, in fields or parameters, instead of stopping.
        read: What the file does not say.
        per_shard: Trajectories per file.
        dry_run: Say what would be written, and stop.
        json: Print the result as JSON.
    """
    if out.exists():
        raise FileExistsError(f"{out} exists already; choose another name, or move it away.")

    if per_shard is not None and per_shard < 1:
        raise ValueError(f"`--per-shard` must be at least 1, got {per_shard}.")

    def view(data: Trajectories) -> Trajectories:
        frames = None if time_index is None else parse_index(time_index)
        data = data.select(time_index=frames, points=points, reduction=reduction)
        data = data if cut is None else data.cut(cut)
        return finite_only(data) if drop_not_finite else data

    sets = divided({split: view(data) for split, data in open_sets(path, read)[0].items()}, splits)
    if not dry_run:
        with progress(f"convert {path.name}") as advance:
            convert_data(sets, out, source=path.name, per_shard=per_shard, report=advance)
    result = describe(sets, out, written=not dry_run)
    if json:
        print(json_format.dumps(result, indent=1))
    else:
        show(result)


def describe(sets: Mapping[str, Trajectories], out: Path, *, written: bool) -> dict[str, Any]:
    """What was, or would be, written."""
    data = next(iter(sets.values()))
    return {
        "out": str(out),
        "written": written,
        "trajectories": {split: len(part) for split, part in sets.items()},
        "frames": len(data.times),
        "fields": list(data.fields),
        "context": list(data.context_fields),
        "units": asdict(data.units),
        "grid": [axis.points for axis in data.axes],
        "bytes_before_compression": trajectory_bytes(data) * sum(len(part) for part in sets.values()),
        "bytes_on_disk": sum(file.stat().st_size for file in out.rglob("*") if file.is_file()) if written else None,
    }


def show(result: Mapping[str, Any], console: Console | None = None) -> None:
    """The result as a table, and what to do next."""
    console = Console() if console is None else console
    table = Table("what", "value", title=f"{result['out']}: {'written' if result['written'] else 'dry run'}")
    table.add_row("trajectories", ", ".join(f"{count} {split}" for split, count in result["trajectories"].items()))
    table.add_row("frames", str(result["frames"]))
    stated = PhysicalUnits(**result["units"])
    table.add_row("fields", ", ".join(map(stated.field_label, result["fields"])))
    if result["context"]:
        table.add_row("known fields", ", ".join(map(stated.field_label, result["context"])))
    table.add_row("grid", " x ".join(str(points) for points in result["grid"]))
    table.add_row("before compression", byte_size(result["bytes_before_compression"]))
    if result["written"]:
        table.add_row("on disk", byte_size(result["bytes_on_disk"]))
    console.print(table)
    if result["written"]:
        console.print(Text.assemble("Train on it: ", (f"ssno train {result['out']}", "bold")), soft_wrap=True)
