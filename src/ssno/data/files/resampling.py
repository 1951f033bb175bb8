"""Frames at equally spaced times from frames at any times: linear interpolation, trajectory by trajectory.

    u(t) = (1 - w) u_i + w u_{i+1},      w = (t - t_i) / (t_{i+1} - t_i),      t counted from the first frame of its own

Axes: n trajectory, t frame, c channel, then the space axes.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ssno.base.multiples import in_units
from ssno.data.errors import DataError
from ssno.data.files.arrays import Rows

MOST_FRAMES = 10**6
ROUNDING = 1e-6  # of a step: the last frame counts although its time was rounded


@dataclass(frozen=True, eq=False)
class Resampling:
    """From stored `clocks` (one for every trajectory, or one for all) to `times`; both begin with zero."""

    clocks: Float[np.ndarray, "n t"]
    times: Float[np.ndarray, " m"]

    @classmethod
    def every(cls, step: float, clocks: Float[np.ndarray, "n t"], *, what: str) -> "Resampling":
        """Frames `step` apart, from the first of each trajectory to the end of the shortest."""
        if not np.isfinite(clocks).all() or (np.diff(clocks) <= 0).any():
            raise DataError(f"{what} must be finite and increasing to be resampled.")
        clocks = clocks - clocks[:, :1]
        shortest = float(clocks[:, -1].min())
        count = int(in_units(shortest, step, rounding=ROUNDING)) + 1
        if count < 2:
            raise DataError(f"`resample` is {step:g}, but the shortest trajectory lasts {shortest:g}. Choose less.")
        if count > MOST_FRAMES:
            raise DataError(f"`resample` is {step:g}, which makes {count} frames of {shortest:g}. Choose more.")
        return cls(clocks, np.minimum(step * np.arange(count), shortest))

    def source(self, frames: slice) -> slice:
        """Stored frames between which the wanted ones lie, in every trajectory."""
        wanted = self.times[frames]
        before = [int(np.searchsorted(clock, wanted.min(), side="right")) - 1 for clock in self.clocks]
        after = [int(np.searchsorted(clock, wanted.max(), side="left")) for clock in self.clocks]
        last = self.clocks.shape[1] - 1
        return slice(min(max(0, min(before)), last - 1), min(last, max(*after, 1)) + 1)

    def interpolate(
        self, stored: Float[np.ndarray, "n s c *grid"], rows: Rows, frames: slice
    ) -> Float[np.ndarray, "n t c *grid"]:
        """The wanted frames of some trajectories from the stored frames `source(frames)`."""
        wanted, taken = self.times[frames], self.source(frames)
        clocks = self.clocks[:, taken] if len(self.clocks) == 1 else self.clocks[rows][:, taken]
        clocks = np.broadcast_to(clocks, (len(stored), clocks.shape[1]))
        out = np.empty((len(stored), len(wanted), *stored.shape[2:]), stored.dtype)
        for values, clock, result in zip(stored, clocks, out, strict=True):
            index = np.clip(np.searchsorted(clock, wanted, side="right") - 1, 0, len(clock) - 2)
            weight = ((wanted - clock[index]) / (clock[index + 1] - clock[index])).astype(stored.dtype)
            for frame, (i, w) in enumerate(zip(index, weight, strict=True)):
                if w in (0, 1):  # a stored frame is taken as it is: its neighbour may have gaps that it has not
                    result[frame] = values[i + int(w)]
                else:
                    result[frame] = (1 - w) * values[i] + w * values[i + 1]
        return out
