"""Guesses that a person has to confirm: what the axes of a bare array may be, and the command to train on a file."""

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from ssno.data.readers.blocks import MEANING, Block, Resampling
from ssno.data.readers.registry import WHOLE, ReadOptions
from ssno.data.splits import FRACTIONS
from ssno.data.trajectories import Trajectories
from ssno.data.units import measured
from ssno.data.windows import dataset_conventions

FEW = 16  # channels at most
LEAST = 8  # points at least
SHORTEST = 6  # frames of a piece: four given, two to predict
MOST_PARAMETERS = 16
NUMBERING = ("batch", "seed", "id", "index", "number")  # what parameters are called that only number trajectories
COORDINATE = re.compile(r"(?:.*/)?(t|time|x|y|z)s?(?:[-_].*)?", re.IGNORECASE)


def suggest_axes(shape: tuple[int, ...], beside: Mapping[str, tuple[int, ...]] | None = None) -> str | None:
    """A likely pattern for an array: neighbouring axes of equal length are space, a short one is channels.

    (1200, 64, 64, 20) gives "batch x y time", (100, 26, 512) "batch time x", (50, 21, 5, 128, 128) "batch time
    channel x y". None if there are too few or too many axes to guess. Arrays `beside` it, by name, tell more: one
    called t, x_m or y that has the length of an axis, a map (an obstacle, say) that has the lengths of several, or a
    list of another name that has the length of the first axis only: numbers of trajectories or frames, not places.
    """
    if not 2 <= len(shape) <= 6:
        return None
    lines = {name: _line(lengths) for name, lengths in (beside or {}).items()}
    named = _named(shape, lines)
    if told := _told(shape, named):
        return told
    time_axis = [axis for axis, word in named.items() if word == "time"]
    counted = [0] if any(_fits(shape, lines[name]) == [0] for name in lines if not COORDINATE.fullmatch(name)) else []
    space = sorted(axis for axis, word in named.items() if word != "time")
    if not space:
        space = [axis for axis in _mapped(shape, lines) if axis not in (*time_axis, *counted)]
    space = space or [axis for axis in _space(shape) if axis not in (*time_axis, *counted)]
    rest = [axis for axis in range(len(shape)) if axis not in space]
    channel = None
    listed = {lengths[0] for lengths in lines.values() if len(lengths) == 1}  # places or times, not channels
    unlisted = [axis for axis in rest if axis > 0 and shape[axis] not in listed]  # the first is never channels
    if space and len(rest) >= 2 and unlisted:
        short = min(unlisted, key=lambda axis: shape[axis])
        if shape[short] <= FEW and (len(rest) == 3 or short > max(space)):
            channel = short
            rest.remove(short)
    while len(rest) > 2 and len(space) < 3:  # a grid of unequal sides: the axis beside the longest one is space too
        beyond = [axis for axis in rest if axis not in (*time_axis, *counted) and (not space or axis < space[0])]
        if not beyond:
            return None
        space.insert(0, max(beyond))
        rest.remove(max(beyond))
    if not space or not 1 <= len(rest) <= 2:
        return None
    called = [named[axis] for axis in space if axis in named]
    free = iter([word for word in "xyz" if word not in called])
    words = {axis: named.get(axis) or next(free) for axis in space} | ({} if channel is None else {channel: "channel"})
    last = time_axis[0] if time_axis and time_axis[0] in rest else rest[-1]
    words |= {axis: "time" if axis == last else "batch" for axis in rest}
    return " ".join(words[axis] for axis in range(len(shape)))


