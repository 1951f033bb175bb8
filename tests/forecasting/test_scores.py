"""Scores of forecasters whose forecasts are known, and of forecasts that anyone made."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from ssno.data.normalise import fit
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.forecasting.divergence import Divergence
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.scores import EVERY, TRAINING, score, score_forecasts

X = 2 * math.pi * np.arange(32) / 32


class Times(nn.Module):
    """The newest frame times a number."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.factor * frames


def steady(count: int = 3, *, frames: int = 6, fields: int = 1) -> Trajectories:
    """Waves that stand still, each with a phase of its own; field number c has c + 1 waves."""
    phase = np.arange(count)[:, None, None, None]
    waves = np.sin(np.arange(1, fields + 1)[:, None] * X + phase) + np.zeros((1, frames, 1, 1))
    return Trajectories.from_array(
        waves.astype(np.float32), name="steady", fields=["u", "v"][:fields], lengths=[2 * math.pi], dt=0.5
    )


def forecaster(data: Trajectories, factor: float) -> Forecaster:
    return Forecaster(Times(factor), normalisers=fit(data, "none"), window=Window(size=1))


def test_a_forecast_that_grows_by_a_tenth_per_step_has_the_scores_of_closed_form() -> None:
    data = steady()
    growth = 1.1 ** np.arange(1, 6) - 1  # error of predicted frames 1 ... 5
    scores = score(forecaster(data, 1.1), data, metrics=EVERY)
    known = {
        "rel_l2": math.sqrt((growth**2).mean()),
        "rel_l2_normalised": math.sqrt((growth**2).mean()),
        "rel_l2_onestep": 0.1,
        "nrmse": growth.mean(),
        "vrmse": growth.mean() * math.sqrt(31 / 32),
        "spectral_error/low": math.sqrt((growth**2).mean()),
        "correlation_time": 2.5,  # a larger wave is fully correlated, to the end
        "valid_time": 2.5,  # 1.1^5 - 1 = 0.61 exceeds 0.5 in the last frame
        "mean_drift": 0.0,
        "energy_drift": ((1 + growth) ** 2 - 1).mean(),
    }
    for name, value in known.items():
        assert scores.means[name] == pytest.approx(value, rel=1e-4, abs=1e-6), name
    assert set(scores.means) == {*known, "spectral_error/mid", "spectral_error/high"}
    assert scores.step_errors == pytest.approx(growth.tolist(), rel=1e-4)
    assert scores.step_quartiles[0] == pytest.approx(growth.tolist(), rel=1e-4)
    assert scores.divergences == ()


def test_training_pays_for_three_metrics_only() -> None:
    data = steady(fields=2)
    assert set(score(forecaster(data, 1.1), data).means) == {*TRAINING, "rel_l2/u", "rel_l2/v"}
    assert set(score(forecaster(data, 1.1), data, metrics=["valid_time"]).means) == {
        "rel_l2", "rel_l2/u", "rel_l2/v", "valid_time"
    }  # fmt: skip


def test_the_batch_size_changes_no_score() -> None:
    data = steady(5, fields=2)
    one, three = (score(forecaster(data, 1.3), data, batch_size=size, metrics=EVERY) for size in (1, 3))
    assert one.means == pytest.approx(three.means, rel=1e-6)
    assert one.trajectory_errors == pytest.approx(three.trajectory_errors, rel=1e-6)


def test_divergences_are_reported_with_trajectory_step_and_reason() -> None:
    data = steady(2)
    largest = [float(np.abs(data.read([n]).state.numpy()).max()) for n in range(2)]
    assert max(largest) <= 1 < min(largest) * 1.1
    assert score(forecaster(data, 5.0), data, metrics=EVERY).divergences == (
        Divergence(0, 1, "too large"),  # 5 times, then 25 times
        Divergence(1, 1, "too large"),
    )
    broken = score(forecaster(data, 1e30), data, metrics=EVERY, batch_size=1)
    assert [r.step for r in broken.divergences] == [0, 0]
    nan = score(forecaster(data, math.nan), data, metrics=EVERY)
    assert nan.divergences == (Divergence(0, 0, "not finite"), Divergence(1, 0, "not finite"))
    assert nan.means["vrmse"] == nan.means["rel_l2"] == nan.means["spectral_error/mid"] == math.inf
    assert nan.means["correlation_time"] == nan.means["valid_time"] == 0.5  # the first predicted frame


def test_quartiles_bracket_the_middle_half_of_the_trajectories() -> None:
    data = steady(4)
    factors = torch.tensor([1.0, 1.1, 1.2, 1.3])

    def predict(frames, chosen):
        return frames.state[:, 1:] * factors[list(chosen)][:, None, None, None]

    scores = score_forecasts(predict, data, Window(size=1), batch_size=3)
    assert scores.trajectory_errors == pytest.approx([0, 0.1, 0.2, 0.3], abs=1e-6)
    assert scores.step_quartiles[0] == pytest.approx([0.0] * 5, abs=1e-6)
    assert scores.step_quartiles[1] == pytest.approx([0.2] * 5, abs=1e-6)


def test_an_unknown_metric_is_refused() -> None:
    data = steady()
    with pytest.raises(ValueError, match="`metrics` must be one of 'rel_l2', .* got 'mse'"):
        score(forecaster(data, 1.0), data, metrics=["mse"])
