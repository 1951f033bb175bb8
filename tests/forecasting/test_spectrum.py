"""Energy by wavenumber: Parseval, and single waves in their shells."""

import math

import pytest
import torch

from ssno.forecasting.metrics import energy_spectrum


def test_a_wave_has_its_energy_at_its_wavenumber() -> None:
    x = 4.0 * torch.arange(32, dtype=torch.float64) / 32
    wave = 3 * torch.cos(2 * math.pi * 5 * x / 4)
    numbers, energy = energy_spectrum(wave[None, None, None], spacing=[4 / 32])
    assert energy[0, 0, 0].argmax() == 5
    torch.testing.assert_close(numbers[5].item(), 2 * math.pi * 5 / 4)
    torch.testing.assert_close(energy[0, 0, 0, 5].item(), 4.5)


def test_all_shells_together_are_the_mean_square() -> None:
    field = torch.randn(2, 3, 1, 15)
    _, energy = energy_spectrum(field, spacing=[0.3])
    torch.testing.assert_close(energy.sum(-1), field.double().square().mean(-1))


def test_shells_are_round_in_two_dimensions() -> None:
    angle = 2 * math.pi * torch.arange(16) / 16
    wave = torch.cos(3 * angle[:, None] + 4 * angle[None, :])
    _, energy = energy_spectrum(wave[None, None, None], spacing=[1.0, 1.0])
    torch.testing.assert_close(energy[0, 0, 0, 5].item(), 0.5)


def test_a_missing_spacing_is_named() -> None:
    with pytest.raises(ValueError, match=r"`spacing` must have one number per axis of the grid \(4, 4\), got \(1.0,\)"):
        energy_spectrum(torch.zeros(1, 1, 1, 4, 4), spacing=[1.0])
