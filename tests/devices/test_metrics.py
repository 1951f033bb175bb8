"""Errors, spectra and calibration are computed where their fields are, with the CPU's numbers."""

import pytest
import torch

from ssno.base.device import float64
from ssno.evaluation.record import batch_sums, finish
from ssno.forecasting.divergence import divergence_step, largest_values
from ssno.forecasting.metrics import energy_spectrum
from ssno.forecasting.scores import forecast_errors


@pytest.mark.parametrize("grid", [(16,), (8, 6)])
def test_all_errors_of_a_forecast(gpu, grid) -> None:
    forecast, truth = torch.randn(2, 3, 5, 2, *grid).unbind(0)
    settings = {"fields": ("u", "v"), "elapsed": [0.1, 0.2, 0.3, 0.4, 0.5], "spacing": [0.1] * len(grid)}
    here = forecast_errors(forecast, truth, **settings)
    away = forecast_errors(forecast.to(gpu), truth.to(gpu), **settings)
    assert here.keys() == away.keys()
    for name, values in away.items():
        assert values.device == gpu, name
        torch.testing.assert_close(values.cpu(), here[name], msg=name)


def test_energy_spectra(gpu) -> None:
    fields = torch.randn(2, 3, 1, 8, 6)
    numbers, energy = energy_spectrum(fields, spacing=(0.1, 0.1))
    numbers_away, energy_away = energy_spectrum(fields.to(gpu), spacing=(0.1, 0.1))
    assert numbers_away.device == energy_away.device == gpu
    assert torch.equal(numbers_away.cpu(), numbers)
    torch.testing.assert_close(energy_away.cpu(), energy)


def test_divergence(gpu) -> None:
    forecast = torch.ones(2, 4, 1, 8)
    forecast[1, 2] = 100
    away = forecast.to(gpu)
    assert divergence_step(away, largest_values(away[:, :1])).tolist() == [-1, 2]


def test_calibration_of_an_ensemble(gpu) -> None:
    members, truth = torch.randn(4, 2, 3, 1, 8), torch.randn(2, 3, 1, 8)
    assert finish([batch_sums(members.to(gpu), truth.to(gpu))]) == finish([batch_sums(members, truth)])


def test_double_precision_is_where_the_tensor_is(gpu) -> None:
    assert float64(torch.ones(3, device=gpu)).device == gpu
