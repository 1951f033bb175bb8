"""What `--resample` costs: the ends of longer trajectories, and whatever happens between the new frames.

The new frames of one trajectory, interpolated back to the times of the stored ones, are compared with these:

    lost = |stored - back|^2 / |stored - its mean over time|^2
"""

from dataclasses import replace

import numpy as np

from ssno.data.files.blocks import Block
from ssno.data.files.resampling import Resampling
from ssno.data.trajectories import Trajectories
from ssno.data.units import measured


def resampling_note(data: Trajectories, view: Trajectories) -> str:
    """A sentence about what resampling cuts from a set, "" if it is not resampled. `view` is a sample to read."""
    blocks = [part.state[0] for part in data.parts if part.state[0].resampling is not None]
    if not blocks:
        return ""
    end, step = float(data.times[-1]), float(data.times[1] - data.times[0])
    clocks = [clock for block in blocks for clock in block.resampling.clocks]  # type: ignore[union-attr]
    late, stored = sum(int((clock > end + step / 2).sum()) for clock in clocks), sum(map(len, clocks))
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
    clocks, times = block.resampling.clocks, block.resampling.times[frames]
    clock = clocks[row if len(clocks) > 1 else 0, taken]
    inside = (clock >= times[0]) & (clock <= times[-1])
    if len(times) < 2 or not inside.any():
        return None
    back = Resampling(times[None], clock[inside]).interpolate(made, slice(0, 1), slice(None))
    stored = stored[:, inside]
    changes = float(np.square(stored - stored.mean(1, keepdims=True)).sum())
    return float(np.square(stored - back).sum()) / changes if changes > 0 and np.isfinite(changes) else None
