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

# Means over the points of a frame, or over those of them that have data: obstacles and land do not count.
#
# Axes: b trajectory, t frame, c field.

Inside = Bool[Tensor, "b t 1 *grid"] | None
"""Where there are data; None if everywhere."""


def sum_over_points(values: Float[Tensor, "b t c *grid"], inside: Inside = None) -> Float[Tensor, "b t c"]:
    """The sum over the points of each frame and field."""
    return (values if inside is None else values * inside).flatten(3).sum(-1)


def mean_over_points(
    values: Float[Tensor, "b t c *grid"], inside: Inside = None, *, less: int = 0
) -> Float[Tensor, "b t c"]:
    """The mean over the points of each frame and field; `less` is taken off their number, 1 for a variance."""
    if inside is None and not less:
        return values.flatten(3).mean(-1)
    count = values[0, 0, 0].numel() if inside is None else inside.flatten(3).sum(-1)
    return sum_over_points(values, inside) / (count - less)


def centred(values: Float[Tensor, "b t c *grid"], inside: Inside = None) -> Float[Tensor, "b t c *grid"]:
    """Each frame and field less its mean; 0 at points without data."""
    mean = mean_over_points(values, inside)
    apart = values - mean.view(*mean.shape, *(1,) * (values.ndim - 3))
    return apart if inside is None else apart * inside


# Relative l2 errors: the numbers that the paper and its neighbours report.
#
#     rel_l2       per trajectory  |prediction - truth| / |truth|  over all frames, channels and points; then the mean
#     rel_l2_step  the same norm frame by frame; the mean over trajectories gives one number per frame
#
# Both are free of the batch size: a mean over trajectories of a ratio per trajectory. A truth of exactly zero has no
# relative error; the tiny floor keeps the result finite there and changes nothing elsewhere. Fields in physical units
# may have squares beyond single precision: `with_room` comes first.
#
# On a sphere points stand for areas of very different size: `area` weighs their squares.
#
# Axes: b trajectory, t frame, c field.

FLOOR = 1e-12
LARGE = 1e15
"""Sums of squares of larger numbers, or of numbers below its inverse, may leave the range of single precision."""

Area = Float[Tensor, "..."] | None
"""Weight of each point, to broadcast over the grid axes; None if all weigh the same."""


def trajectory_errors(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"], *, area: Area = None
) -> Float[Tensor, " b"]:
    """|prediction - truth| / |truth| of each trajectory, over all its frames, channels and points."""
    difference = torch.linalg.vector_norm(weighed(prediction - truth, area).flatten(1), dim=1)
    return over(difference, torch.linalg.vector_norm(weighed(truth, area).flatten(1), dim=1))


def frame_errors(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"], *, area: Area = None
) -> Float[Tensor, "b t"]:
    """|prediction - truth| / |truth| of each frame, over its channels and points."""
    difference = torch.linalg.vector_norm(weighed(prediction - truth, area).flatten(2), dim=2)
    return over(difference, torch.linalg.vector_norm(weighed(truth, area).flatten(2), dim=2))


def over(difference: Float[Tensor, "*shape"], scale: Float[Tensor, "..."]) -> Float[Tensor, "*shape"]:
    """A difference over the scale of the truth, where that has one."""
    return difference / torch.where(scale > 0, scale, FLOOR)


def with_room(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"]
) -> tuple[Float[Tensor, "b t c *grid"], Float[Tensor, "b t c *grid"]]:
    """Both as they are, or in double precision if the truth is so large or small that its squares need it."""
    largest = truth.abs().max().item() if truth.numel() else 1.0
    return (prediction, truth) if 1 / LARGE < largest < LARGE else (float64(prediction), float64(truth))


def weighed(field: Float[Tensor, "*shape"], area: Area) -> Float[Tensor, "*shape"]:
    """A field whose plain sum of squares is the sum weighed by area."""
    return field if area is None else field * area.sqrt().to(field)


# Root mean square errors of single fields and frames, divided by the size of the truth.
#
#     nRMSE = sqrt( <(prediction - truth)^2> / <truth^2> )                      as PDEBench and APEBench report it
#     VRMSE = sqrt( <(prediction - truth)^2> / (var(truth) + 1e-7) )            as The Well reports it
#
# < > is the mean over the points of the grid, var the variance over them with N - 1. A forecast of the spatial mean has
# VRMSE 1, so VRMSE does not reward a large constant background. Averages over frames, fields and trajectories come
# after the ratio, unlike `ssno.forecasting.metrics`, where one ratio is taken over all frames. `inside` says which
# points count.
#
# Axes: b trajectory, t frame, c field.

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


# Quantities that many equations conserve or control, compared with the truth: mean and energy of every field.
#
#     mean    m = <u>            drift  |m(prediction) - m(truth)| / rms(truth)
#     energy  E = <u^2> / 2      drift  |E(prediction) - E(truth)| / <E(truth)>
#
# < > is the mean over the points of the grid, or over those `inside`; rms and mean energy of the truth run over all
# frames of the trajectory, so that a mean of zero is no difficulty. The truth need not conserve anything: a forecast
# that loses energy exactly as the truth does has no drift.
#
# Axes: b trajectory, t frame, c field.


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


# How long a forecast is good for: the time until it decorrelates, or until its error is too large.

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
