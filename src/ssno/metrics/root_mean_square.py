"""Root mean square errors of single fields and frames, divided by the size of the truth.

    nRMSE = sqrt( <(prediction - truth)^2> / <truth^2> )                      as PDEBench and APEBench report it
    VRMSE = sqrt( <(prediction - truth)^2> / (var(truth) + 1e-7) )            as The Well reports it

< > is the mean over the points of the grid, var the variance over them with N - 1. A forecast of the spatial mean has
VRMSE 1, so VRMSE does not reward a large constant background. Averages over frames, fields and trajectories come after
the ratio, unlike `ssno.metrics.relative`, where one ratio is taken over all frames. `inside` says which points count.

Axes: b trajectory, t frame, c field.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.metrics.points import Inside, centred, mean_over_points
from ssno.metrics.relative import over

EPS = 1e-7


def nrmse(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"], *, inside: Inside = None
) -> Float[Tensor, "b t c"]:
    """Root mean square error over root mean square of the truth, of each frame and field."""
    scale = mean_over_points(truth.square(), inside).sqrt()
    return over(rmse(prediction, truth, inside=inside), scale)


def vrmse(
    prediction: Float[Tensor, "b t c *grid"],
    truth: Float[Tensor, "b t c *grid"],
    *,
    inside: Inside = None,
    eps: float = EPS,
) -> Float[Tensor, "b t c"]:
    """Root mean square error over the spatial standard deviation of the truth, of each frame and field."""
    variance = mean_over_points(centred(truth, inside).square(), inside, less=1)
    return rmse(prediction, truth, inside=inside) / (variance + eps).sqrt()


def rmse(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"], *, inside: Inside = None
) -> Float[Tensor, "b t c"]:
    """Root mean square error over the points of each frame and field, in the units of the field."""
    return torch.sqrt(mean_over_points((prediction - truth).square(), inside))
