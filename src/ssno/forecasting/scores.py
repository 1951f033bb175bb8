"""Score a forecaster on trajectories whose truth is known.

    rel_l2             rollout error in physical units: per trajectory over all predicted frames, then the mean
    rel_l2_normalised  the same in normalised units
    rel_l2_onestep     one step at a time from true frames (teacher forcing), physical units
    rel_l2_step        rollout error frame by frame

Given frames are never counted. With several fields, `rel_l2/name` is the error of one field alone.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.data.trajectories import Frames, Trajectories
from ssno.data.windows import next_frames, slot_context
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout
from ssno.metrics.relative import frame_errors, trajectory_errors


@dataclass(frozen=True)
class Runaway:
    """A forecast that left the realm of fields: which trajectory, at which predicted step (from 0), and why."""

    trajectory: int
    step: int
    reason: str


@dataclass(frozen=True)
class Scores:
    """Mean errors by name, the error of each scored frame (mean and quartiles), that of each trajectory, runaways."""

    means: dict[str, float]
    step_errors: tuple[float, ...]
    trajectory_errors: tuple[float, ...]
    step_quartiles: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    runaways: tuple[Runaway, ...] = ()


def score(forecaster: Forecaster, data: Trajectories, *, batch_size: int = 32) -> Scores:
    """All metrics over a set of trajectories; the batch size changes nothing but memory."""
    collected: dict[str, list[Tensor]] = {}
    for first in range(0, len(data), batch_size):
        frames = data.read(range(first, min(first + batch_size, len(data))))
        for name, values in batch_errors(forecaster, frames, spacing=data.spacing).items():
            collected.setdefault(name, []).append(values.double())
    whole = {name: torch.cat(parts) for name, parts in collected.items()}
    steps = whole.pop("rel_l2_step")
    return Scores(
        means={name: values.mean().item() for name, values in whole.items()},
        step_errors=tuple(steps.mean(dim=0).tolist()),
        trajectory_errors=tuple(whole["rel_l2"].tolist()),
    )


def batch_errors(forecaster: Forecaster, frames: Frames, *, spacing: tuple[float, ...]) -> dict[str, Tensor]:
    """Errors of each trajectory (or, for `rel_l2_step`, of each of its frames) by the names of the contracts."""
    plan = forecaster.window.plan(frames.state.shape[1])
    given = frames.state[:, plan.given.start : plan.given.stop]
    context = frames.context[:, plan.given.start :] if frames.context.shape[2] else None
    forecast = rollout(forecaster, given, len(plan.predicted), context=context, spacing=spacing)
    forecast = forecast[:, plan.scored.start - plan.predicted.start :]
    truth = frames.state[:, plan.scored.start : plan.scored.stop]
    units = forecaster.units(given)
    errors = {
        "rel_l2": trajectory_errors(forecast, truth),
        "rel_l2_normalised": trajectory_errors(units.encode(forecast), units.encode(truth)),
        "rel_l2_onestep": one_step_errors(forecaster, frames),
        "rel_l2_step": frame_errors(forecast, truth),
    }
    fields = forecaster.normalisers.state.fields
    if len(fields) > 1:
        for channel, name in enumerate(fields):
            errors[f"rel_l2/{name}"] = trajectory_errors(forecast[:, :, [channel]], truth[:, :, [channel]])
    return {name: torch.where(values.isfinite(), values, math.inf) for name, values in errors.items()}


@torch.inference_mode()
def one_step_errors(forecaster: Forecaster, frames: Frames) -> Float[Tensor, " b"]:
    """Teacher-forced error of each trajectory over its predicted frames."""
    plan = forecaster.window.plan(frames.state.shape[1])
    units = forecaster.units(frames.state[:, plan.given.start : plan.given.stop])
    forecaster.eval()
    answers = forecaster(
        units.encode(frames.state)[:, :-1],
        slot_context(forecaster.encode_context(frames.context), forecaster.alignment),
    )
    missing = frames.state.shape[1] - 1 - answers.shape[1]  # slots before a model's first full window
    first, last = plan.predicted.start - 1, plan.predicted.stop - 1
    answers = units.decode(answers)[:, max(0, first - missing) : last - missing]
    truth = next_frames(frames.state)[:, max(first, missing) : last]
    return trajectory_errors(answers, truth)
