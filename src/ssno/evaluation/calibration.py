"""Is an ensemble as uncertain as it says? Coverage of its intervals, and its spread against its error.

An ensemble of m members gives a mean and a standard deviation s (with m - 1) at every point. If truth and members were
draws from one Gaussian, then

    (truth - mean) / (s sqrt(1 + 1/m))  has Student's t distribution with m - 1 degrees of freedom,
    E (truth - mean)^2 = (1 + 1/m) E s^2.

So the central interval  mean +- t_p s sqrt(1 + 1/m)  holds the truth with probability p (coverage), for any number of
members, and  spread = sqrt((1 + 1/m) <s^2>)  equals the error of the mean (spread-skill). An ensemble whose observed
coverage lies below the nominal one, or whose ratio lies below 1, is too sure of itself.

Axes: m member, b trajectory, t frame, c field, then the grid.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base.device import float64
from ssno.evaluation.student import stdtrit

NOMINAL = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Calibration:
    """How honest an ensemble is.

    `observed[i]` of the true values lie in the central interval of probability `nominal[i]`; `spread[t]` is what the
    ensemble says its error is at predicted frame t, `error[t]` what it is (both root mean squares, normalised units).
    """

    nominal: tuple[float, ...]
    observed: tuple[float, ...]
    spread: tuple[float, ...]
    error: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Spread over error, all frames together: 1 is honest, below 1 too sure."""
        spread, error = (sum(value**2 for value in values) for values in (self.spread, self.error))
        return (spread / error) ** 0.5 if error else float("inf")


@dataclass(frozen=True)
class CalibrationSums:
    """What a batch of trajectories adds to a calibration: sums, so that batches can be added up."""

    inside: Float[Tensor, " p"]
    values: int
    variance: Float[Tensor, " t"]
    square: Float[Tensor, " t"]


def batch_sums(members: Float[Tensor, "m b t c *grid"], truth: Float[Tensor, "b t c *grid"]) -> CalibrationSums:
    """Sums over one batch."""
    count = len(members)
    if count < 2:
        raise ValueError(f"`members` must hold at least 2 forecasts to have a spread, got {count}.")
    members, truth = float64(members), float64(truth)
    difference = (truth - members.mean(0)).abs()
    variance = members.var(0) * (1 + 1 / count)
    widths = torch.tensor(stdtrit(count - 1, [(1 + level) / 2 for level in NOMINAL]))  # quantiles of Student's t
    # A difference that is not finite lies in no interval: comparisons with NaN are false.
    inside = torch.stack([(difference <= width * variance.sqrt()).sum() for width in widths]).double()
    others = tuple(dim for dim in range(truth.ndim) if dim != 1)
    return CalibrationSums(inside, truth.numel(), variance.sum(others), difference.square().sum(others))


def finish(batches: Sequence[CalibrationSums]) -> Calibration:
    """Add batches up."""
    inside, variance, square = (
        torch.stack([getattr(batch, name) for batch in batches]).sum(0) for name in ("inside", "variance", "square")
    )
    values = sum(batch.values for batch in batches)
    per_frame = values / len(square)
    return Calibration(
        nominal=NOMINAL,
        observed=tuple((inside / values).tolist()),
        spread=tuple((variance / per_frame).sqrt().tolist()),
        error=tuple((square / per_frame).sqrt().tolist()),
    )
