"""A forecast that stopped being one, and the words for it: the one place that names the reasons.

The rule is in `ssno.forecasting.divergence`; `ssno.forecasting.watch` and `ssno.forecasting.scores` find them.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

# Where a forecast stops being one: the first frame that is not finite, or far larger than the fields it forecasts.
#
# Axes: b trajectory, t frame, c field.

NEVER = -1
FACTOR = 10.0
"""A forecast has run away when a value exceeds this many times the largest that its field is known to take."""


def largest(frames: Float[Tensor, "b t c *grid"]) -> Float[Tensor, "b c"]:
    """The largest absolute value of each field over all frames."""
    return frames.flatten(3).abs().amax((1, 3))


def runaway_step(prediction: Float[Tensor, "b t c *grid"], usual: Float[Tensor, "b c"]) -> Int[Tensor, " b"]:
    """The first frame of each trajectory with a value that is not finite or above `FACTOR` times `usual`; -1 if none.

    `usual` is the largest absolute value that each field is known to take. A field known only as zero has no scale, so
    only values that are not finite count there.
    """
    limit = torch.where(usual > 0, FACTOR * usual, torch.inf)[:, None]  # b 1 c
    size = prediction.flatten(3).abs().amax(3)
    gone = (~prediction.flatten(3).isfinite().all(3) | (size > limit)).any(2)  # b t
    return torch.where(gone.any(1), gone.int().argmax(1), NEVER)


# A forecast that stopped being one, and the words for it: the one place that names the reasons.

NOT_FINITE, TOO_LARGE = "not finite", "runaway"
OnDivergence = Literal["stop", "continue"]
"""What to do about a forecast that diverges: keep what was good, or write everything as it came."""


@dataclass(frozen=True)
class Divergence:
    """A diverged forecast, not finite or ten times larger than the data: which trajectory, which step (from 0), why."""

    trajectory: int
    step: int
    reason: str

    def words(self) -> str:
        """A line for readers, who count steps from 1."""
        what = self.reason if self.reason == NOT_FINITE else f"beyond {FACTOR:g} times any known value ({TOO_LARGE})"
        return f"trajectory {self.trajectory} is {what} from step {self.step + 1} on"


class ForecastDiverged(RuntimeError):
    """A forecast diverged at its first step, so that nothing of it is worth keeping."""

    def __init__(self, first: Divergence):
        super().__init__(first)
        self.first = first

    def __str__(self) -> str:
        return (
            f"{self.first.words()}, so there is nothing good to keep, and nothing was written. `on_divergence` "
            "continue (--on-divergence continue) goes on with what comes."
        )
