"""Spatial reduction in one, two and three dimensions."""

import numpy as np
import pytest

from ssno.data.errors import DataError
from ssno.data.grids import Reduction, axis_from_coordinates, box, uniform_step
from ssno.data.trajectories import Trajectories


def waves(shape: tuple[int, ...], modes: int) -> np.ndarray:
    """A random field (1, 1, 1, *shape) with wave numbers up to `modes` along every axis."""
    rng = np.random.default_rng(2)
    total = np.zeros(shape)
    grids = np.meshgrid(*(2 * np.pi * np.arange(n) / n for n in shape), indexing="ij")
    for _ in range(12):
        k = rng.integers(-modes, modes + 1, size=len(shape))
        phase = sum(number * grid for number, grid in zip(k, grids, strict=True))
        total += rng.normal() * np.cos(phase + rng.uniform(0, 6))
    return total[None, None, None]


@pytest.mark.parametrize("shape", [(48,), (24, 48), (24, 12, 48)])
def test_all_reductions_agree_on_what_the_coarse_grid_resolves(shape) -> None:
    field = waves(shape, modes=2)
    coarse = tuple(n // 2 for n in shape)
    strided = Reduction(coarse, "stride")(field)
    np.testing.assert_allclose(Reduction(coarse, "spectral")(field), strided, atol=1e-12)
    # The average of a wave over two cells is its value at the middle, damped by cos(k dx / 2).
    constant = Reduction(coarse, "mean")(np.ones_like(field))
    np.testing.assert_allclose(constant, np.ones((1, 1, 1, *coarse)), atol=1e-14)


def test_averaging_a_wave_gives_its_cell_average_at_the_new_centres() -> None:
    (axis,) = box("x", [64], lengths=[2 * np.pi])
    field = np.sin(3 * axis.coordinates())[None, None, None]
    reduction = Reduction((16,), "mean")
    (coarse,) = reduction.applied_to((axis,))
    dx = axis.spacing
    gain = np.sin(3 * 4 * dx / 2) / (4 * np.sin(3 * dx / 2))
    np.testing.assert_allclose(reduction(field)[0, 0, 0], gain * np.sin(3 * coarse.coordinates()), atol=1e-13)


@pytest.mark.parametrize("points", [15, 16, 20, 31, 32])
def test_spectral_reduction_samples_the_band_limited_part_on_any_coarse_grid(points) -> None:
    x = 2 * np.pi * np.arange(40) / 40
    kept, removed = np.sin(3 * x + 1) + 0.5, np.cos(18 * x)
    reduced = Reduction((points,), "spectral")((kept + removed)[None, None, None])[0, 0, 0]
    coarse = 2 * np.pi * np.arange(points) / points
    expected = np.sin(3 * coarse + 1) + 0.5 + (np.cos(18 * coarse) if points > 36 else 0)
    np.testing.assert_allclose(reduced, expected, atol=1e-12)


def test_a_spectral_view_of_a_dataset_keeps_its_origin() -> None:
    x = np.arange(24) / 24 * 2.0
    waves = np.sin(np.pi * x)[None, None, None] + np.zeros((2, 3, 1, 24))
    view = Trajectories.from_array(waves, lengths=(2.0,), offsets=(0.5,)).select(resolution=10, reduction="spectral")
    expected = np.sin(np.pi * np.arange(10) / 10 * 2.0)
    np.testing.assert_allclose(view.read([1]).state[0, 2, 0], expected, atol=1e-6)
    assert (view.axes[0].length, view.axes[0].points, view.axes[0].offset) == (2.0, 10, 0.5)


def test_an_even_grid_keeps_the_cosine_of_its_highest_wave() -> None:
    x = 2 * np.pi * np.arange(32) / 32
    reduced = Reduction((16,), "spectral")((3 * np.cos(8 * x) + np.sin(8 * x))[None, None, None])
    np.testing.assert_allclose(reduced[0, 0, 0], 3 * (-1.0) ** np.arange(16), atol=1e-14)


def test_one_number_scales_all_axes_and_a_tuple_sets_each() -> None:
    data = Trajectories.from_array(np.zeros((1, 2, 1, 16, 32)), lengths=(1.0, 2.0))
    assert data.select(resolution=8).shape[3:] == (8, 16)
    assert data.select(resolution=(4, 32)).shape[3:] == (4, 32)
    assert data.select(resolution=(4, 32)).spacing == (0.25, 2 / 32)


@pytest.mark.parametrize(
    ("points", "how", "message"),
    [
        (5, "stride", "`resolution` along x must divide 16 for reduction 'stride', got 5"),
        (5, "mean", "`resolution` along x must divide 16 for reduction 'mean', got 5"),
        (32, "stride", "`resolution` along x must be between 1 and 16, got 32"),
        ((8, 8), "stride", r"`resolution` must have one number per axis \(1\)"),
        (8, "median", "`reduction` must be one of 'stride', 'mean', 'spectral', got 'median'"),
    ],
)
def test_impossible_reductions_are_refused(as_users_call_it, points, how, message) -> None:
    data = Trajectories.from_array(np.zeros((1, 2, 1, 16)))
    with pytest.raises(ValueError, match=message):
        data.select(resolution=points, reduction=how)


def test_grids_that_cannot_shrink_evenly_and_open_axes_are_refused() -> None:
    uneven = Trajectories.from_array(np.zeros((1, 2, 1, 16, 12)))
    with pytest.raises(ValueError, match=r"`resolution` 2 does not scale the grid \(16, 12\) evenly"):
        uneven.select(resolution=2)
    bounded = Trajectories.from_array(np.zeros((1, 2, 1, 16)), periodic=False)
    with pytest.raises(ValueError, match="Spectral reduction needs a periodic axis, x is not"):
        bounded.select(resolution=8, reduction="spectral")


def test_coordinates_in_single_precision_still_give_round_lengths() -> None:
    centres = (np.arange(1024, dtype=np.float32) + np.float32(0.5)) / np.float32(1024)
    axis = axis_from_coordinates("x", centres.astype(np.float64))
    assert (axis.length, axis.points) == (1.0, 1024)
    assert axis.offset == pytest.approx(1 / 2048, rel=1e-6)
    assert uniform_step(np.float32(0.01) * np.arange(202), what="t") == pytest.approx(0.01, rel=1e-6)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.0, 1.0, 3.0], "t is not uniform: it departs from equal spacing 1.5 by 0.5"),
        ([0.0, -1.0], "t must increase"),
        ([0.0, np.nan, 2.0], "t contains values that are not finite"),
        ([0.0], "t has 1 value, at least 2 are needed"),
    ],
)
def test_coordinates_that_are_no_grid_are_refused(values, message) -> None:
    with pytest.raises(DataError, match=message):
        uniform_step(np.array(values), what="t")
