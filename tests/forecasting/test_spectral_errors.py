"""Spectral errors of waves whose scale is known."""

import math

import pytest
import torch

from ssno.forecasting.metrics import THIRDS, spectral_errors, trajectory_errors, wavenumbers

POINTS = 48  # Nyquist 24, thirds at 8 and 16
X = 2 * math.pi * torch.arange(POINTS, dtype=torch.float64) / POINTS


def waves(*numbers: int) -> torch.Tensor:
    return sum(torch.sin(k * X) for k in numbers).expand(1, 1, 1, POINTS)


def test_a_wrong_wave_is_an_error_of_its_band_alone() -> None:
    truth = waves(3, 12, 20)
    wrong = waves(3, 20) + 0.75 * waves(12)
    found = spectral_errors(wrong, truth)
    torch.testing.assert_close([found[name].item() for name in THIRDS], [0.0, 0.25, 0.0], rtol=1e-9, atol=1e-9)


def test_bands_are_half_open_and_the_mean_is_low() -> None:
    truth = 1 + waves(3, 8, 16)
    for k, band in ((8, "mid"), (16, "high"), (7, "low")):
        found = spectral_errors(truth + 0.1 * waves(k), truth)
        assert [name for name, value in found.items() if value.item() > 1e-6] == [band]
    found = spectral_errors(truth + 0.1, truth)
    torch.testing.assert_close(found["low"].item(), 0.1 / math.sqrt(1 + 1 / 2))


@pytest.mark.parametrize("grid", [(9,), (8,), (6, 9), (4, 5, 6)])
def test_one_band_over_everything_is_the_relative_l2_error(grid) -> None:
    prediction, truth = torch.randn(2, 3, 2, 2, *grid, dtype=torch.float64)
    found = spectral_errors(prediction, truth, bands={"all": (0, math.inf)})["all"]
    torch.testing.assert_close(found, trajectory_errors(prediction, truth))


def test_wavenumbers_of_a_square_are_isotropic() -> None:
    truth = torch.sin(3 * X)[:, None] + torch.sin(3 * X)[None]
    oblique = torch.sin(12 * X[:, None] + 12 * X[None])  # |k| = 17 of 24: high, though both parts are mid
    diagonal = (truth + oblique).expand(1, 1, 1, POINTS, POINTS)
    found = spectral_errors(truth.expand_as(diagonal), diagonal)
    torch.testing.assert_close([found[name].item() for name in THIRDS], [0.0, 0.0, 1.0], rtol=1e-9, atol=1e-6)


def test_spacing_makes_wavenumbers_physical() -> None:
    fraction = wavenumbers((8, 8), (1.0, 0.5), unit=0.5)
    assert fraction[4, 0] == 1  # Nyquist of the coarser axis
    assert fraction[0, 4] == 2  # the finer one reaches twice as far


def test_a_band_without_truth_is_divided_by_a_millionth_of_the_whole() -> None:
    truth = waves(3)
    found = spectral_errors(truth + 1e-4 * waves(20), truth)
    torch.testing.assert_close(found["high"].item(), 100.0, rtol=1e-6, atol=0)


def test_a_batch_gives_what_its_trajectories_give_alone_and_nan_stays_in_its_own() -> None:
    prediction, truth = torch.randn(2, 3, 2, 1, 16)
    prediction[1, 0, 0, 5] = math.nan
    together = spectral_errors(prediction, truth)
    for name, values in together.items():
        alone = torch.cat([spectral_errors(prediction[[i]], truth[[i]])[name] for i in range(3)])
        torch.testing.assert_close(values, alone, equal_nan=True)
        assert values.isnan().tolist() == [False, True, False]


def test_wrong_bands_and_spacings_are_refused(as_users_call_it) -> None:
    truth = waves(1)
    with pytest.raises(
        ValueError, match=r"Band 'odd' must be \(lower, upper\) with 0 <= lower < upper, got \(0.5, 0.2\)"
    ):
        spectral_errors(truth, truth, bands={"odd": (0.5, 0.2)})
    with pytest.raises(
        ValueError, match=r"`spacing` must have one number per axis of the grid \(48,\), got \(1.0, 1.0\)"
    ):
        spectral_errors(truth, truth, spacing=(1.0, 1.0))
