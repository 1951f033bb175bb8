"""Fields brought from one periodic grid to another."""

import numpy as np
import pytest
import torch

from ssno.data.grids import Reduction
from ssno.evaluation.solver import interpolate, straight_lines
from ssno.pde.geometry import Axis
from ssno.transforms.periodic import resample


def wave(axis: Axis, *numbers: int) -> np.ndarray:
    x = axis.coordinates()
    return sum(np.sin(2 * np.pi * k * x / axis.length + k) for k in numbers)


@pytest.mark.parametrize("how", ["spectral", "stride"])
@pytest.mark.parametrize("points", [15, 16])
def test_interpolation_is_exact_for_resolved_waves_at_any_points(points, how) -> None:
    old, new = Axis("x", 3.0, points), Axis("x", 3.0, 37, offset=0.021)
    found = interpolate(wave(old, 1, 4, 7), [old], [new], how)
    np.testing.assert_allclose(found, wave(new, 1, 4, 7), atol=1e-12)


def test_both_ways_keep_the_values_at_shared_points() -> None:
    fine, coarse = Axis("x", 1.0, 32), Axis("x", 1.0, 8)
    values = np.random.default_rng(0).normal(size=(2, 32))
    for how in ("stride", "linear"):
        np.testing.assert_allclose(interpolate(values, [fine], [coarse], how), values[:, ::4], atol=1e-12)


@pytest.mark.parametrize("grid", [(48,), (49,), (80,), (20, 12), (21, 12), (20, 11)])
def test_readers_forecasts_and_solvers_bring_fields_to_a_coarse_grid_alike(grid) -> None:
    fine = tuple(128 if len(grid) == 1 else 32 for _ in grid)
    truth = np.random.default_rng(1).normal(size=(1, 1, 1, *fine))
    read = Reduction(grid, "spectral")(truth)
    np.testing.assert_allclose(resample(torch.from_numpy(truth), grid), read, atol=1e-14)  # a perfect forecast
    old = tuple(Axis(name, 1.0, n) for name, n in zip("xy", fine, strict=False))
    new = tuple(Axis(name, 1.0, n) for name, n in zip("xy", grid, strict=False))
    np.testing.assert_allclose(interpolate(truth, old, new, "spectral"), read, atol=1e-14)


def test_waves_beyond_a_coarse_grid_are_cut_or_folded() -> None:
    old, new = Axis("x", 1.0, 128), Axis("x", 1.0, 48)
    np.testing.assert_allclose(interpolate(wave(old, 27), [old], [new], "spectral"), 0, atol=1e-13)
    np.testing.assert_allclose(interpolate(wave(old, 27), [old], [new], "stride"), wave(new, 27), atol=1e-12)


def test_linear_interpolation_averages_neighbours_across_the_seam_and_stays_in_bounds() -> None:
    old, new = Axis("x", 1.0, 4), Axis("x", 1.0, 4, offset=0.125)
    np.testing.assert_allclose(interpolate(np.array([0.0, 1, 1, 4]), [old], [new], "linear"), [0.5, 1, 2.5, 2])
    weights = straight_lines(old, Axis("x", 1.0, 9, offset=0.03))
    np.testing.assert_allclose(weights.sum(1), 1)
    assert weights.min() >= 0


def test_axes_of_a_square_are_taken_one_after_the_other() -> None:
    old = Axis("x", 1.0, 8), Axis("y", 2.0, 12)
    new = Axis("x", 1.0, 16, offset=0.01), Axis("y", 2.0, 6)
    field = wave(old[0], 2)[:, None] * wave(old[1], 1)
    expected = wave(new[0], 2)[:, None] * wave(new[1], 1)
    np.testing.assert_allclose(interpolate(field, old, new, "spectral"), expected, atol=1e-12)


def test_open_axes_and_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="Axis 'x' must be periodic and keep its length, got 1.0 and 2.0"):
        interpolate(np.zeros(4), [Axis("x", 1.0, 4)], [Axis("x", 2.0, 4)], "linear")
    with pytest.raises(ValueError, match="must be periodic"):
        interpolate(np.zeros(4), [Axis("x", 1.0, 4, periodic=False)], [Axis("x", 1.0, 4)], "linear")
