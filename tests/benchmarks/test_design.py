"""The harness of design trials: labels, and what it finds in long forecasts."""

import numpy as np
import torch
from benchmarks.design import label, long_forecasts
from torch import nn

from ssno.data.normalise import fit
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.forecasting.forecaster import Forecaster


class Times(nn.Module):
    """Each frame is the last one times a factor."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.factor * frames


def found_with(factor: float) -> dict[str, float | int]:
    steady = np.random.default_rng(0).standard_normal((4, 1, 1, 16)).repeat(11, axis=1).astype(np.float32)
    data = Trajectories.from_array(steady, name="steady", times=0.1 * np.arange(11), lengths=[1.0])
    window = Window(protocol="first_k", size=1)
    forecaster = Forecaster(Times(factor), normalisers=fit(data, "none"), window=window, spacing=data.spacing)
    return long_forecasts(forecaster, data, steps=50)


def test_a_perfect_forecast_has_the_spread_and_the_spectrum_of_the_data() -> None:
    found = found_with(1.0)
    assert (found["diverged"], found["trajectories"], found["steps"]) == (0, 4, 50)
    np.testing.assert_allclose([found["spread"], found["spectrum"], found["valid_time"]], [1, 0, 1], atol=1e-6)


def test_forecasts_that_grow_are_counted_and_have_no_statistics() -> None:
    found = found_with(1.1)
    assert found["diverged"] == 4
    assert "spread" not in found
    assert found["valid_time"] < 1


def test_labels_name_what_was_changed() -> None:
    assert label("ssno", {}) == "ssno"
    assert label("ssno", {"optimizer": "soap", "learning_rate": 0.02}) == "ssno-soap-learning_rate0.02"
