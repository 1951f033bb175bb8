"""Score a forecaster on trajectories whose truth is known.

    rel_l2             rollout error in physical units: per trajectory over all predicted frames, then the mean
    rel_l2_normalised  the same in normalised units
    rel_l2_onestep     one step at a time from true frames (teacher forcing), physical units
    rel_l2_step        rollout error frame by frame

Given frames are never counted. With several fields, `rel_l2/name` is the error of one field alone. These are what
training looks at; `metrics=EVERY` adds those of `ssno.forecasting.scores` and looks for forecasts that run away. On
clouds of points, errors on the wall and of the lift are always there (`ssno.forecasting.cloud_scores`).
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base.device import float64
from ssno.data.trajectories import Frames, Trajectories
from ssno.data.windows import Window, WindowPlan, context_at_steps, next_frames
from ssno.forecasting.cloud_scores import CLOUD_METRICS, CloudScores
from ssno.forecasting.divergence import NEVER, NOT_FINITE, TOO_LARGE, Divergence, largest, runaway_step
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.metrics import (
    Inside,
    correlation_time,
    energy_drift,
    frame_errors,
    mean_drift,
    nrmse,
    trajectory_errors,
    valid_time,
    vrmse,
    weighed,
    with_room,
)
from ssno.forecasting.quadrature_weights import find_outside, hold
from ssno.forecasting.rollout import rollout
from ssno.forecasting.spectra import spectral_errors
from ssno.forecasting.watch import Departure, ForecastWatch, first_departures

# All errors of a batch of forecasts whose truth is known, by the names that tables and files use.
#
#     rel_l2, rel_l2/FIELD, rel_l2_step        `ssno.forecasting.metrics`
#     nrmse, vrmse                             `ssno.forecasting.metrics`, mean over frames and fields
#     spectral_error/low, /mid, /high          `ssno.forecasting.spectra`
#     correlation_time, valid_time             `ssno.forecasting.metrics`, at most the time of the last scored frame
#     mean_drift, energy_drift                 `ssno.forecasting.metrics`, mean over frames and fields
#
# It does not matter who made the forecast: a model, a rule or a solver. Points without data count in none of them, and
# there is no spectral error then: the edge of an obstacle has a spectrum of its own.
#
# Axes: b trajectory, t frame, c field.

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


# Score a forecaster on trajectories whose truth is known.

TRAINING = ("rel_l2", "rel_l2_normalised", "rel_l2_onestep")
SPHERE_METRICS = ("rel_l2_area", "rel_l2_area_squared", "energy_ratio")
"""Of data on a sphere: points weighed by area, normalised units, mean over predicted frames."""
EVERY = (*TRAINING, *FORECAST_METRICS[1:], *SPHERE_METRICS, "runaway", *CLOUD_METRICS)
FOR_CLOUDS = frozenset((*TRAINING, "nrmse", "vrmse", "runaway", *CLOUD_METRICS))
"""The others look along axes of a grid, or along time."""

Predict = Callable[[Frames, range], Tensor]
"""Forecasts of all predicted frames from a batch of whole trajectories; the range says which trajectories."""


@dataclass(frozen=True)
class Scores:
    """Mean errors by name, the error of each scored frame (mean and quartiles), that of each trajectory, and those that
    ran away or left what training saw."""

    means: dict[str, float]
    step_errors: tuple[float, ...]
    trajectory_errors: tuple[float, ...]
    step_quartiles: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    runaways: tuple[Divergence, ...] = ()
    departures: tuple[Departure, ...] = ()


def score(
    forecaster: Forecaster | Ensemble,
    data: Trajectories,
    *,
    batch_size: int = 32,
    metrics: Collection[str] = TRAINING,
) -> Scores:
    """Errors over a set of trajectories; the batch size changes nothing but memory.

    `metrics` are those of training by default; `EVERY` for all, or any choice among them.
    """
    window = forecaster.window
    cloud = CloudScores(data.fields, data.context_fields) if data.geometry.has_wall else None
    area, normalised = data.quadrature_weights, forecaster.normalisers.state.method != "none"

    departures: list[Departure] = []

    def predict(frames: Frames, rows: range) -> Tensor:
        plan = window.plan(frames.state.shape[1])
        given, context = plan.inputs(*frames)
        if "runaway" not in metrics or forecaster.envelope is None:
            return rollout(forecaster, given, len(plan.predicted), context=context, spacing=data.spacing)
        watch = ForecastWatch(forecaster, given, axes=data.axes, geometry=data.geometry, context=context)
        forecast = rollout(
            forecaster, given, len(plan.predicted), context=context, spacing=data.spacing, watch=watch.look_at
        )
        departures.extend(watch.departures(first_trajectory=rows.start))
        return forecast

    def more(frames: Frames, forecast: Tensor, truth: Tensor) -> dict[str, Tensor]:
        plan = window.plan(frames.state.shape[1])
        units = forecaster.units(frames.state[:, plan.given.start : plan.given.stop])
        errors = {}
        if "rel_l2_normalised" in metrics:
            outside = forecaster.outside(frames.context[:, plan.scored.start : plan.scored.stop])
            pair = (hold(units.encode(fields), outside) for fields in (forecast, truth))
            errors["rel_l2_normalised"] = trajectory_errors(*pair)
        if "rel_l2_onestep" in metrics:
            errors["rel_l2_onestep"] = one_step_errors(forecaster, frames, spacing=data.spacing)
        if area is not None and normalised:
            errors |= {
                name: values
                for name, values in sphere_errors(units.encode(forecast), units.encode(truth), area=area).items()
                if name in metrics
            }
        if cloud is not None:
            errors |= cloud.add(forecast, truth, frames, units if normalised else None)
        return errors

    scores = score_forecasts(
        predict, data, window, batch_size=batch_size, metrics=metrics, more=more, device=forecaster.device
    )
    lift = {} if cloud is None else cloud.lift()
    return replace(scores, means={**scores.means, **lift}, departures=first_departures(departures))


def score_forecasts(
    predict: Predict,
    data: Trajectories,
    window: Window,
    *,
    batch_size: int = 32,
    metrics: Collection[str] = EVERY,
    more: Callable[[Frames, Tensor, Tensor], dict[str, Tensor]] | None = None,
    device: torch.device | None = None,
) -> Scores:
    """Errors of forecasts that anyone may have made, a solver for example; `more` adds errors of its own.

    Frames are handed out on `device`, and forecasts are expected there; None leaves them where they were read.
    """
    for name in metrics:
        if name not in EVERY:
            raise ValueError(f"`metrics` must be among {', '.join(EVERY)}; got {name!r}.")
    if data.geometry.is_steady:
        metrics = FOR_CLOUDS & set(metrics)
    plan = window.plan(len(data.times))
    collected: dict[str, list[Tensor]] = {}
    runaways: list[Divergence] = []
    for chosen, read in batches(data, batch_size):
        frames = read if device is None else read.to(device)
        forecast = predict(frames, chosen)
        if "runaway" in metrics:
            runaways += find_runaways(forecast, frames, plan, first=chosen.start)
        forecast = forecast[:, plan.scored.start - plan.predicted.start :]
        truth = frames.state[:, plan.scored.start : plan.scored.stop]
        outside = find_outside(frames.context[:, plan.scored.start : plan.scored.stop], data.mask_channel)
        errors = forecast_errors(
            forecast,
            truth,
            fields=data.fields,
            elapsed=elapsed(data, plan),
            spacing=data.spacing,
            inside=None if outside is None else ~outside,
            metrics=metrics,
        )
        errors |= more(frames, forecast, truth) if more is not None else {}
        for name, values in errors.items():
            finite = torch.where(values.isfinite(), values, math.inf)
            collected.setdefault(name, []).append(float64(finite).cpu())
    whole = {name: torch.cat(parts) for name, parts in collected.items()}
    steps = whole.pop("rel_l2_step")
    lower, upper = (steps.quantile(q, dim=0, interpolation="lower") for q in (0.25, 0.75))  # no inf - inf between two
    return Scores(
        means={name: whole[name].mean().item() for name in sorted(whole, key=_place)},
        step_errors=tuple(steps.mean(dim=0).tolist()),
        trajectory_errors=tuple(whole["rel_l2"].tolist()),
        step_quartiles=(tuple(lower.tolist()), tuple(upper.tolist())),
        runaways=tuple(runaways),
    )


def sphere_errors(
    forecast: Float[Tensor, "b t c lat lon"], truth: Float[Tensor, "b t c lat lon"], *, area: Tensor
) -> dict[str, Float[Tensor, " b"]]:
    """Error, its square and the ratio of norms, points weighed by area, mean over frames."""
    steps = frame_errors(forecast, truth, area=area)
    norms = [torch.linalg.vector_norm(weighed(field, area).flatten(2), dim=2) for field in (forecast, truth)]
    values = (steps, steps**2, norms[0] / norms[1])
    return {name: value.mean(dim=1) for name, value in zip(SPHERE_METRICS, values, strict=True)}


def _place(name: str) -> int:
    """Where a metric stands in tables; `rel_l2/u` stands with `rel_l2`."""
    return EVERY.index(name.split("/")[0])


def batches(data: Trajectories, size: int) -> Iterator[tuple[range, Frames]]:
    """All trajectories, `size` at a time, with their numbers."""
    if size < 1:
        raise ValueError(f"`batch_size` must be at least 1, got {size}.")
    for first in range(0, len(data), size):
        chosen = range(first, min(first + size, len(data)))
        yield chosen, data.read(chosen)


def elapsed(data: Trajectories, plan: WindowPlan) -> list[float]:
    """Time of every scored frame since the last given one."""
    return [float(data.times[frame] - data.times[plan.start]) for frame in plan.scored]


def find_runaways(forecast: Tensor, frames: Frames, plan: WindowPlan, *, first: int) -> list[Divergence]:
    """Forecasts with a frame that is not finite or 10 times above anything in the whole true trajectory."""
    steps = runaway_step(forecast, largest(frames.state[:, plan.given.start :])).tolist()
    return [
        Divergence(first + index, step, TOO_LARGE if forecast[index, step].isfinite().all() else NOT_FINITE)
        for index, step in enumerate(steps)
        if step != NEVER
    ]


@torch.inference_mode()
def one_step_errors(
    forecaster: Forecaster | Ensemble, frames: Frames, *, spacing: Sequence[float] | None = None
) -> Float[Tensor, " b"]:
    """Teacher-forced error of each trajectory over its predicted frames."""
    frames = frames.to(forecaster.device)
    plan = forecaster.window.plan(frames.state.shape[1])
    units = forecaster.units(frames.state[:, plan.given.start : plan.given.stop])
    forecaster.eval()
    outside = forecaster.outside(frames.context)
    answers = forecaster(
        hold(units.encode(frames.state), outside)[:, :-1],
        context_at_steps(forecaster.encode_context(frames.context), forecaster.context_time),
        spacing=spacing,
    )
    missing = frames.state.shape[1] - 1 - answers.shape[1]  # slots before a model's first full window
    first, last = plan.predicted.start - 1, plan.predicted.stop - 1
    answers = units.decode(answers)[:, max(0, first - missing) : last - missing]
    truth = next_frames(frames.state)[:, max(first, missing) : last]
    if outside is not None:
        answers = hold(answers, outside[:, 1:][:, max(first, missing) : last])
    return trajectory_errors(*with_room(answers, truth))
