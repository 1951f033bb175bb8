"""Shallow water on the sphere: known flows, conservation, symmetries, orders, and the public scheme."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.pde.public_sphere import public_frame

from ssno.pde import sphere as sphere_flows
from ssno.pde.integrators import restarted_adams_bashforth, runge_kutta
from ssno.pde.problems.problem import SolverDiverged
from ssno.pde.problems.shallow_water import ShallowWater
from ssno.pde.sphere import EARTH, ShallowWaterEquations, solver_grid
from ssno.transforms import SphereGrid

GOLDEN = Path(__file__).parents[1] / "golden" / "swe_public.npz"
DAY = 86400.0


def known(**values: float) -> dict[str, np.ndarray]:
    return {name: np.array(value) for name, value in values.items()}


def norm(modes: np.ndarray) -> float:
    return float(np.sqrt((np.abs(modes[0]) ** 2).sum() + 2 * (np.abs(modes[1:]) ** 2).sum()))


def invariants(equations: ShallowWaterEquations, modes: np.ndarray) -> np.ndarray:
    """Mass, energy and potential enstrophy of one state (m, l, c)."""
    state = torch.from_numpy(modes)[..., None]
    (phi, zeta), (u, v) = (pair.unbind(2) for pair in equations.fields(state))
    area = torch.from_numpy(equations.grid.area)[:, None]
    energy = phi * (u**2 + v**2) / 2 + phi**2 / 2
    enstrophy = (zeta + equations.coriolis) ** 2 / (2 * phi)
    return np.array([float((area * field).sum()) for field in (phi, energy, enstrophy)])


def test_the_solver_grid_is_the_published_one() -> None:
    assert [(solver_grid(n).nlat, solver_grid(n).nlon) for n in (11, 22, 43, 86)] == [
        (16, 32),
        (32, 64),
        (64, 128),
        (128, 256),
    ]
    assert [ShallowWater(nlat=n).degrees for n in (32, 64, 128, 256)] == [11, 22, 43, 86]


@pytest.mark.parametrize(
    ("nlat", "days"), [(32, 1.0), pytest.param(128, 5.0, marks=pytest.mark.verify)], ids=["quick", "whole"]
)
def test_solid_rotation_about_any_axis_is_steady(nlat: int, days: float) -> None:
    problem = ShallowWater(
        nlat=nlat, frames=2, interval=days * DAY, step=600.0, initial="zonal", scheme="rk4", hyperdiffusion=0.0
    )
    frames = problem.coefficients([known(angle=angle) for angle in (0.0, 0.79, 1.52)])
    for first, last in frames:
        for field in (0, 1):
            assert norm((last - first)[..., field]) < 1e-10 * norm(first[..., field])
        assert norm(last[..., 2]) < 1e-10 * norm(first[..., 1])


@pytest.mark.verify
def test_the_rossby_haurwitz_wave_travels_east_and_conserves() -> None:
    problem = ShallowWater(nlat=128, frames=15, interval=DAY, step=600.0, initial="rossby-haurwitz", hyperdiffusion=0.0)
    frames = problem.coefficients([known(longitude=0.0)])[0]
    speed = -np.diff(np.unwrap(np.angle(frames[:, 4, 5, 1]))) / 4 * 180 / np.pi
    assert ((speed[1:] > 11.1) & (speed[1:] < 11.52)).all()
    equations = ShallowWaterEquations(43)
    first, last = invariants(equations, frames[0]), invariants(equations, frames[-1])
    assert (np.abs(last / first - 1) < [1e-15, 1e-7, 1e-4]).all()


def test_the_rossby_haurwitz_wave_sets_off_east() -> None:
    problem = ShallowWater(nlat=32, frames=2, interval=DAY / 2, initial="rossby-haurwitz", hyperdiffusion=0.0)
    frames = problem.coefficients([known(longitude=0.0)])[0]
    speed = -np.diff(np.unwrap(np.angle(frames[:, 4, 5, 1]))) / 4 * 180 / np.pi / 0.5
    assert 11 < speed[0] < 12.2
    equations = ShallowWaterEquations(11)
    first, last = invariants(equations, frames[0]), invariants(equations, frames[-1])
    assert (np.abs(last / first - 1) < [1e-15, 1e-5, 1e-2]).all()


def test_the_jet_has_the_published_depth() -> None:
    assert sphere_flows.jet_depth(np.array([-1.0]))[0] == pytest.approx(10158.186170454619, abs=1e-9)


@pytest.mark.verify
def test_the_jet_rolls_up() -> None:
    problem = ShallowWater(
        nlat=128,
        frames=25,
        interval=6 * 3600.0,
        step=600.0,
        initial="galewsky",
        scheme="rk4",
        hyperdiffusion=0.0,
        viscosity=1e5,
    )
    frames = problem.coefficients([known(longitude=0.0)])[0]
    rms = [norm(frames[hour // 6][..., 1]) / np.sqrt(4 * np.pi) for hour in (96, 144)]
    assert rms[0] == pytest.approx(2.19425e-5, rel=1e-3)
    assert rms[1] == pytest.approx(2.0141e-5, rel=1e-2)
    equations = ShallowWaterEquations(43)
    energy = invariants(equations, frames[-1])[1] / invariants(equations, frames[0])[1] - 1
    assert energy == pytest.approx(-5.84e-4, rel=0.05)


def test_a_jet_without_a_bump_stays_as_it_is() -> None:
    equations = ShallowWaterEquations(43)
    state = sphere_flows.galewsky(equations, longitude=0.0, bump=0.0)[..., None]
    rate = equations.rate(state)[..., 0]
    assert rate[1:].abs().max() < 1e-12  # nothing turns the zonal flow into waves
    # the jet is not band limited: what is left of its balance after the cut is a part in a hundred of Coriolis
    assert norm(rate[..., 2].numpy()) < 0.02 * norm(state[..., 1, 0].numpy()) * 2 * EARTH.rotation


def test_balanced_eddies_have_their_speed_and_no_tendency_of_divergence() -> None:
    for degrees in (11, 22):
        equations = ShallowWaterEquations(degrees)
        state = sphere_flows.vortical(equations, seed=5)[..., None]
        _, velocity = equations.fields(state)
        area = torch.from_numpy(equations.grid.area)[:, None, None]
        assert float((area * velocity**2).sum().sqrt()) == pytest.approx(20.0, rel=1e-12)
        rate = equations.rate(state)
        assert rate[:, :, 2].abs().max() < 1e-11 * rate[:, :, 1].abs().max()
        assert float(state[0, 0, 0, 0].real) == pytest.approx(equations.mean_geopotential)


def test_the_public_scheme_equals_a_dense_one_and_the_frozen_frame() -> None:
    golden = np.load(GOLDEN)
    problem = ShallowWater(nlat=32, frames=2)
    first, last = problem.coefficients([known(field_seed=7)])[0]
    l, m = golden["l"], golden["m"]
    np.testing.assert_allclose(first[m, l].T, golden["first"], rtol=1e-14)
    for found in (public_frame(golden["first"], degrees=11, dt=1200.0, steps=3), golden["last"]):
        for field in range(3):
            difference = np.linalg.norm(found[field] - last[m, l, field])
            assert difference < 1e-11 * np.linalg.norm(found[field][1:])


@pytest.mark.parametrize("nlat", [32, 64])
def test_public_states_have_the_variance_of_the_closed_form(nlat: int) -> None:
    degrees = ShallowWater(nlat=nlat).degrees
    equations = ShallowWaterEquations(degrees)
    states = [sphere_flows.public(equations, seed=seed) for seed in range(64)]
    share = (degrees**2 - degrees / 2) / 14520
    expected = np.array([EARTH.gravity * 120, *[0.2 * (EARTH.gravity * 1e4) ** 0.5 / EARTH.radius] * 2]) ** 2 * share
    variances = []
    for state in states:
        state[0, 0, 0] -= equations.mean_geopotential
        variances.append([norm(state[..., field].numpy()) ** 2 / (4 * np.pi) for field in range(3)])
    found, error = np.mean(variances, 0), np.std(variances, 0) / 8
    assert (np.abs(found - expected) < 3 * error).all()


def test_grids_share_trajectories() -> None:
    coarse, fine = (sphere_flows.public(ShallowWaterEquations(n), seed=3) for n in (11, 22))
    torch.testing.assert_close(fine[:11, :11], coarse, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("nlat", "ratios"), [(32, (0.87, 0.89, 0.65)), pytest.param(64, (0.72, 0.70, 0.58), marks=pytest.mark.verify)]
)
def test_public_data_decay_as_measured(nlat: int, ratios: tuple[float, ...]) -> None:
    """Norm at frames 20, 50, 100 over that at 0, in standard deviations of frame 0."""
    state = ShallowWater(nlat=nlat).solve([known(field_seed=seed) for seed in range(8)]).state
    area = SphereGrid(nlat, 2 * nlat).area[:, None]
    mean = (area * state[:, 0]).sum((-1, -2)).mean(0)[:, None, None]
    scale = np.sqrt((area * (state[:, 0] - mean) ** 2).sum((-1, -2)).mean(0))[:, None, None]
    norms = np.sqrt((area * ((state - mean) / scale) ** 2).sum((-1, -2, -3)))
    np.testing.assert_allclose((norms[:, [20, 50, 100]] / norms[:, :1]).mean(0), ratios, rtol=0.1)


def test_runge_kutta_is_of_fourth_order_and_the_public_scheme_of_first() -> None:
    equations = ShallowWaterEquations(8)
    state = sphere_flows.public(equations, seed=1)[..., None]
    factor = torch.ones(1, dtype=torch.float64)

    def error(scheme, steps: int, exact: torch.Tensor) -> float:
        return norm(
            (scheme(equations.rate, state, dt=7200 / steps, steps=steps, factor=factor) - exact).numpy()[..., 1, 0]
        )

    exact = runge_kutta(equations.rate, state, dt=7200 / 96, steps=96, factor=factor)
    assert error(runge_kutta, 12, exact) / error(runge_kutta, 24, exact) == pytest.approx(16, rel=0.15)
    ratio = error(restarted_adams_bashforth, 24, exact) / error(restarted_adams_bashforth, 48, exact)
    assert 1.5 < ratio < 5  # first order at the start, third after it


def test_turning_the_sphere_and_mirroring_it_commute_with_the_flow() -> None:
    equations = ShallowWaterEquations(11)
    state = sphere_flows.public(equations, seed=2)[..., None]
    m, l = torch.arange(11, dtype=torch.float64)[:, None, None, None], torch.arange(11)[None, :, None, None]
    parity = (-1.0) ** (m + l)
    mirror = torch.cat([parity, -parity, parity], dim=2)  # Phi and delta are even, zeta is odd
    for change in (torch.exp(-0.7j * m), mirror):
        turned = equations.rate(state * change)
        rate = equations.rate(state) * change
        for field in range(3):
            assert norm((turned - rate)[:, :, field].numpy()) < 1e-12 * norm(rate[:, :, field].numpy())


def test_the_mean_depth_never_changes() -> None:
    frames = ShallowWater(nlat=32, frames=6).coefficients([known(field_seed=4)])[0]
    assert (frames[:, 0, 0, 0] == frames[0, 0, 0, 0]).all()


def test_a_trajectory_has_the_same_bits_in_any_company() -> None:
    problem = ShallowWater(nlat=16, frames=3, initial="vortical", interval=7200.0)
    draws = [problem.draw(np.random.Generator(np.random.Philox(seed))) for seed in range(3)]
    together = problem.solve(draws).state
    assert together.shape == (3, 3, 3, 16, 32)
    assert (problem.solve([draws[2]]).state[0] == together[2]).all()


def test_poles_hold_one_value() -> None:
    state = ShallowWater(nlat=16, frames=2).solve([known(field_seed=1)]).state[0]
    spread = np.ptp(state[:, :, [0, -1]], axis=-1)
    assert (spread < 1e-9 * np.abs(state).max(axis=(-1, -2))[..., None]).all()


@pytest.mark.parametrize("initial", ["vortical", "galewsky", "rossby-haurwitz", "zonal"])
def test_every_state_draws_solves_and_stays_finite(initial) -> None:
    problem = ShallowWater(nlat=16, frames=2, initial=initial)
    solution = problem.solve([problem.draw(np.random.Generator(np.random.Philox(1)))])
    assert solution.state.shape == (1, 2, 3, 16, 32)
    assert problem.scheme == "rk4"
    assert problem.interval == 21600


def test_axes_reach_from_pole_to_pole() -> None:
    colatitude, longitude = ShallowWater(nlat=32).axes
    np.testing.assert_allclose(colatitude.coordinates()[[0, -1]], [0, np.pi])
    assert (colatitude.periodic, longitude.periodic, longitude.points) == (False, True, 64)


def test_more_degrees_than_are_drawn_are_refused() -> None:
    with pytest.raises(ValueError, match="Random states have 120 degrees"):
        sphere_flows.normal_modes(0, 121)


def test_a_step_that_is_too_long_is_named() -> None:
    problem = ShallowWater(nlat=32, frames=20, scheme="rk4", interval=86400.0, step=21600.0)
    with pytest.raises(SolverDiverged, match="Use a smaller time step"):
        problem.solve([known(field_seed=1)])
