"""Looking into a file or folder before training on it: what it is, what is in it, what is wrong with it.

`inspect_data` recognises the format, or lists the arrays it found; reads the numbers a chunk at a time; and reports
ranges, values that are not finite, trajectories that occur twice or stand still, frames that train and test share,
seams that do not look periodic, and the command to train on it. Pictures are drawn by `ssno.plots.fields`.
"""

import hashlib
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt64
from torch import Tensor

from ssno.data.context import NONE
from ssno.data.errors import DataError
from ssno.data.load import open_folder
from ssno.data.normalise import Moments, Summary, chunks
from ssno.data.readers.blocks import MEANING, SPACE, Block
from ssno.data.readers.plain import run_groups
from ssno.data.readers.registry import DEFAULTS, WHOLE, ReadOptions, examine, is_zarr, open_contents, reader_for
from ssno.data.readers.suggest import option_words, resampling_note, suggest_axes, train_command, useful_parameters
from ssno.data.sandbox.parent import Contents
from ssno.data.trajectories import NAN, Trajectories, trajectory_bytes
from ssno.data.units import NO_UNITS, PhysicalUnits

# Finding what occurs twice: trajectories within a set, frames that two sets share.
#
# Every frame gets a 64-bit hash of its float32 bytes, all state fields together. Two trajectories are duplicates if all
# their frames agree; a test set leaks if frames of it occur in the training set, at whatever time. Frames that are
# uniform in space (all zero, say) are the same everywhere and count as nothing.
#
# Axes: n trajectory, t frame.

Hashes = UInt64[np.ndarray, "n t"]
UNIFORM = np.uint64(0)  # the hash of frames without structure


@dataclass(frozen=True)
class Leak:
    """What a set shares with another: how many of its trajectories, how many of its frames, and the first pair."""

    here: str
    there: str
    trajectories: int
    frames: int
    example: tuple[int, int]


def frame_hashes(state: Float[Tensor, "n t c *grid"]) -> Hashes:
    """A hash per frame; 0 for frames that are uniform in space."""
    frames = state.numpy()
    uniform = is_uniform(frames)
    hashes = np.zeros(uniform.shape, np.uint64)
    for place in zip(*np.nonzero(~uniform), strict=True):
        digest = hashlib.blake2b(frames[place].tobytes(), digest_size=8).digest()
        hashes[place] = max(int.from_bytes(digest, "little"), 1)
    return hashes


def is_uniform(frames: Float[np.ndarray, "n t c *grid"]) -> Bool[np.ndarray, "n t"]:
    """Frames whose fields have one value each."""
    points = frames.reshape(*frames.shape[:3], -1)
    return (points == points[..., :1]).all(axis=(2, 3))


def duplicates(hashes: Hashes) -> list[tuple[int, int]]:
    """Pairs (earlier, later) of trajectories whose frames all agree."""
    first: dict[bytes, int] = {}
    pairs = []
    for n, row in enumerate(hashes):
        if (row == UNIFORM).all():
            continue
        earlier = first.setdefault(row.tobytes(), n)
        if earlier != n:
            pairs.append((earlier, n))
    return pairs


def frozen(hashes: Hashes) -> list[int]:
    """Trajectories in which a frame equals the next one: a solver that stopped, or frames stored twice."""
    stuck = (hashes[:, 1:] == hashes[:, :-1]) & (hashes[:, 1:] != UNIFORM)
    return np.nonzero(stuck.any(axis=1))[0].tolist()


def leak(hashes: Hashes, training: UInt64[np.ndarray, "m s"], *, here: str, there: str) -> Leak | None:
    """What a set shares with the training set, or None if nothing."""
    known = {int(value): n for n, row in enumerate(training) for value in row if value != UNIFORM}
    shared = np.isin(hashes, np.fromiter(known, np.uint64, len(known)))
    if not shared.any():
        return None
    whole = (shared | (hashes == UNIFORM)).all(axis=1) & shared.any(axis=1)
    n, t = (int(index) for index in np.argwhere(shared)[0])
    return Leak(here, there, int(whole.sum()), int(shared.sum()), (n, known[int(hashes[n, t])]))


