"""Correlation and valid times of forecasts that fail at a known moment."""

import math

import pytest
import torch

from ssno.forecasting.metrics import correlation_time, pearson, valid_time

X = 2 * math.pi * torch.arange(64, dtype=torch.float64) / 64
TIMES = 0.1 * torch.arange(1, 11, dtype=torch.float64)


def drifting(rate: float) -> tuple[torch.Tensor, torch.Tensor]:
    """A wave, and a forecast whose phase runs away at `rate`: its correlation is cos(rate t)."""
    truth = torch.sin(X).expand(1, 10, 1, 64)
    return torch.sin(X - rate * TIMES[:, None, None])[None], truth


def test_the_correlation_of_shifted_waves_is_the_cosine_of_the_shift() -> None:
    prediction, truth = drifting(1.3)
    torch.testing.assert_close(pearson(3 * prediction + 5, truth)[0, :, 0], torch.cos(1.3 * TIMES))


def test_correlation_time_is_the_first_time_under_the_threshold() -> None:
    prediction, truth = drifting(1.3)  # cos(1.3 t) < 0.8 from t = 0.495 on
    assert correlation_time(prediction, truth, TIMES).item() == pytest.approx(0.5)
    assert correlation_time(prediction, truth, TIMES, threshold=0.5).item() == pytest.approx(0.9)


def test_valid_time_is_the_first_time_above_the_threshold() -> None:
    prediction, truth = drifting(1.0)  # the error of a shifted wave is 2 sin(shift / 2), above 0.5 from 0.505 on
    assert valid_time(prediction, truth, TIMES).item() == pytest.approx(0.6)
    assert valid_time(prediction, truth, TIMES, threshold=0.25).item() == pytest.approx(0.3)


def test_a_forecast_that_comes_back_has_failed_all_the_same() -> None:
    truth = torch.randn(1, 10, 1, 64, dtype=torch.float64)
    prediction = truth.clone()
    prediction[:, 3] *= -1
    assert correlation_time(prediction, truth, TIMES).item() == valid_time(prediction, truth, TIMES).item() == TIMES[3]


def test_a_perfect_forecast_never_fails_and_nan_fails_at_once() -> None:
    truth = torch.randn(2, 10, 2, 4, 4)
    prediction = truth.clone()
    prediction[1, 2, 0, 1, 1] = math.nan
    for metric in (correlation_time, valid_time):
        torch.testing.assert_close(metric(prediction, truth, TIMES), torch.tensor([math.inf, 0.3], dtype=TIMES.dtype))


def test_flat_fields_correlate_with_each_other_only() -> None:
    flat, wave = torch.ones(1, 1, 1, 64, dtype=torch.float64), torch.sin(X).expand(1, 1, 1, 64)
    assert pearson(flat, 2 * flat).item() == 1
    assert pearson(flat, wave).item() == 0
    assert pearson(wave, flat).item() == 0


def test_a_batch_gives_what_its_trajectories_give_alone() -> None:
    truth = torch.randn(4, 10, 1, 16)
    prediction = truth + 0.2 * torch.randn(4, 10, 1, 16).cumsum(1)
    for metric in (correlation_time, valid_time):
        alone = torch.cat([metric(prediction[[i]], truth[[i]], TIMES) for i in range(4)])
        assert metric(prediction, truth, TIMES).tolist() == alone.tolist()


def test_impossible_thresholds_are_refused() -> None:
    truth = torch.zeros(1, 10, 1, 4)
    with pytest.raises(ValueError, match="`threshold` of a correlation must be between -1 and 1, got 1.5"):
        correlation_time(truth, truth, TIMES, threshold=1.5)
    with pytest.raises(ValueError, match="`threshold` of a relative error must be positive, got 0.0"):
        valid_time(truth, truth, TIMES, threshold=0.0)
