"""Quantities that many equations conserve or control, compared with the truth: mean and energy of every field.

    mean    m = <u>            drift  |m(prediction) - m(truth)| / rms(truth)
    energy  E = <u^2> / 2      drift  |E(prediction) - E(truth)| / <E(truth)>

< > is the mean over the points of the grid, or over those `inside`; rms and mean energy of the truth run over all
frames of the trajectory, so that a mean of zero is no difficulty. The truth need not conserve anything: a forecast that
loses energy exactly as the truth does has no drift.

Axes: b trajectory, t frame, c field.
"""

from jaxtyping import Float
from torch import Tensor

from ssno.base.device import float64
from ssno.metrics.points import Inside, mean_over_points
from ssno.metrics.relative import over


def mean_drift(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"], *, inside: Inside = None
) -> Float[Tensor, "b t c"]:
    """How far the mean over the grid is off, of each frame and field, relative to the rms of the truth."""
    difference = mean_over_points(float64(prediction) - float64(truth), inside).abs()
    scale = (2 * energy(truth, inside)).mean(1, keepdim=True).sqrt()
    return over(difference, scale)


def energy_drift(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"], *, inside: Inside = None
) -> Float[Tensor, "b t c"]:
    """How far the energy is off, of each frame and field, relative to the truth's mean energy over time."""
    true = energy(truth, inside)
    return over((energy(prediction, inside) - true).abs(), true.mean(1, keepdim=True))


def energy(field: Float[Tensor, "b t c *grid"], inside: Inside = None) -> Float[Tensor, "b t c"]:
    """Half the mean square over the grid, of each frame and field."""
    return mean_over_points(float64(field).square(), inside) / 2