MOST = 128 * 2**20  # bytes of frames looked at, unless everything is asked for
CHUNK = 4 * 2**20  # bytes of frames in memory at a time: few enough for the cache
SEAM_FRAMES = 8  # of each trajectory
SEAM = 4.0  # times the usual difference of neighbours: a larger step across the seam does not look periodic
FIXED = 1e-3  # times that difference: ends that vary less have one value


@dataclass(frozen=True)
class FieldReport:
    """One field of one set: its range and moments, the deviation of one-step changes, and values not finite."""

    name: str
    known: bool
    low: float
    high: float
    mean: float
    std: float
    change: float
    bad: int


@dataclass(frozen=True)
class SetReport:
    """One split, or a whole file: how many trajectories, frames and points were looked at (every `step`-th along each
    axis). Lists are of trajectory numbers."""

    split: str
    trajectories: int
    examined: int
    frames: int
    step: int
    fields: tuple[FieldReport, ...]
    not_finite: tuple[int, ...]
    duplicates: tuple[tuple[int, int], ...]
    frozen: tuple[int, ...]


@dataclass(frozen=True)
class Inspection:
    """Everything found. `format` is None if the file was not recognised; then `problem` says why."""

    path: str
    container: str
    format: str | None
    arrays: Mapping[str, str]
    refused: Mapping[str, str]
    problem: str | None = None
    name: str = ""
    frames: int = 0
    dt: float | None = None
    axes: tuple[Mapping[str, Any], ...] = ()
    parameters: Mapping[str, tuple[float, float]] | None = None
    sets: tuple[SetReport, ...] = ()
    leaks: tuple[Leak, ...] = ()
    notes: tuple[str, ...] = ()
    command: str = ""
    units: PhysicalUnits = NO_UNITS


def open_sets(path: Path, options: ReadOptions = DEFAULTS) -> tuple[dict[str, Trajectories], Contents | None]:
    """The splits of a file or folder as stored; for a file also its contents."""
    if path.is_dir() and not is_zarr(path):
        return dict(open_folder(path, options)), None
    contents = examine(path)
    return dict(open_contents(contents, options)), contents


def inspect_data(
    path: Path, options: ReadOptions = DEFAULTS, *, against: Path | None = None, most: int | None = MOST
) -> tuple[Inspection, dict[str, Trajectories]]:
    """Inspect a file or folder, and compare it with another one if `against` is given.

    At most about `most` bytes of frames are read, evenly spread over the trajectories; all of them if None. Returns
    the report and the trajectories (none if the file was not recognised).
    """
    if path.is_dir() and not is_zarr(path):
        sets, _ = open_sets(path, options)
        kind = "folder of runs" if set(sets) == {WHOLE} else "folder of splits"
        assumed = options.axes is not None and "periodic" not in options.given
        found = Inspection(str(path), "folder", kind, {}, {})
    else:
        contents = examine(path)
        listed = {name: f"{np.dtype(stored.dtype)} {stored.shape}" for name, stored in contents.arrays.items()}
        found = Inspection(str(path), contents.kind, None, listed, contents.refused)
        try:
            sets = dict(open_contents(contents, options))
        except DataError as error:
            return replace(found, problem=str(error), command=_retry(path, contents, options)), {}
        reader = reader_for(contents, options)
        found, assumed = replace(found, format=reader.name), "periodic" in reader.takes - options.given
    beside = {} if against is None else open_sets(against, options)[0]
    step = max(coarseness(data, most) for data in (*sets.values(), *beside.values()))  # frames are compared
    reports, hashes, notes = [], {}, []
    walls: set[str] = set()
    for split, data in sets.items():
        report, hashes[split], seams = _examine_set(split, data, most, step, assumed=assumed)
        reports.append(report)
        notes += [*data.notes, *seams.values()]
        if note := resampling_note(data, sampled(data, most, step=step)[0]):
            notes.append(note)
        walls |= {*seams}
    others = hashes if against is None else {}
    for split, data in beside.items():
        others[f"{against.name}:{split}"] = _examine_set(split, data, most, step)[1]  # type: ignore[union-attr]
    return replace(
        found,
        **_describe(next(iter(sets.values()))),
        sets=tuple(reports),
        leaks=tuple(_leaks(hashes, others, same=against is None)),
        notes=tuple(dict.fromkeys(notes)),
        command=train_command(path, _with_findings(path, options, sets, reports, walls), sets),
    ), sets


