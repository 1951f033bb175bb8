"""Score a forecaster on trajectories whose truth is known.

    rel_l2             rollout error in physical units: per trajectory over all predicted frames, then the mean
    rel_l2_normalised  the same in normalised units
    rel_l2_onestep     one step at a time from true frames (teacher forcing), physical units
    rel_l2_step        rollout error frame by frame
    rel_l2_anomaly     the same of what deviates from the climatology, if that is given

Input frames are never counted. With several fields, `rel_l2/name` is the error of one field alone. These are the
metrics of training; `metrics=EVERY` adds those of `ssno.forecasting.metrics` and looks for forecasts that diverge. Of
point clouds, errors on the wall and of the lift are always computed (`ssno.forecasting.cloud_scores`).

Axes: b trajectory, t frame, c field, then the grid.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base.checks import require_one_of
from ssno.base.device import float64
from ssno.data.trajectories import Frames, Trajectories
from ssno.data.windows import Window, WindowPlan, context_at_steps, next_frames
from ssno.forecasting.cloud_scores import CLOUD_METRICS, CloudScores
from ssno.forecasting.divergence import (
    NEVER,
    NOT_FINITE,
    TOO_LARGE,
    Departure,
    Divergence,
    ForecastWatch,
    divergence_step,
    first_departures,
    largest_values,
)
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.metrics import (
    Mask,
    State,
    apply_mask,
    correlation_time,
    energy_drift,
    find_mask,
    frame_errors,
    mean_drift,
    nrmse,
    spectral_errors,
    trajectory_errors,
    valid_time,
    vrmse,
    weighted,
    with_room,
)
from ssno.forecasting.rollout import rollout

PER_FRAME_AND_FIELD = {"nrmse": nrmse, "vrmse": vrmse, "mean_drift": mean_drift, "energy_drift": energy_drift}
FORECAST_METRICS = (
    *("rel_l2", "nrmse", "vrmse", "spectral_error"),
    *("correlation_time", "valid_time", "mean_drift", "energy_drift"),
)
TRAINING = ("rel_l2", "rel_l2_normalised", "rel_l2_onestep")
SPHERE_METRICS = ("rel_l2_area", "rel_l2_area_squared", "energy_ratio")
"""Of data on a sphere: points weighted by area, normalised units, mean over predicted frames."""
EVERY = (*TRAINING, *FORECAST_METRICS[1:], *SPHERE_METRICS, "divergence", *CLOUD_METRICS)
STEADY_METRICS = frozenset((*TRAINING, "nrmse", "vrmse", "divergence", *CLOUD_METRICS))
"""Of steady flows; the others look along axes of a grid, or along time."""

Predict = Callable[[Frames, range], Tensor]
"""Forecasts of all predicted frames of a batch of trajectories; the range has their numbers."""


def forecast_errors(
    forecast: State,
    truth: State,
    *,
    fields: Sequence[str],
    elapsed: Sequence[float],
    spacing: Sequence[float],
    mask: Mask = None,
    metrics: Collection[str] = FORECAST_METRICS,
    climatology: Float[Tensor, "t c *grid"] | None = None,
) -> dict[str, Tensor]:
    """The chosen errors of each trajectory (of each of its frames for `rel_l2_step`); non-finite ones are infinite.

    The forecast may be that of a model, a rule or a solver. `elapsed` is the time of each frame since the last input
    frame. `rel_l2` and `rel_l2_step` are always computed; masked data have no spectral error, because the edge of an
    obstacle has a spectrum of its own. `climatology` are its frames at the same times.
    """
    forecast, truth = with_room(apply_mask(forecast, mask), apply_mask(truth, mask))
    errors = {"rel_l2": trajectory_errors(forecast, truth), "rel_l2_step": frame_errors(forecast, truth)}
    if len(fields) > 1:
        for channel, name in enumerate(fields):
            errors[f"rel_l2/{name}"] = trajectory_errors(forecast[:, :, channel, None], truth[:, :, channel, None])
    if climatology is not None:
        usual = apply_mask(climatology.to(truth).expand_as(truth), mask)
        errors["rel_l2_anomaly"] = trajectory_errors(forecast - usual, truth - usual)
    for name, metric in PER_FRAME_AND_FIELD.items():
        if name in metrics:
            errors[name] = metric(forecast, truth, mask=mask).mean((1, 2))
    if "spectral_error" in metrics and mask is None:
        bands = spectral_errors(forecast, truth, spacing=spacing)
        errors |= {f"spectral_error/{name}": values for name, values in bands.items()}
    since = torch.tensor(elapsed, dtype=torch.float64)  # metrics take it to where their fields are
    if "correlation_time" in metrics:
        errors["correlation_time"] = correlation_time(forecast, truth, since, mask=mask).clamp_max(elapsed[-1])
    if "valid_time" in metrics:
        errors["valid_time"] = valid_time(forecast, truth, since).clamp_max(elapsed[-1])
    return {name: torch.where(values.isfinite(), values, math.inf) for name, values in errors.items()}


@dataclass(frozen=True)
class Scores:
    """Mean errors by name, the error of each scored frame (mean and quartiles) and of each trajectory, and which
    forecasts diverged or left the range of the training data."""

    means: dict[str, float]
    step_errors: tuple[float, ...]
    trajectory_errors: tuple[float, ...]
    step_quartiles: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    divergences: tuple[Divergence, ...] = ()
    departures: tuple[Departure, ...] = ()


class Scorer:
    """Collects the errors of forecasts made by `predict`, a solver for example, batch by batch.

    `more` adds errors of its own; with the frames of a `climatology` there are errors of anomalies. `predict` gets its
    frames on `device` and returns forecasts there; None leaves them where they were read.
    """

    def __init__(
        self,
        predict: Predict,
        data: Trajectories,
        window: Window,
        *,
        metrics: Collection[str] = EVERY,
        more: Callable[[Frames, Tensor, Tensor], dict[str, Tensor]] | None = None,
        device: torch.device | None = None,
        climatology: Float[Tensor, "t c *grid"] | None = None,
    ):
        for name in metrics:
            require_one_of("metrics", name, EVERY)
        self.predict, self.data, self.more, self.device = predict, data, more, device
        self.metrics = STEADY_METRICS & set(metrics) if data.geometry.is_steady else metrics
        self.plan = window.plan(len(data.times))
        self.usual = None if climatology is None else climatology[self.plan.scored.start : self.plan.scored.stop]
        self.collected: dict[str, list[Tensor]] = {}
        self.divergences: list[Divergence] = []

    def add(self, rows: range, frames: Frames) -> None:
        """Score these trajectories, the next of the data."""
        data, plan = self.data, self.plan
        frames = frames if self.device is None else frames.to(self.device)
        forecast = self.predict(frames, rows)
        if "divergence" in self.metrics:
            self.divergences += _find_divergences(forecast, frames, plan, first=rows.start)
        forecast = forecast[:, plan.scored.start - plan.predicted.start :]
        truth = frames.state[:, plan.scored.start : plan.scored.stop]
        errors = forecast_errors(
            forecast,
            truth,
            fields=data.fields,
            elapsed=[float(data.times[frame] - data.times[plan.start]) for frame in plan.scored],
            spacing=data.spacing,
            mask=find_mask(frames.context[:, plan.scored.start : plan.scored.stop], data.mask_channel),
            metrics=self.metrics,
            climatology=self.usual,
        )
        errors |= self.more(frames, forecast, truth) if self.more is not None else {}
        for name, error in errors.items():
            finite = torch.where(error.isfinite(), error, math.inf)
            self.collected.setdefault(name, []).append(float64(finite).cpu())

    def scores(self) -> Scores:
        """Means over all trajectories that were added."""
        values = {name: torch.cat(parts) for name, parts in self.collected.items()}
        steps = values.pop("rel_l2_step")
        lower, upper = (steps.quantile(q, dim=0, interpolation="lower") for q in (0.25, 0.75))  # no inf - inf
        return Scores(
            means={name: values[name].mean().item() for name in sorted(values, key=_place)},
            step_errors=tuple(steps.mean(dim=0).tolist()),
            trajectory_errors=tuple(values["rel_l2"].tolist()),
            step_quartiles=(tuple(lower.tolist()), tuple(upper.tolist())),
            divergences=tuple(self.divergences),
        )


class ForecasterScorer:
    """Collects the errors of a forecaster, batch by batch: those that `metrics` name."""

    def __init__(
        self,
        forecaster: Forecaster | Ensemble,
        data: Trajectories,
        *,
        metrics: Collection[str] = TRAINING,
        climatology: Float[Tensor, "t c *grid"] | None = None,
    ):
        self.forecaster, self.data, self.metrics, self.window = forecaster, data, metrics, forecaster.window
        self.cloud = CloudScores(data.fields, data.context_fields) if data.geometry.has_wall else None
        self.area, self.normalised = data.quadrature_weights, forecaster.normalisers.state.method != "none"
        self.departures: list[Departure] = []
        self.scorer = Scorer(
            self._predict,
            data,
            self.window,
            metrics=metrics,
            more=self._more,
            device=forecaster.device,
            climatology=climatology,
        )
        self.add = self.scorer.add

    def scores(self) -> Scores:
        """Means over all trajectories that were added."""
        scores, lift = self.scorer.scores(), {} if self.cloud is None else self.cloud.lift()
        return replace(scores, means={**scores.means, **lift}, departures=first_departures(self.departures))

    def _predict(self, frames: Frames, rows: range) -> Tensor:
        forecaster, data, plan = self.forecaster, self.data, self.window.plan(frames.state.shape[1])
        first, context = plan.inputs(*frames)
        forecast = partial(rollout, forecaster, first, len(plan.predicted), context=context, spacing=data.spacing)
        if "divergence" not in self.metrics or forecaster.envelope is None:
            return forecast()
        watch = ForecastWatch(forecaster, first, axes=data.axes, geometry=data.geometry, context=context)
        made = forecast(watch=watch.look_at)
        self.departures.extend(watch.departures(first_trajectory=rows.start))
        return made

    def _more(self, frames: Frames, forecast: Tensor, truth: Tensor) -> dict[str, Tensor]:
        forecaster, plan = self.forecaster, self.window.plan(frames.state.shape[1])
        units = forecaster.units(plan.first(frames.state))
        errors = {}
        if "rel_l2_normalised" in self.metrics:
            mask = forecaster.find_mask(frames.context[:, plan.scored.start : plan.scored.stop])
            pair = (apply_mask(units.encode(fields), mask) for fields in (forecast, truth))
            errors["rel_l2_normalised"] = trajectory_errors(*pair)
        if "rel_l2_onestep" in self.metrics:
            errors["rel_l2_onestep"] = one_step_errors(forecaster, frames, spacing=self.data.spacing)
        if self.area is not None and self.normalised:
            found = sphere_errors(units.encode(forecast), units.encode(truth), area=self.area)
            errors |= {name: values for name, values in found.items() if name in self.metrics}
        if self.cloud is not None:
            errors |= self.cloud.add(forecast, truth, frames, units if self.normalised else None)
        return errors


def score(
    forecaster: Forecaster | Ensemble,
    data: Trajectories,
    *,
    batch_size: int = 32,
    metrics: Collection[str] = TRAINING,
    climatology: Float[Tensor, "t c *grid"] | None = None,
) -> Scores:
    """Errors over a set of trajectories; results do not depend on the batch size.

    `metrics` are those of training by default; `EVERY` for all, or any of these. With the frames of a `climatology`
    (`ssno.data.envelope`) there are errors of anomalies.
    """
    scorer = ForecasterScorer(forecaster, data, metrics=metrics, climatology=climatology)
    for rows, frames in batches(data, batch_size):
        scorer.add(rows, frames)
    return scorer.scores()


def score_forecasts(predict: Predict, data: Trajectories, window: Window, *, batch_size: int = 32) -> Scores:
    """Every error of forecasts made by `predict`."""
    scorer = Scorer(predict, data, window)
    for rows, frames in batches(data, batch_size):
        scorer.add(rows, frames)
    return scorer.scores()


def sphere_errors(
    forecast: Float[Tensor, "b t c lat lon"], truth: Float[Tensor, "b t c lat lon"], *, area: Tensor
) -> dict[str, Float[Tensor, " b"]]:
    """Error, its square and the ratio of norms, points weighted by area, mean over frames."""
    steps = frame_errors(forecast, truth, area=area)
    norms = [torch.linalg.vector_norm(weighted(field, area).flatten(2), dim=2) for field in (forecast, truth)]
    values = (steps, steps**2, norms[0] / norms[1])
    return {name: value.mean(dim=1) for name, value in zip(SPHERE_METRICS, values, strict=True)}


def _place(name: str) -> int:
    """The row of a metric in tables; `rel_l2/u` stands with `rel_l2`."""
    return EVERY.index(name.split("/")[0].removesuffix("_anomaly"))


def batches(data: Trajectories, size: int) -> Iterator[tuple[range, Frames]]:
    """All trajectories, `size` at a time, with their numbers."""
    if size < 1:
        raise ValueError(f"`batch_size` must be at least 1, got {size}.")
    for first in range(0, len(data), size):
        chosen = range(first, min(first + size, len(data)))
        yield chosen, data.read(chosen)


def _find_divergences(forecast: Tensor, frames: Frames, plan: WindowPlan, *, first: int) -> list[Divergence]:
    """Forecasts with a frame that is not finite or 10 times larger than anything in the true trajectory."""
    steps = divergence_step(forecast, largest_values(frames.state[:, plan.input_frames.start :])).tolist()
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
    units = forecaster.units(plan.first(frames.state))
    forecaster.eval()
    mask = forecaster.find_mask(frames.context)
    answers = forecaster(
        apply_mask(units.encode(frames.state), mask)[:, :-1],
        context_at_steps(forecaster.encode_context(frames.context), forecaster.context_time),
        spacing=spacing,
    )
    missing = frames.state.shape[1] - 1 - answers.shape[1]  # time steps before a model's first full window
    first, last = plan.predicted.start - 1, plan.predicted.stop - 1
    answers = units.decode(answers)[:, max(0, first - missing) : last - missing]
    truth = next_frames(frames.state)[:, max(first, missing) : last]
    if mask is not None:
        answers = apply_mask(answers, mask[:, 1:][:, max(first, missing) : last])
    return trajectory_errors(*with_room(answers, truth))
