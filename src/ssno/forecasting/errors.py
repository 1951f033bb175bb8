"""All errors of a batch of forecasts whose truth is known, by the names that tables and files use.

    rel_l2, rel_l2/FIELD, rel_l2_step        `ssno.metrics.relative`
    nrmse, vrmse                             `ssno.metrics.root_mean_square`, mean over frames and fields
    spectral_error/low, /mid, /high          `ssno.metrics.spectral`
    correlation_time, valid_time             `ssno.metrics.correlation`, at most the time of the last scored frame
    mean_drift, energy_drift                 `ssno.metrics.conserved`, mean over frames and fields

It does not matter who made the forecast: a model, a rule or a solver. Points without data count in none of them, and
there is no spectral error then: the edge of an obstacle has a spectrum of its own.

Axes: b trajectory, t frame, c field.
"""

import math
from collections.abc import Collection, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.metrics.conserved import energy_drift, mean_drift
from ssno.metrics.correlation import correlation_time, valid_time
from ssno.metrics.points import Inside
from ssno.metrics.relative import frame_errors, trajectory_errors, with_room
from ssno.metrics.root_mean_square import nrmse, vrmse
from ssno.metrics.spectral import spectral_errors

PER_FRAME_AND_FIELD = {"nrmse": nrmse, "vrmse": vrmse, "mean_drift": mean_drift, "energy_drift": energy_drift}
FORECAST_METRICS = (
    *("rel_l2", "nrmse", "vrmse", "spectral_error"),
    *("correlation_time", "valid_time", "mean_drift", "energy_drift"),
)


def forecast_errors(
    forecast: Float[Tensor, "b t c *grid"],
    truth: Float[Tensor, "b t c *grid"],
    *,
    fields: Sequence[str],
    elapsed: Sequence[float],
    spacing: Sequence[float],
    inside: Inside = None,
    metrics: Collection[str] = FORECAST_METRICS,
) -> dict[str, Tensor]:
    """The chosen errors of each trajectory (of each of its frames for `rel_l2_step`). What is not finite is infinite.

    `elapsed` is the time of each frame since the last given one, `inside` says where there are data. `rel_l2` and
    `rel_l2_step` are always there.
    """
    if inside is not None:
        forecast, truth = (field.masked_fill(~inside, 0.0) for field in (forecast, truth))
    forecast, truth = with_room(forecast, truth)
    errors = {"rel_l2": trajectory_errors(forecast, truth), "rel_l2_step": frame_errors(forecast, truth)}
    if len(fields) > 1:
        for channel, name in enumerate(fields):
            errors[f"rel_l2/{name}"] = trajectory_errors(forecast[:, :, channel, None], truth[:, :, channel, None])
    for name, metric in PER_FRAME_AND_FIELD.items():
        if name in metrics:
            errors[name] = metric(forecast, truth, inside=inside).mean((1, 2))
    if "spectral_error" in metrics and inside is None:
        bands = spectral_errors(forecast, truth, spacing=spacing)
        errors |= {f"spectral_error/{name}": values for name, values in bands.items()}
    since = torch.tensor(elapsed, dtype=torch.float64)  # metrics take it to where their fields are
    if "correlation_time" in metrics:
        errors["correlation_time"] = correlation_time(forecast, truth, since, inside=inside).clamp_max(elapsed[-1])
    if "valid_time" in metrics:
        errors["valid_time"] = valid_time(forecast, truth, since).clamp_max(elapsed[-1])
    return {name: torch.where(values.isfinite(), values, math.inf) for name, values in errors.items()}
