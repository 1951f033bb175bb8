"""Drift of mean and energy in closed form."""

import math

import torch

from ssno.forecasting.metrics import energy, energy_drift, mean_drift

X = 2 * math.pi * torch.arange(32, dtype=torch.float64) / 32


def test_the_energy_of_a_sine_is_a_quarter_of_its_amplitude_squared() -> None:
    torch.testing.assert_close(energy(3 * torch.sin(X).expand(1, 1, 1, 32)).item(), 9 / 4)


def test_an_offset_drifts_the_mean_relative_to_the_rms() -> None:
    truth = torch.sin(X).expand(1, 5, 1, 32)
    torch.testing.assert_close(
        mean_drift(truth + 0.2, truth), torch.full((1, 5, 1), 0.2 * math.sqrt(2)).double(), rtol=1e-6, atol=0
    )


def test_a_scaled_forecast_drifts_in_energy_by_the_square() -> None:
    truth = torch.sin(X)[:, None].expand(1, 5, 2, 32, 3)
    scale = torch.linspace(1, 2, 5, dtype=torch.float64)[:, None, None, None]
    torch.testing.assert_close(energy_drift(scale * truth, truth)[0, :, 0], scale.flatten() ** 2 - 1)
    torch.testing.assert_close(mean_drift(scale * truth, truth), torch.zeros(1, 5, 2).double())


def test_losing_energy_as_the_truth_does_is_no_drift_and_not_losing_it_is() -> None:
    decay = torch.exp(-torch.arange(5.0).double())[:, None, None]
    truth = (decay * torch.sin(X))[None]
    assert energy_drift(truth, truth).max() == 0
    kept = energy_drift(truth[:, :1].expand_as(truth), truth)
    average = torch.exp(-2 * torch.arange(5.0).double()).mean()
    torch.testing.assert_close(kept[0, :, 0], (1 - torch.exp(-2 * torch.arange(5.0).double())) / average)


def test_a_truth_of_zero_stays_finite_and_nan_shows() -> None:
    zero = torch.zeros(1, 2, 1, 8)
    assert mean_drift(zero, zero).max() == energy_drift(zero, zero).max() == 0
    assert mean_drift(zero * math.nan, zero).isnan().all()
    assert energy_drift(zero * math.nan, zero).isnan().all()


def test_a_batch_gives_what_its_trajectories_give_alone() -> None:
    prediction, truth = torch.randn(2, 4, 3, 2, 8)
    for metric in (mean_drift, energy_drift):
        alone = torch.cat([metric(prediction[[i]], truth[[i]]) for i in range(4)])
        torch.testing.assert_close(metric(prediction, truth), alone)