def _line(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an array beside the state; in MATLAB, lists are columns or rows."""
    return tuple(n for n in lengths if n > 1) if sum(n > 1 for n in lengths) == 1 else lengths


def _fits(shape: tuple[int, ...], lengths: tuple[int, ...]) -> list[int]:
    """Axes that a list may belong to, by its length."""
    return [axis for axis, length in enumerate(shape) if lengths == (length,)]


def _named(shape: tuple[int, ...], beside: Mapping[str, tuple[int, ...]]) -> dict[int, str]:
    """Axes that a coordinate array tells, by its name and its length; none if two have one name."""
    words: dict[int, str] = {}
    for name, lengths in beside.items():
        found, axes = COORDINATE.fullmatch(name), _fits(shape, lengths)
        word = "" if found is None else "time" if found[1].lower().startswith("t") else found[1].lower()
        if word != "time" and len(axes) == 2 and axes[0] == 0:
            axes = axes[1:]  # as many trajectories as places
        if word and len(axes) == 1 and axes[0] not in words:
            words[axes[0]] = word
    return words if len(set(words.values())) == len(words) else {}


def _told(shape: tuple[int, ...], named: Mapping[int, str]) -> str | None:
    """A pattern whose time and space axes have a coordinate array each; at most a batch and channels are left over."""
    words = dict(named)
    rest = [axis for axis in range(len(shape)) if axis not in words]
    if "time" not in words.values() or "x" not in words.values():
        return None
    if len(rest) == 2 and min(shape[axis] for axis in rest) <= FEW:
        channel = min(rest[::-1], key=lambda axis: shape[axis])
        words |= {axis: "channel" if axis == channel else "batch" for axis in rest}
    elif len(rest) == 1:
        words[rest[0]] = "batch"
    return " ".join(words[axis] for axis in range(len(shape))) if len(words) == len(shape) else None


def _mapped(shape: tuple[int, ...], beside: Mapping[str, tuple[int, ...]]) -> list[int]:
    """Neighbouring axes that a smaller array has too: those of space, if it is the only place where they fit."""
    for lengths in beside.values():
        count = len(lengths)
        places = [first for first in range(len(shape) - count + 1) if shape[first : first + count] == lengths]
        if 2 <= count <= min(3, len(shape) - 1) and len(places) == 1:
            return list(range(places[0], places[0] + count))
    return []


def _space(shape: tuple[int, ...]) -> list[int]:
    """The longest run of equal lengths, or the longest axis that is not the first."""
    runs: list[list[int]] = []
    for axis, length in enumerate(shape):
        if runs and shape[runs[-1][-1]] == length and length >= LEAST and len(runs[-1]) < 3:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    best = max(runs, key=len)
    if len(best) > 1:
        return best
    # The last axis, unless another is much longer: more frames than points are common, fewer than half are not.
    return [max(range(1, len(shape)), key=lambda axis: shape[axis] * (2 if axis == len(shape) - 1 else 1))]


def option_words(options: ReadOptions, *, prefix: str, without: Collection[str] = ()) -> list[str]:
    """What the user said about a file, as words of a command."""
    words = []
    for name in [field.name for field in fields(ReadOptions) if field.name in options.given - set(without)]:
        value = getattr(options, name)
        words += [f"{prefix}{name}", *(str(item) for item in (value if isinstance(value, tuple) else (value,)))]
    return words


def useful_parameters(data: Trajectories) -> list[str]:
    """Parameters that tell trajectories apart and are no mere numbers of trajectories, such as seeds."""
    return [
        name
        for name, values in data.parameters.items()
        if values.ndim == 1
        and np.isfinite(values).all()
        and np.ptp(values) > 0
        and MEANING.get(name.lower(), name.lower()) not in NUMBERING
        and name.isprintable()
        and not name.startswith("-")  # would be an option of the command
    ][:MOST_PARAMETERS]


def train_command(path: Path, options: ReadOptions, sets: Mapping[str, Trajectories]) -> str:
    """The command that trains on a file as it was just read."""
    words = ["ssno", "train", str(path), *option_words(options, prefix="--data.")]
    data = next(iter(sets.values()))
    if sum(len(part) for part in sets.values()) < 3 and len(data.times) >= 3 * SHORTEST:
        words += ["--data.segment", str(max(SHORTEST, len(data.times) // 20))]
    if WHOLE in sets and len(data) < dataset_conventions(data.conventions).published:  # a part of a published dataset
        words += ["--data.splits", *map(str, FRACTIONS)]
    return shlex.join(words)


# What `--resample` costs: the ends of longer trajectories, and whatever happens between the new frames.
#
# The new frames of one trajectory, interpolated back to the times of the stored ones, are compared with these:
#
#     lost = |stored - back|^2 / |stored - its mean over time|^2


def resampling_note(data: Trajectories, view: Trajectories) -> str:
    """A sentence about what resampling cuts from a set, "" if it is not resampled. `view` is a sample to read."""
    blocks = [part.state[0] for part in data.parts if part.state[0].resampling is not None]
    if not blocks:
        return ""
    end, step = float(data.times[-1]), float(data.times[1] - data.times[0])
    stored_times = [row for block in blocks for row in block.resampling.stored_times]  # type: ignore[union-attr]
    late, stored = sum(int((row > end + step / 2).sum()) for row in stored_times), sum(map(len, stored_times))
    every, fastest = (measured(f"{time:g}", data.units.time) for time in (step, 2 * step))
    sentence = (
        f"Resampled every {every}, {len(data.times)} frames: {late} of {stored} stored frames lie after the end of the "
        f"shortest and are cut, variations with periods under {fastest} are lost"
    )
    share = lost_between(view)
    energy = "" if share is None else f": {round(100 * share, 2):g} % of the energy of changes (first trajectory)"
    return f"{sentence}{energy}."


def lost_between(view: Trajectories) -> float | None:
    """The part of the energy of changes of the first trajectory that the new frames miss; None if nothing changes."""
    part, row, first = (int(value) for value in view.rows[0])
    block: Block = view.parts[part].state[0]
    assert block.resampling is not None
    frames = slice(first + int(view.frame_index[0]), first + int(view.frame_index[-1]) + 1)
    rows, taken = slice(row, row + 1), block.resampling.source(frames)
    stored = replace(block, resampling=None).read(rows, taken, view.steps).astype(np.float64)
    made = block.read(rows, frames, view.steps).astype(np.float64)
    stored_times, times = block.resampling.stored_times, block.resampling.times[frames]
    moments = stored_times[row if len(stored_times) > 1 else 0, taken]
    inside = (moments >= times[0]) & (moments <= times[-1])
    if len(times) < 2 or not inside.any():
        return None
    back = Resampling(times[None], moments[inside]).interpolate(made, slice(0, 1), slice(None))
    stored = stored[:, inside]
    changes = float(np.square(stored - stored.mean(1, keepdims=True)).sum())
    return float(np.square(stored - back).sum()) / changes if changes > 0 and np.isfinite(changes) else None
