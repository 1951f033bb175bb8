"""A forecast that stopped being one, and the words for it: the one place that names the reasons.

The rule is in `ssno.metrics.runaway`; `ssno.forecasting.watch` and `ssno.forecasting.scores` find them.
"""

from dataclasses import dataclass
from typing import Literal

from ssno.metrics.runaway import FACTOR

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
