"""Root mean square errors of single fields and frames, divided by the size of the truth.

    nRMSE = sqrt( <(prediction - truth)^2> / <truth^2> )                      as PDEBench and APEBench report it
    VRMSE = sqrt( <(prediction - truth)^2> / (var(truth) + 1e-7) )            as The Well reports it

< > is the mean over the points of the grid, var the variance over them with N - 1. A forecast of the spatial mean has
VRMSE 1, so VRMSE does not reward a large constant background. Averages over frames, fields and trajectories come after
the ratio, unlike `ssno.metrics.relative`, where one ratio is taken over all frames.

Axes: b trajectory, t frame, c field.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.metrics.relative import FLOOR

EPS = 1e-7


def nrmse(prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"]) -> Float[Tensor, "b t c"]:
    """Root mean square error over root mean square of the truth, of each frame and field."""
    scale = truth.flatten(3).square().mean(-1).sqrt()
    return rmse(prediction, truth) / scale.clamp_min(FLOOR)


def vrmse(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"], *, eps: float = EPS
) -> Float[Tensor, "b t c"]:
    """Root mean square error over the spatial standard deviation of the truth, of each frame and field."""
    return rmse(prediction, truth) / (truth.flatten(3).var(-1) + eps).sqrt()


def rmse(prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"]) -> Float[Tensor, "b t c"]:
    """Root mean square error over the points of each frame and field, in the units of the field."""
    return torch.sqrt((prediction - truth).flatten(3).square().mean(-1))
