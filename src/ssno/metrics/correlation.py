"""How long a forecast is good for: the time until it decorrelates, or until its error is too large.

    correlation_time   first time at which the Pearson correlation of forecast and truth falls under a threshold
    valid_time         first time at which |prediction - truth| / |truth| exceeds a threshold

The correlation of a frame is taken over the points of the grid, or over those `inside`, field by field, then averaged
over fields. A frame that is not finite has failed. A forecast that never fails has time infinity here; means cut it off
at the forecast's end.

Axes: b trajectory, t frame, c field.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ssno.base.device import device_with_float64, float64
from ssno.metrics.points import Inside, centred
from ssno.metrics.relative import frame_errors

CORRELATED = 0.8
VALID = 0.5


def correlation_time(
    prediction: Float[Tensor, "b t c *grid"],
    truth: Float[Tensor, "b t c *grid"],
    times: Float[Tensor, " t"],
    *,
    inside: Inside = None,
    threshold: float = CORRELATED,
) -> Float[Tensor, " b"]:
    """First of `times` at which the correlation, averaged over fields, is under the threshold; infinity if never."""
    if not -1 <= threshold <= 1:
        raise ValueError(f"`threshold` of a correlation must lie between -1 and 1, got {threshold}.")
    return first_time(~(pearson(prediction, truth, inside=inside).mean(2) >= threshold), times)


def valid_time(
    prediction: Float[Tensor, "b t c *grid"],
    truth: Float[Tensor, "b t c *grid"],
    times: Float[Tensor, " t"],
    *,
    threshold: float = VALID,
) -> Float[Tensor, " b"]:
    """First of `times` at which the relative error of a frame exceeds the threshold; infinity if never."""
    if not threshold > 0:
        raise ValueError(f"`threshold` of a relative error must be positive, got {threshold}.")
    return first_time(~(frame_errors(prediction, truth) <= threshold), times)


def pearson(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"], *, inside: Inside = None
) -> Float[Tensor, "b t c"]:
    """Correlation over the points of each frame and field. Two flat fields are fully correlated."""
    p, u = (centred(float64(field), inside).flatten(3) for field in (prediction, truth))
    p_norm, u_norm = torch.linalg.vector_norm(p, dim=-1), torch.linalg.vector_norm(u, dim=-1)
    both_flat = (p_norm == 0) & (u_norm == 0)
    product = torch.where(p_norm * u_norm == 0, 1.0, p_norm * u_norm)  # a flat field correlates with nothing: 0 / 1
    return torch.where(both_flat, 1.0, (p * u).sum(-1) / product)


def first_time(failed: Bool[Tensor, "b t"], times: Float[Tensor, " t"]) -> Float[Tensor, " b"]:
    """The time of the first failed frame of each trajectory; infinity if none failed."""
    failed = failed.to(device_with_float64(failed.device))
    return torch.where(failed, times.to(failed.device), torch.inf).amin(1)
