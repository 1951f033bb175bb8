"""Gaussian random fields: variance, spectrum, and one field on all grids."""

import numpy as np
import pytest

from ssno.pde.initial_conditions import gaussian_field, half_plane, mode_variance


def amplitudes(field: np.ndarray) -> np.ndarray:
    return np.fft.fft2(field, norm="forward")


def test_the_conventions_have_the_published_standard_deviations() -> None:
    """0.262 for the files of 2020, 0.185 for the code after 2022; both halves of the plane count."""
    modes = half_plane(127)
    assert np.sqrt(2 * mode_variance(modes).sum()) == pytest.approx(0.262, abs=5e-4)
    assert np.sqrt(2 * mode_variance(modes, convention="fno2022").sum()) == pytest.approx(0.185, abs=5e-4)
    variances = [gaussian_field(seed, 32).var() for seed in range(300)]
    assert np.sqrt(np.mean(variances)) == pytest.approx(0.262, abs=0.01)


def test_the_spectrum_follows_the_formula_in_every_shell() -> None:
    """|w_m|^2 over its expectation is exponential with mean 1: shell means within 4.5 standard errors."""
    modes, seeds = half_plane(15), 200
    shell = np.abs(modes).max(axis=1)
    powers = np.zeros((seeds, len(modes)))
    for seed in range(seeds):
        coefficients = amplitudes(gaussian_field(seed, 32))
        powers[seed] = np.abs(coefficients[modes[:, 0], modes[:, 1]]) ** 2 / mode_variance(modes)
    for number in range(1, 16):
        here = powers[:, shell == number]
        assert abs(here.mean() - 1) < 4.5 / np.sqrt(here.size)
    assert powers.std() == pytest.approx(1, abs=0.02)


def test_fields_have_no_mean_and_are_isotropic() -> None:
    field = gaussian_field(3, 64)
    assert abs(field.mean()) < 1e-16
    fields = np.stack([gaussian_field(seed, 16) for seed in range(400)])
    along = [np.mean(np.diff(fields, axis=axis) ** 2) for axis in (1, 2)]
    assert along[0] == pytest.approx(along[1], rel=0.05)


def test_a_finer_grid_keeps_the_long_waves_of_the_same_seed() -> None:
    coarse, fine = amplitudes(gaussian_field(7, 31)), amplitudes(gaussian_field(7, 64))
    numbers = np.arange(-15, 16)
    np.testing.assert_allclose(fine[np.ix_(numbers, numbers)], coarse[np.ix_(numbers, numbers)], atol=1e-16)


def test_seeds_give_different_fields_and_the_same_seed_the_same() -> None:
    assert np.array_equal(gaussian_field(1, 16), gaussian_field(1, 16))
    assert abs(np.corrcoef(gaussian_field(1, 16).ravel(), gaussian_field(2, 16).ravel())[0, 1]) < 0.9


@pytest.mark.usefixtures("as_users_call_it")
def test_impossible_fields_are_refused() -> None:
    with pytest.raises(ValueError, match="`points` must be at least 2, got 1"):
        gaussian_field(0, 1)
    with pytest.raises(ValueError, match="`seed` must be at least 0, got -1"):
        gaussian_field(-1, 8)
    with pytest.raises(ValueError, match=r"`tau` must be a positive finite number, got 0\.0"):
        gaussian_field(0, 8, tau=0.0)
    with pytest.raises(ValueError, match="`convention` must be one of 'fno2020', 'fno2022', got 'fno2024'"):
        gaussian_field(0, 8, convention="fno2024")  # type: ignore[arg-type]
