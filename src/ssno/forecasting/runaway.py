"""Watch a forecast for the step at which it stops being one, by the rule of `ssno.metrics.runaway`.

Without the truth, what a field is known to take is the largest of its given values and of |shift| + scale, the usual
size of the training data. A runaway forecast goes on; most end up not finite soon after.

Axes: b trajectory, t frame, c field, then the grid.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.data.normalise import AffineMap
from ssno.forecasting.scores import Runaway
from ssno.metrics.runaway import NEVER, largest, runaway_step

NOT_FINITE, TOO_LARGE = "not finite", "runaway"


class RunawayWatch:
    """Hand it every predicted frame in turn; it keeps the first step of each kind of trouble per trajectory."""

    def __init__(self, units: AffineMap, given: Float[Tensor, "b t c *grid"]):
        self.usual = torch.maximum(largest(given), (units.shift.abs() + units.scale.abs()).to(given))
        self.steps = 0
        self.first = {reason: torch.full((len(given),), NEVER) for reason in (TOO_LARGE, NOT_FINITE)}

    def look_at(self, frame: Float[Tensor, "b c *grid"]) -> None:
        """The next predicted frame, in physical units."""
        gone = (runaway_step(frame[:, None], self.usual) != NEVER).cpu()
        broken = ~frame.flatten(1).isfinite().all(1).cpu()
        for reason, seen in ((TOO_LARGE, gone & ~broken), (NOT_FINITE, broken)):
            first = self.first[reason]
            first[seen & (first == NEVER)] = self.steps
        self.steps += 1

    def found(self, *, first_trajectory: int = 0) -> tuple[Runaway, ...]:
        """The troubles so far, by trajectory, counted from `first_trajectory`, then by step; steps count from 0."""
        seen = [
            Runaway(first_trajectory + row, int(first[row]), reason)
            for reason, first in self.first.items()
            for row in (first != NEVER).nonzero().flatten().tolist()
        ]
        return tuple(sorted(seen, key=lambda trouble: (trouble.trajectory, trouble.step, trouble.reason)))
