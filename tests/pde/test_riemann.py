"""The exact Riemann solution against published star values and its own jump conditions."""

import numpy as np
import pytest
from tests.pde.exact_gas import GasState, riemann_solution, star_region

SOD = (GasState(1.0, 0.0, 1.0), GasState(0.125, 0.0, 0.1))


def test_sods_star_values_are_the_published_ones() -> None:
    pressure, speed = star_region(*SOD)
    assert (pressure, speed) == (pytest.approx(0.30313, abs=1e-5), pytest.approx(0.92745, abs=1e-5))
    density = riemann_solution(*SOD, np.array([speed - 1e-3, speed + 1e-3]))[0]
    np.testing.assert_allclose(density, [0.42632, 0.26557], atol=1e-5)


@pytest.mark.parametrize("speed", [0.0, 0.7, -2.0])
def test_shocks_obey_the_jump_conditions(speed: float) -> None:
    """Two streams collide: S [U] = [F] across both shocks, with S read off the solution."""
    left, right = GasState(1.0, 2.0 + speed, 0.4), GasState(0.7, -2.0 + speed, 0.6)
    rays = np.linspace(-8, 8, 200001)
    rho, u, p = riemann_solution(left, right, rays)
    energy = p / 0.4 + 0.5 * rho * u**2
    conserved = np.stack([rho, rho * u, energy])
    flux = np.stack([rho * u, rho * u**2 + p, (energy + p) * u])
    for jump in (np.flatnonzero(np.diff(p))[0], np.flatnonzero(np.diff(p))[-1]):
        difference = (rays[jump] * np.diff(conserved[:, jump : jump + 2]) - np.diff(flux[:, jump : jump + 2]))[:, 0]
        assert np.abs(difference).max() < 1e-3


def test_rarefactions_are_isentropic_and_continuous() -> None:
    rays = np.linspace(-3, 3, 4001)
    rho, u, p = riemann_solution(GasState(1.0, -0.5, 1.0), GasState(1.0, 0.5, 1.0), rays)
    np.testing.assert_allclose(p / rho**1.4, 1.0, rtol=1e-12)
    assert np.abs(np.diff(u)).max() < 2e-3
    np.testing.assert_allclose(rho, rho[::-1], rtol=1e-12)
