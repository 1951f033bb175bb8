"""`ssno data inspect FILE`: what is in a file or folder, what is wrong with it, how to train on it."""

import json as json_format
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from ssno.base.formatting import stem
from ssno.base.terminal import Console
from ssno.data.readers.inspection import MOST, Inspection, inspect_data, sampled
from ssno.data.readers.registry import DEFAULTS, WHOLE, ReadOptions
from ssno.data.trajectories import Trajectories
from ssno.data.units import measured
from ssno.plots.fields import gallery
from ssno.plots.style import check_picture, save

SHOWN = {1: 4, 2: 2, 3: 1}  # trajectories drawn, by the number of space axes
ALIKE = 3  # groups at least that are shown as one
LISTED = 8  # numbers of a list that are printed; --json has them all
WORD = 14
"""Letters of a name that are not torn apart, however narrow the terminal is."""
WIDE = 100  # columns of a terminal on which long headings have room


def inspect(
    path: tyro.conf.Positional[Path],
    *,
    against: Path | None = None,
    read: Annotated[ReadOptions, tyro.conf.arg(name="")] = DEFAULTS,
    sample: bool = True,
    draw: bool = True,
    picture: Path | None = None,
    json: bool = False,
) -> None:
    """Look into a file or folder: format, axes, fields, ranges, values not finite, duplicates, leaks.

    Prints a table and the command to train on it, and draws a few trajectories.

    Args:
        path: A file (HDF5, NetCDF, NPY, NPZ, MATLAB, CSV or PyTorch), a Zarr store, or a folder
            with train, valid and test.
        against: Another file or folder, to find frames that occur in both.
        read: What the file does not say.
        sample: Look at a sample of files larger than 128 MiB; --no-sample reads all trajectories.
        draw: Draw a few trajectories.
        picture: Where to draw them (.png, .pdf or .svg); NAME-inspect.png here if not given. An earlier picture is
            replaced, no other file.
        json: Print the result as JSON.
    """
    drawing = Path(f"{stem(path)}-inspect.png") if picture is None else picture
    if draw:
        check_picture(drawing, option="--picture")
    found, sets = inspect_data(path, read, against=against, most=MOST if sample else None)
    drawn = draw_sets(sets, drawing) if draw and sets else None
    if json:
        print(json_format.dumps(to_json(found, drawn), indent=1))
    else:
        show(found, drawn)


