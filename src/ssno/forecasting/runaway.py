"""Watch a forecast for the step at which it stops being one.

    not finite   a value of the predicted frame is NaN or infinite
    runaway      the largest value, in normalised units, exceeds 10 max(1, largest value of the given frames)

Normalised units make the bound fit any field: with z-scores it means at least ten standard deviations of the training
data, with [0, 1] normalisation ten times their range. A runaway forecast goes on; most end up not finite soon after.

Axes: b trajectory, t frame, c field, then the grid.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.data.normalise import AffineMap
from ssno.forecasting.scores import Runaway

LIMIT = 10.0
NOT_FINITE, TOO_LARGE = "not finite", "runaway"


class RunawayWatch:
    """Hand it every predicted frame in turn; it keeps the first step of each kind of trouble per trajectory."""

    def __init__(self, units: AffineMap, given: Float[Tensor, "b t c *grid"]):
        self.units = units
        self.bound = LIMIT * units.encode(given).abs().flatten(1).amax(1).clamp_min(1.0)
        self.steps = 0
        self.first = {reason: torch.full((len(given),), -1) for reason in (TOO_LARGE, NOT_FINITE)}

    def look_at(self, frame: Float[Tensor, "b c *grid"]) -> None:
        """The next predicted frame, in physical units."""
        size = self.units.encode(frame[:, None]).abs().flatten(1).amax(1)
        for reason, seen in ((TOO_LARGE, size > self.bound), (NOT_FINITE, ~size.isfinite())):
            first = self.first[reason]
            first[seen & (first < 0)] = self.steps
        self.steps += 1

    def found(self, *, first_trajectory: int = 0) -> tuple[Runaway, ...]:
        """The troubles so far, by trajectory, counted from `first_trajectory`, then by step; steps count from 0."""
        seen = [
            Runaway(first_trajectory + row, int(first[row]), reason)
            for reason, first in self.first.items()
            for row in (first >= 0).nonzero().flatten().tolist()
        ]
        return tuple(sorted(seen, key=lambda trouble: (trouble.trajectory, trouble.step, trouble.reason)))
