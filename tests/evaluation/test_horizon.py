"""Forecasts far beyond the data: which diverge, and how the others compare with the solver's frames."""

import math

import numpy as np
import torch
from torch import nn

from ssno.data.normalise import fit
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.evaluation import LongForecast, long_forecasts
from ssno.forecasting.forecaster import Forecaster


class Times(nn.Module):
    """Each frame is the last one times a factor."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.factor * frames


def found_with(factor: float, *, steps: int = 50) -> LongForecast:
    steady = np.random.default_rng(0).standard_normal((4, 1, 1, 16)).repeat(11, axis=1).astype(np.float32)
    data = Trajectories.from_array(steady, name="steady", times=0.1 * np.arange(11), lengths=[1.0])
    window = Window(protocol="first_k", size=1)
    forecaster = Forecaster(Times(factor), normalisers=fit(data, "none"), window=window, spacing=data.spacing)
    return long_forecasts(forecaster, data, steps=steps)


def test_a_perfect_forecast_has_the_spread_and_the_spectrum_of_the_data() -> None:
    found = found_with(1.0)
    assert (found.diverged, found.trajectories, found.steps, found.first_step) == (0, 4, 50, 0)
    told = [found.spread, found.spectrum, found.distribution, found.valid_time]
    np.testing.assert_allclose(told, [1, 0, 0, 1], atol=1e-3)  # quantiles interpolate


def test_forecasts_that_grow_are_counted_and_have_no_statistics() -> None:
    found = found_with(1.1)
    assert found.diverged == 4
    assert math.isnan(found.spread)
    assert found.valid_time < 1
    assert 1.1 ** (found.first_step - 1) < 10 * 1.1 < 10 * 1.1**found.first_step


def test_forecasts_as_long_as_the_data_are_compared_with_their_second_half() -> None:
    found = found_with(1.1, steps=10)
    powers = 1.1 ** np.arange(6, 11)
    np.testing.assert_allclose(found.spread, math.sqrt(np.mean(powers**2)), rtol=0.02)
    assert found.diverged == 0
    assert found.values()["long/spread"] == found.spread
