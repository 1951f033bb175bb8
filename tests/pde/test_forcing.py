"""Forces of a few waves: Fourier space and grid agree at any time."""

import numpy as np
import pytest
import torch

from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid
from ssno.pde.vorticity import WaveForce

SQUARE = (Axis("x", 1.0, 16), Axis("y", 1.0, 16))
GRID = SpectralGrid(SQUARE, dealias=True)
WAVES = np.array([[1, 0], [0, 1], [1, 1], [2, 0], [0, 2], [2, 2], [-3, 1], [1, -2], [-1, 0]])


def random_force(drift: float, batch: int = 3) -> WaveForce:
    sine, cosine = np.random.default_rng(0).uniform(-1, 1, size=(2, batch, len(WAVES)))
    return WaveForce(WAVES, sine=sine, cosine=cosine, drift=drift)


@pytest.mark.parametrize("drift", [0.0, 0.2, -1.3])
def test_the_force_added_to_modes_is_the_force_on_the_grid(drift: float) -> None:
    force = random_force(drift)
    rate = torch.zeros(3, 1, *GRID.modes_shape, dtype=torch.complex128)
    for time in (0.0, 3.7):
        added = force.on(GRID).add_to(rate.clone(), time)
        np.testing.assert_allclose(GRID.to_field(added)[:, 0].numpy(), force.values(SQUARE, time), atol=1e-14)


def test_a_force_has_no_mean_and_the_variance_of_its_amplitudes() -> None:
    """Waves that differ by more than a sign are orthogonal: half the sum of squares."""
    force = WaveForce(WAVES[:6], sine=np.full((1, 6), 0.3), cosine=np.full((1, 6), -0.2), drift=0.5)
    values = force.values(SQUARE, 2.0)
    assert abs(values.mean()) < 1e-16
    assert values.var() == pytest.approx(6 * (0.3**2 + 0.2**2) / 2)


def test_a_drifting_wave_moves_by_its_phase() -> None:
    force = WaveForce(np.array([[1, 0]]), sine=np.ones((1, 1)), cosine=np.zeros((1, 1)), drift=2 * np.pi / 16)
    np.testing.assert_allclose(force.values(SQUARE, 1.0)[0], np.roll(force.values(SQUARE, 0.0)[0], -1, 0), atol=1e-14)


def test_forces_that_cannot_be_are_refused() -> None:
    one = np.ones((1, 1))
    with pytest.raises(ValueError, match=r"contains \(0, 0\): a torus has no mean vorticity"):
        WaveForce(np.array([[0, 0]]), sine=one, cosine=one)
    for wave in ([6, 0], [0, 6]):
        with pytest.raises(ValueError, match=r"The wave \(., .\) of the force does not fit on a grid of \(16, 16\)"):
            WaveForce(np.array([wave]), sine=one, cosine=one).on(GRID)
