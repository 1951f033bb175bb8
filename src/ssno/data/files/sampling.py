"""A sample of a set that is cheap to read: trajectories, frames and points, chosen by how they lie in their file.

A frame of an array whose last axis is time is spread over the whole file, one number here and one there, and the
system reads a window around each of them. `spread` counts those windows from the strides, and `sampled` takes fewer
points or frames where they would be too many.
"""

from dataclasses import replace

import numpy as np

from ssno.data.files.blocks import Block
from ssno.data.trajectories import Trajectories, trajectory_bytes

WINDOW = 64 * 2**10
"""Bytes of a file that come into memory around every place that is read."""
FEWEST_POINTS = 16
"""Along the longest axis: no coarser, whatever it takes."""
AGAIN = 4
"""Windows in all may take so many times what a sample holds: most of them are in memory already."""


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
