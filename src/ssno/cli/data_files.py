"""`ssno data convert FILE OUT`: write trajectories of any readable file or folder in our own layout."""

import json as json_format
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.table import Table
from rich.text import Text

from ssno.base import byte_size
from ssno.base.formatting import as_file_name
from ssno.base.terminal import Console
from ssno.cli.options import progress
from ssno.data.convert import convert_data, finite_only, split_sets
from ssno.data.grids import How
from ssno.data.load import DataOptions, parse_index
from ssno.data.manifest import Verification
from ssno.data.manifest import verify as verify_dataset
from ssno.data.readers.inspection import open_sets
from ssno.data.readers.registry import DEFAULTS as READ_DEFAULTS
from ssno.data.readers.registry import ReadOptions
from ssno.data.splits import FRACTIONS
from ssno.data.trajectories import Trajectories, trajectory_bytes
from ssno.data.units import PhysicalUnits
from ssno.plots.animation import DEFAULTS, AnimationOptions, moving_picture
from ssno.plots.fields import as_drawn

# `ssno data animate DATA`: trajectories as moving pictures, without a model.
#
# ssno data animate ks --trajectories 0 3
# ssno data animate channel.h5 --axes "batch channel x y time" --mask obstacle --animation.width 1920

AS_STORED = ReadOptions()


def animate(
    data: tyro.conf.Positional[str],
    *,
    read: Annotated[ReadOptions, tyro.conf.arg(name="")] = AS_STORED,
    split: str = "all",
    trajectories: tuple[int, ...] = (0,),
    preset: str | None = None,
    resolution: int | None = None,
    animation: AnimationOptions = DEFAULTS,
    out: Path = Path("animations"),
) -> None:
    """Draw trajectories frame by frame, a file for each trajectory and field; masked points are grey.

    Args:
        data: A dataset's name, looked up in ./data, or a file or folder of your own.
        read: What the file does not say.
        split: Where the trajectories are: train, valid, test or all.
        trajectories: Trajectories, numbered from 0.
        preset: Size of a generated dataset: tiny, small or paper.
        resolution: Coarsen the grid to this many points along the first axis.
        animation: How animations look.
        out: Folder for the animations.
    """
    options = {name: getattr(read, name) for name in read.given}
    chosen = DataOptions(name=data, preset=preset, resolution=resolution, **options).load(split)
    if chosen.geometry.is_steady:
        raise ValueError(f"{chosen.name!r} holds steady flows, so there is nothing to animate.")
    for number in trajectories:
        if not 0 <= number < len(chosen):
            raise ValueError(f"`--trajectories` must lie between 0 and {len(chosen) - 1}, got {number}.")
    for path in draw(chosen, trajectories, out, animation):
        print(path)


def draw(data: Trajectories, index: tuple[int, ...], folder: Path, options: AnimationOptions) -> list[Path]:
    """Write the animations of some trajectories."""
    state, context = data.read(list(index))
    fields = state.numpy()
    if data.mask_channel is not None:
        fields = np.where(context[:, :, [data.mask_channel]].numpy() > 0, np.nan, fields)
    times = data.times.tolist()
    return [
        moving_picture(
            data,
            values,
            None,
            folder / f"{as_file_name(data.name)}-{number}-{as_file_name(field)}{options.suffix}",
            times=times,
            labels=labels.titled(f"{data.name}: {field} of trajectory {number}"),
            options=options,
        )
        for row, number in enumerate(index)
        for field, [values], labels in as_drawn(data, fields[row])
    ]


def convert(
    path: tyro.conf.Positional[Path],
    out: tyro.conf.Positional[Path],
    *,
    splits: tuple[float, ...] = FRACTIONS,
    segment: int | None = None,
    time_index: str | None = None,
    resolution: int | None = None,
    reduction: How = "stride",
    drop_not_finite: bool = False,
    read: Annotated[ReadOptions, tyro.conf.arg(name="")] = READ_DEFAULTS,
    per_shard: int | None = None,
    dry_run: bool = False,
    json: bool = False,
) -> None:
    """Write a file or folder as a dataset of ssno: checksummed, divided into splits, ready for `ssno train OUT`.

    Args:
        path: A file (HDF5, NetCDF, NPY, NPZ, MATLAB, CSV or PyTorch), a Zarr store, or a folder
            with train, valid and test.
        out: The new folder.
        splits: Fractions, or counts, for train, valid and test, if the source is not divided; in stored order.
        segment: Cut long runs into pieces of this many frames.
        time_index: Frames to keep, START:STOP:STEP.
        resolution: Points to keep along the first space axis; the others in proportion.
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
        data = data.select(time_index=frames, resolution=resolution, reduction=reduction)
        data = data if segment is None else data.cut(segment)
        return finite_only(data) if drop_not_finite else data

    sets = split_sets({split: view(data) for split, data in open_sets(path, read)[0].items()}, splits)
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
        table.add_row("context fields", ", ".join(map(stated.field_label, result["context"])))
    table.add_row("grid", " x ".join(str(points) for points in result["grid"]))
    table.add_row("before compression", byte_size(result["bytes_before_compression"]))
    if result["written"]:
        table.add_row("on disk", byte_size(result["bytes_on_disk"]))
    console.print(table)
    if result["written"]:
        console.print(Text.assemble("Train on it: ", (f"ssno train {result['out']}", "bold")), soft_wrap=True)


# `ssno data verify FOLDER`: check every bit of a dataset against its manifest.


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
