"""What a model is told about the future of each fluid: its known fields at the right time, and nothing it predicts."""

import numpy as np
import pytest
import torch
from torch import Tensor

from ssno.data.datasets import build_problem
from ssno.data.normalise import fit
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window, dataset_conventions
from ssno.forecasting import scores
from ssno.forecasting.forecaster import Forecaster
from ssno.models.registry import model_config

GIVEN = 4
FLUIDS = {
    "torus-vis": (("vorticity",), ("force", "viscosity"), 20, "target"),
    "torus-vis-force": (("vorticity",), ("force", "viscosity"), 20, "target"),
    "ce-rm": (("density", "velocity_x", "velocity_y", "pressure"), ("tracer",), 11, "input"),
    "gce-rt": (("density", "velocity_x", "velocity_y", "pressure"), ("tracer", "potential"), 11, "input"),
}


def solved(name: str) -> np.ndarray:
    """Two trajectories of a small version, state and known fields as channels."""
    grid = {"points": 8, "solver_points": 16, "step": 0.05} if "torus" in name else {"points": 8, "cells": 8}
    problem = build_problem(name, "tiny", **grid, frame_interval=0.05)
    rng = np.random.default_rng(0)
    solution = problem.solve([problem.draw(rng) for _ in range(2)])
    assert solution.context is not None
    frames = solution.state.shape[1]
    known = np.repeat(solution.context, frames // solution.context.shape[1], axis=1)
    return np.concatenate([solution.state, known], axis=2).astype(np.float32)


def trajectories(name: str, array: np.ndarray) -> Trajectories:
    problem = build_problem(name, "tiny")
    names = (*problem.fields, *problem.context_fields)
    return Trajectories.from_array(array, fields=names, context_fields=problem.context_fields, lengths=[1.0, 1.0])


class Watched:
    """Scores a forecaster and keeps the forecasts it made on the way."""

    def __init__(self, name: str, array: np.ndarray, monkeypatch: pytest.MonkeyPatch):
        self.name, self.made = name, []
        data = trajectories(name, array)
        channels = {"in_channels": len(data.fields) + len(data.context_fields), "out_channels": len(data.fields)}
        torch.manual_seed(0)
        self.forecaster = Forecaster(
            model_config("ssno:tiny", n_dims=2, **channels).build(),
            normalisers=fit(data, "minmax"),
            window=Window(size=GIVEN),
            context_time=dataset_conventions(name).context_time,
            spacing=data.spacing,
        )
        original = scores.rollout
        monkeypatch.setattr(scores, "rollout", lambda *a, **k: self.made.append(original(*a, **k)) or self.made[-1])

    def forecast(self, array: np.ndarray) -> tuple[Tensor, dict[str, float]]:
        """Predicted frames 4, 5, ... and the errors."""
        means = scores.score(self.forecaster, trajectories(self.name, array)).means
        return self.made[-1], means


@pytest.mark.parametrize("name", FLUIDS)
def test_channels_and_steps_are_those_of_the_published_task(name: str) -> None:
    fields, known, frames, context_time = FLUIDS[name]
    problem = build_problem(name, "paper")
    assert (problem.fields, problem.context_fields) == (fields, known)
    assert len(problem.times) == frames
    plan = Window(size=GIVEN).plan(frames)
    assert (len(plan.input_frames), len(plan.predicted)) == (4, frames - 4)
    assert dataset_conventions(name).context_time == context_time


@pytest.mark.parametrize("name", FLUIDS)
def test_the_truth_to_be_predicted_never_reaches_the_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    array = solved(name)
    watched = Watched(name, array, monkeypatch)
    forecast, errors = watched.forecast(array)
    state = len(FLUIDS[name][0])
    other = array.copy()
    other[:, GIVEN:, :state] += np.random.default_rng(1).normal(size=other[:, GIVEN:, :state].shape)
    again, other_errors = watched.forecast(other)
    assert torch.equal(again, forecast)
    assert other_errors["rel_l2"] != errors["rel_l2"]
    other[:, GIVEN - 1, :state] += 0.1
    assert not torch.equal(watched.forecast(other)[0], forecast)


@pytest.mark.parametrize("name", FLUIDS)
def test_known_fields_reach_the_step_they_belong_to(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changed at frame s, each known field first changes the forecast of frame s ("target") or s + 1 ("input")."""
    array = solved(name)
    watched = Watched(name, array, monkeypatch)
    forecast, _ = watched.forecast(array)
    fields, known, frames, context_time = FLUIDS[name]
    for channel in range(len(fields), len(fields) + len(known)):
        for frame in (GIVEN, frames - 2):
            other = array.copy()
            other[:, frame, channel] += 1.0 + np.abs(other[:, frame, channel])
            changed, _ = watched.forecast(other)
            first = frame - GIVEN + (0 if context_time == "target" else 1)
            assert torch.equal(changed[:, :first], forecast[:, :first])
            assert (changed[:, first] != forecast[:, first]).any()