def to_json(found: Inspection, drawn: Path | None) -> dict[str, Any]:
    """The report as JSON; numbers that are not finite, such as the range of an all-NaN field, become null."""

    def clean(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: clean(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [clean(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return clean({**asdict(found), "picture": None if drawn is None else str(drawn)})


def draw_sets(sets: Mapping[str, Trajectories], path: Path) -> Path:
    """A few evenly spaced trajectories of the first set."""
    whole = next(iter(sets.values()))
    data, kept = sampled(whole, MOST)
    count = min(SHOWN[len(data.axes)], len(data))
    numbers = [round(i * (len(data) - 1) / max(1, count - 1)) for i in range(count)]
    frames = data.read(numbers, finite=False)
    state = frames.state.numpy()
    if data.mask_channel is not None:
        state = np.where(frames.context[:, :, [data.mask_channel]].numpy() > 0, np.nan, state)
    figure = gallery(
        state,
        fields=data.fields,
        times=data.times,
        lengths=[axis.length for axis in data.axes],
        names=[axis.name for axis in data.axes],
        numbers=kept[numbers].tolist(),
        units=data.units,
        title=f"{whole.name}: {len(whole)} trajectories, {' x '.join(str(axis.points) for axis in whole.axes)} points",
    )
    return save(figure, path)


def show(found: Inspection, drawn: Path | None, console: Console | None = None) -> None:
    """The report as tables and plain sentences."""
    console = Console() if console is None else console
    console.print(Text.assemble((found.path, "bold"), f": {found.format or 'not recognised'} ({found.container})"))
    if found.format is None or found.format == "arrays":
        listing = Table("array", "holds", box=SIMPLE_HEAD, pad_edge=False)
        refused = {name: f"not read: {why}" for name, why in found.refused.items()}
        for name, what in {**folded(found.arrays), **refused}.items():
            listing.add_row(name, what)
        console.print(listing)
    if found.problem is not None:
        console.print(found.problem)
        if found.command:
            console.print(Text.assemble("A guess, to be checked: ", (found.command, "bold")), soft_wrap=True)
        return
    for line in facts(found):
        console.print(line)
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("split", no_wrap=True)
    words = [word for report in found.sets for field in report.fields for word in field.name.split()]
    table.add_column("field", overflow="fold", min_width=min(WORD, max(map(len, words), default=0)))
    for heading in ("low", "high", "mean", "std", "std of a step", "not finite"):
        shown = heading.replace(" of", " of\n").replace("not ", "not\n") if console.width < WIDE else heading
        table.add_column(shown, justify="right", no_wrap=True)
    for report in found.sets:
        for field in report.fields:
            numbers = (field.low, field.high, field.mean, field.std, field.change)
            label = found.units.field_label(field.name)
            name = f"{label} (known)" if field.known else label
            table.add_row(report.split, name, *(f"{number:.3g}" for number in numbers), str(field.bad))
    console.print(table)
    for line in findings(found):
        console.print(Text.assemble(("!", "bold red"), f" {line}"))
    for note in found.notes:
        console.print(Text.assemble(("*", "yellow"), f" {note}"))
    if drawn is not None:
        console.print(f"Picture: {drawn}")
    console.print(Text.assemble("Train on it: ", (found.command, "bold")), soft_wrap=True)


def folded(arrays: Mapping[str, str]) -> dict[str, str]:
    """What arrays hold; of groups that are all alike, such as one for each run, the first stands for the others."""
    inside: dict[str, dict[str, str]] = {}
    for name, what in arrays.items():
        group, slash, inner = name.partition("/")
        if slash:
            inside.setdefault(group, {})[inner] = what
    if len(inside) < ALIKE or any(held != inside[min(inside)] for held in inside.values()):
        return dict(arrays)
    kept = {name: what for name, what in arrays.items() if "/" not in name or name.startswith(f"{min(inside)}/")}
    return {**kept, f"{len(inside) - 1} more groups": "the same"}


def facts(found: Inspection) -> list[str]:
    """Sizes, time step, axes and parameters, a line each."""
    sizes = ", ".join(f"{report.trajectories} {report.split}".removesuffix(f" {WHOLE}") for report in found.sets)
    step = "not equally spaced" if found.dt is None else measured(f"dt {found.dt:.6g}", found.units.time)
    lines = [f"{found.name}: {sizes} trajectories of {found.frames} frames, {step}"]
    for axis in found.axes:
        kind, unit = "periodic" if axis["periodic"] else "bounded", found.units.axes.get(axis["name"], "")
        length, spacing, first = (measured(f"{axis[key]:.6g}", unit) for key in ("length", "spacing", "offset"))
        lines.append(
            f"{axis['name']}: {axis['points']} points, length {length}, spacing {spacing}, first at {first}, {kind}"
        )
    ranges = (found.parameters or {}).items()
    numbers = [f"{name} {low:.6g}" + (f" to {high:.6g}" if high > low else "") for name, (low, high) in ranges]
    lines += [f"parameters: {', '.join(numbers)}"] if numbers else []
    lines += [
        f"{report.split}: looked at {report.examined} of {report.trajectories} trajectories, {report.frames} of "
        f"{found.frames} frames{coarser(report.step)} (--no-sample reads all)"
        for report in found.sets
        if (report.examined, report.frames, report.step) != (report.trajectories, found.frames, 1)
    ]
    return lines


def coarser(step: int) -> str:
    """What was left out of a grid whose frames are spread over their file."""
    return "" if step == 1 else f", one point in {step} along each axis since a frame is spread over its file"


def findings(found: Inspection) -> list[str]:
    """What is wrong, a sentence each."""

    def some(items: tuple[Any, ...]) -> str:
        return ", ".join(str(item) for item in items[:LISTED]) + (", ..." if len(items) > LISTED else "")

    lines = []
    for report in found.sets:
        if report.not_finite:
            lines.append(
                f"{report.split}: {len(report.not_finite)} trajectories are not finite: {some(report.not_finite)}. "
                "Gaps (land, obstacles) are read with --mask nan; leave broken ones out with "
                "`ssno data convert --drop-not-finite`."
            )
        if report.duplicates:
            pairs = tuple(f"{late} = {early}" for early, late in report.duplicates)
            lines.append(f"{report.split}: {len(pairs)} trajectories occur twice: {some(pairs)}")
        if report.frozen:
            lines.append(f"{report.split}: {len(report.frozen)} stand still for a step: {some(report.frozen)}")
    for leak in found.leaks:
        lines.append(
            f"{leak.here} shares {leak.frames} frames with {leak.there}, {leak.trajectories} trajectories entirely "
            f"(for example {leak.example[0]} with {leak.example[1]}): errors measured on it mean little"
        )
    return lines