def _with_findings(
    path: Path, options: ReadOptions, sets: Mapping[str, Trajectories], reports: Sequence[SetReport], walls: set[str]
) -> ReadOptions:
    """The user's options and what was found beside them: walls, parameters as context fields, gaps in all trajectories.

    What cannot be read so (a format with context fields of its own) is left out.
    """
    data = next(iter(sets.values()))
    if walls and "periodic" not in options.given:
        repeating = tuple(axis.name for axis in data.axes if axis.periodic and axis.name not in walls)
        options = replace(options, periodic=repeating or NONE)
    if options.mask is None and all(len(report.not_finite) == report.examined for report in reports):
        options = replace(options, mask=NAN)
    every = (*data.fields, *data.context_fields)
    names = [name for name in useful_parameters(data) if name not in every]

    def readable(more: Sequence[str]) -> bool:
        try:
            found = next(iter(open_sets(path, replace(options, context=(*options.context, *more)))[0].values()))
        except (DataError, ValueError):
            return False
        return found.fields == data.fields and {*found.context_fields} >= {*data.context_fields, *more}

    if not names or options.context == NONE:
        return options
    used = names if readable(names) else [name for name in names if readable([name])]
    return replace(options, context=(*options.context, *used))


def _describe(data: Trajectories) -> dict[str, Any]:
    try:
        dt = data.time_step
    except DataError:
        dt = None
    axes = [{**vars(axis), "spacing": axis.spacing} for axis in data.axes]
    numbers = {key: values for key, values in data.parameters.items() if values.ndim == 1}
    ranges = {key: (float(values.min()), float(values.max())) for key, values in numbers.items()}
    known = {"name": data.name, "frames": len(data.times), "dt": dt, "units": data.units}
    return {**known, "axes": tuple(axes), "parameters": ranges}


def _examine_set(
    split: str, data: Trajectories, most: int | None, step: int, *, assumed: bool = False
) -> tuple[SetReport, Hashes, dict[str, str]]:
    """Read a set once, chunk by chunk. `assumed`: nobody said that its periodic axes are."""
    view, numbers = sampled(data, most, step=step)
    total: Summary | None = None
    hashes: list[Hashes] = []
    bad: list[int] = []
    seams: dict[str, str] = {}
    for chunk in chunks(view, size=CHUNK):
        frames = view.read(chunk, finite=False)
        part = Summary.of(frames, mask=view.mask_channel)
        total = part if total is None else total.merged(part)
        hashes.append(frame_hashes(frames.state))
        if part.state.bad.any() or part.context.bad.any():
            wrong = [~values.isfinite().flatten(1).all(1) for values in frames if values.numel()]
            bad += numbers[chunk][np.logical_or.reduce([flags.numpy() for flags in wrong])].tolist()
        if not seams:
            seams = _seams(frames.state.numpy(), data, assumed=assumed)
    assert total is not None
    joined = np.concatenate(hashes)
    fields = [
        *_fields(data.fields, total.state, total.state_change, known=False),
        *_fields(data.context_fields, total.context, total.context_change, known=True),
    ]
    pairs = [(int(numbers[a]), int(numbers[b])) for a, b in duplicates(joined)]
    still = tuple(int(numbers[n]) for n in frozen(joined))
    looked_at = (len(view), len(view.times), step)
    report = SetReport(split, len(data), *looked_at, tuple(fields), tuple(bad), tuple(pairs), still)
    return report, joined, seams


def _fields(names: tuple[str, ...], values: Moments, changes: Moments, *, known: bool) -> list[FieldReport]:
    columns = (values.low, values.high, values.mean, values.std, changes.std)
    rows = zip(names, *(column.tolist() for column in columns), values.bad.tolist(), strict=True)
    return [FieldReport(name, known, *numbers) for name, *numbers in rows]


def _seams(state: np.ndarray, data: Trajectories, *, assumed: bool) -> dict[str, str]:
    """Periodic axes along which a field does not repeat, by some frames of each trajectory, and why."""
    some = state[:, :: max(1, state.shape[1] // SEAM_FRAMES)]
    notes = {}
    for axis, dim in zip(data.axes, range(-len(data.axes), 0), strict=True):
        if not axis.periodic or axis.points < 4:
            continue
        lines = np.moveaxis(some, (2, dim), (0, -1)).astype(np.float64)
        lines[~np.isfinite(lines)] = np.nan  # of infinities no difference can be taken
        for field, values in zip(data.fields, lines, strict=True):
            if why := jump(values) or (wall(values) if assumed else ""):
                notes[axis.name] = (
                    f"{axis.name} does not look periodic: `{field}` {why}. Give --periodic with the axes that are, or "
                    "none."
                )
                break
    return notes


def jump(lines: Float[np.ndarray, "*lines l"]) -> str:
    """How far a field jumps from the last point to the first, if that is more than it does elsewhere."""
    inside, across = _mean_square(np.diff(lines)), _mean_square(lines[..., 0] - lines[..., -1])
    if not inside or across <= SEAM**2 * inside:
        return ""
    return f"takes a step across its ends that is {np.sqrt(across / inside):.3g} times the usual one"


def wall(lines: Float[np.ndarray, "*lines l"]) -> str:
    """What looks like walls: a field that has one value at each end but not beside it, or bends sharply there."""
    first, last, inside = lines[..., 0], lines[..., -1], _mean_square(np.diff(lines))
    beside = np.stack([lines[..., 1] - first, lines[..., -2] - last])
    ends = [end[~np.isnan(end)] for end in (first, last)]
    nothing = FIXED * np.sqrt(inside)
    rises = _mean_square(beside) > inside / SEAM**2 and all(end.std() < nothing for end in ends if end.size)
    exact = np.mean(np.abs(beside) > 0) > 0.5 and all(np.ptp(end) == 0 for end in ends if end.size)
    if rises or exact:
        low, high = (f"{end.mean():.3g}" if end.size and abs(end.mean()) > nothing else "0" for end in ends)
        return f"is always {low} at both ends" if low == high else f"is always {low} at one end and {high} at the other"
    seam = np.concatenate([lines[..., -2:], lines[..., :2]], axis=-1)
    usual, bend = (_mean_square(np.diff(part, n=2)) for part in (lines, seam))
    if not usual or bend <= SEAM**2 * usual:
        return ""
    return f"bends {np.sqrt(bend / usual):.3g} times as much across its ends as elsewhere"


def _mean_square(values: np.ndarray) -> float:
    """Over the values that are there; 0 if none is."""
    there = values[~np.isnan(values)]
    return float(np.square(there).mean()) if there.size else 0.0


def _leaks(hashes: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray], *, same: bool) -> list[Leak]:
    """Every set against every other; within one dataset, later splits against earlier ones."""
    names = list(others)
    found = []
    for position, here in enumerate(hashes):
        for there in names[:position] if same else names:
            if shared := leak(hashes[here], others[there], here=here, there=there):
                found.append(shared)
    return found


def _retry(path: Path, contents: Contents, options: ReadOptions) -> str:
    """How to call `inspect` again for a file whose axes nobody named, with all that was said about it."""
    groups = run_groups(contents)
    contents = groups[0] if groups else contents
    largest = max((stored.shape for stored in contents.arrays.values()), key=math.prod, default=())
    arrays = options.arrays or tuple(name for name, stored in contents.arrays.items() if stored.shape == largest)
    beside = {name: stored.shape for name, stored in contents.arrays.items()}
    first = contents.arrays.get(arrays[0]) if arrays else None
    axes = None if first is None else _called(first.dims) or suggest_axes(first.shape, beside)
    if axes is None or options.axes is not None:
        return ""
    others = [name for name, shape in beside.items() if len(shape) == len(largest) and name not in arrays]
    chosen = f" --arrays {' '.join(arrays)}" if len(beside) > 1 and (others or not groups) else ""
    said = "".join(f" {shlex.quote(w)}" for w in option_words(options, prefix="--", without=("arrays", "axes")))
    return f'ssno data inspect {path}{chosen}{said} --axes "{axes}"'


def _called(dims: tuple[str, ...]) -> str | None:
    """Names of dimensions of which all but one are understood: that one counts trajectories."""
    words = [MEANING.get(name.lower(), name.lower()) for name in dims]
    unknown = [word for word in words if word not in ("batch", "time", "channel", *SPACE)]
    if len(unknown) != 1 or "batch" in words or "time" not in words:
        return None
    return " ".join("batch" if word == unknown[0] else word for word in words)


# A sample of a set that is cheap to read: trajectories, frames and points, chosen by how they lie in their file.
#
# A frame of an array whose last axis is time is spread over the whole file, one number here and one there, and the
# system reads a window around each of them. `spread` counts those windows from the strides, and `sampled` takes fewer
# points or frames where they would be too many.

WINDOW = 64 * 2**10
"""Bytes of a file that come into memory around every place that is read."""
FEWEST_POINTS = 16
"""Along the longest axis: no coarser, whatever it takes."""
AGAIN = 4
"""Windows in all may take this many times what a sample holds: most of them are in memory already."""


def sampled(data: Trajectories, most: int | None, *, step: int | None = None) -> tuple[Trajectories, np.ndarray]:
    """About `most` bytes of a set, evenly spread over its trajectories, and their numbers; all of it if None.

    Of a trajectory, at most a quarter of that: its first frames, and every `step`-th point (`coarseness` unless given).
    """
    if most is None:
        return data, np.arange(len(data))
    data = _every(data, coarseness(data, most) if step is None else step)
    frames = min(len(data.times), max(2, most // 4 * len(data.times) // trajectory_bytes(data)))
    while frames > 2 and spread(_first(data, frames)) > most:
        frames = max(2, frames // 2)
    data = _first(data, frames)
    too_many = max(trajectory_bytes(data) / most, spread(data) / (AGAIN * most))
    numbers = np.arange(len(data))[:: max(1, int(np.ceil(len(data) * too_many)))]
    return data.select(indices=numbers), numbers


def coarseness(data: Trajectories, most: int | None) -> int:
    """How many points to go ahead on the grid, so that two frames need no more than `most` bytes of their file."""
    step, two = 1, _first(data, 2)
    longest = max(axis.points for axis in data.axes)
    while most is not None and spread(_every(two, step)) > most and longest > FEWEST_POINTS * step:
        step *= 2
    return step


def spread(data: Trajectories) -> int:
    """Bytes of its file that come into memory when the first trajectory of a set is read, one at a time."""
    part = data.parts[int(data.rows[0, 0])]
    frames = int(np.ptp(data.frame_index)) + 1
    return sum(_windows(block, frames, data.steps) for block in (*part.state, *part.context))


def _windows(block: Block, frames: int, steps: tuple[int, ...]) -> int:
    strides = getattr(block.array, "file_strides", lambda: None)()
    if strides is None:
        return 0
    taken = {"batch": (1, 1), "time": (frames, 1), "channel": (max(block.channels) - min(block.channels) + 1, 1)}
    taken |= {word: (-(-block.size(word) // step), step) for word, step in zip(block.space, steps, strict=True)}
    counts = [taken.get(word, (1, 1)) for word in block.pattern.words]
    dense, pieces = min(strides), 1
    for stride, count in sorted((stride * step, count) for stride, (count, step) in zip(strides, counts, strict=True)):
        if stride <= max(dense, WINDOW):
            dense += stride * (count - 1)
        else:
            pieces *= count
    return dense if pieces == 1 else pieces * (dense + WINDOW)


def _first(data: Trajectories, frames: int) -> Trajectories:
    return data if frames >= len(data.times) else data.select(time_index=slice(frames))


def _every(data: Trajectories, step: int) -> Trajectories:
    """Every n-th point along all axes, whether or not that divides the grid: to be looked at, not to be trained on."""
    axes = tuple(replace(axis, points=-(-axis.points // step)) for axis in data.axes)
    return replace(data, axes=axes, steps=tuple(step * own for own in data.steps))
