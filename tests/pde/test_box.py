"""Turbulence in a box: initial states, what is stored, options."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.pde.draws import drawn

from ssno.pde.grids import SpectralGrid
from ssno.pde.problems.box import BoxTurbulence, cube, half_space, on_points, random_velocity, taylor_green

SMALL = BoxTurbulence(points=8, solver_points=12, frames=2, first_time=0.3, viscosity=0.1)


def divergence(velocity: np.ndarray) -> float:
    """The largest divergence, beside the largest derivative."""
    grid = SpectralGrid(cube(velocity.shape[-1]), dealias=False)
    modes = grid.to_modes(torch.from_numpy(velocity))
    slopes = torch.stack([grid.to_field(modes * symbol) for symbol in grid.gradient()])
    total = sum(slopes[i, i] for i in range(3))
    return float(total.abs().max() / slopes.abs().max())


def test_a_seed_means_the_same_random_velocity_on_every_grid_that_carries_it() -> None:
    coarse, fine = random_velocity(4, 16), random_velocity(4, 32)
    np.testing.assert_allclose(fine[:, ::2, ::2, ::2], coarse, atol=1e-13)
    assert np.abs(random_velocity(5, 16) - coarse).max() > 0.5
    assert (coarse**2).sum(axis=0).mean() == pytest.approx(3)
    assert divergence(coarse) < 1e-13
    assert len(half_space(2)) == (5**3 - 1) // 2


def test_energy_of_the_random_velocity_lies_at_long_waves() -> None:
    spectrum = np.zeros(12)
    wave = np.fft.fftfreq(20, 1 / 20)
    length = np.sqrt(sum(k**2 for k in np.meshgrid(wave, wave, wave, indexing="ij")))
    for seed in range(4):
        modes = np.fft.fftn(random_velocity(seed, 20), axes=(1, 2, 3), norm="forward")
        np.add.at(spectrum, np.minimum(np.rint(length).astype(int), 11), (np.abs(modes) ** 2).sum(axis=0))
    assert spectrum.argmax() == 2
    assert spectrum[0] < 1e-25
    assert spectrum[6:].sum() < 1e-3 * spectrum.sum()


def test_taylor_green_at_angle_0_is_the_usual_one_and_every_angle_has_no_divergence() -> None:
    x, y, z = np.meshgrid(*[axis.coordinates() for axis in cube(8)], indexing="ij")
    usual = np.stack([np.sin(x) * np.cos(y) * np.cos(z), -np.cos(x) * np.sin(y) * np.cos(z), 0 * x])
    np.testing.assert_allclose(taylor_green(8, angle=0.0, shift=np.zeros(3)), usual, atol=1e-15)
    moved = taylor_green(8, angle=0.0, shift=np.array([2 * np.pi / 8, 0, 0]))
    np.testing.assert_allclose(moved, np.roll(usual, 1, axis=1), atol=1e-14)
    assert divergence(taylor_green(8, angle=1.1, shift=np.array([0.3, 1.0, 2.0]))) < 1e-13


def test_what_is_stored_are_the_solvers_waves_and_nothing_is_lost_at_three_halves() -> None:
    grid = SpectralGrid(cube(12), dealias=True)
    modes = grid.to_modes(torch.from_numpy(random_velocity(1, 12))[None])
    np.testing.assert_allclose(on_points(modes, 12)[0].numpy(), grid.to_field(modes)[0].numpy(), atol=1e-14)
    stored = on_points(modes, 8)
    again = SpectralGrid(cube(8), dealias=False).to_modes(stored)
    assert float(again.abs().square().sum()) > 0
    np.testing.assert_allclose(
        stored[0, :, ::4, ::4, ::4].numpy(), grid.to_field(modes)[0, :, ::6, ::6, ::6].numpy(), atol=1e-14
    )


@pytest.mark.parametrize("flow", ["forced", "decaying", "taylor-green"])
def test_every_flow_is_solved_without_divergence_whoever_is_in_the_batch(flow) -> None:
    problem = replace(SMALL, flow=flow)
    parameters = drawn(problem, 3)
    seen = []
    together = problem.solve(parameters, progress=lambda done, total: seen.append((done, total))).state
    np.testing.assert_array_equal(problem.solve(parameters[2:]).state[0], together[2])
    assert together.shape == (3, 2, 3, 8, 8, 8)
    assert divergence(together[0, 1]) < 1e-12
    assert seen[-1] == (6, 6)
    assert all(total == 6 and done <= 6 for done, total in seen)


def test_without_a_force_energy_is_lost_and_with_one_it_is_given() -> None:
    parameters = drawn(SMALL, 1)
    forced, decaying = (
        replace(SMALL, flow=flow, power=power).solve(parameters).state[0]
        for flow, power in (("forced", 5.0), ("decaying", 5.0))
    )
    energy = lambda state: (state**2).sum(axis=1).mean(axis=(1, 2, 3)) / 2  # noqa: E731
    assert energy(forced)[1] > energy(forced)[0] > energy(decaying)[0] > energy(decaying)[1]


def test_the_initial_state_may_be_stored() -> None:
    problem = replace(SMALL, first_time=0.0, frames=1)
    parameters = drawn(problem, 1)
    fine = problem.initial_condition(parameters[0], 12)
    modes = SpectralGrid(cube(12), dealias=True).to_modes(torch.from_numpy(fine)[None])
    np.testing.assert_allclose(problem.solve(parameters).state[0, 0], on_points(modes, 8)[0].numpy(), atol=1e-14)


@pytest.mark.usefixtures("as_users_call_it")
def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="`flow` must be one of 'forced', 'decaying', 'taylor-green', got 'wavy'"):
        BoxTurbulence(flow="wavy")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`first_time` must be 0 or a positive finite number, got -1"):
        BoxTurbulence(first_time=-1.0)
    with pytest.raises(ValueError, match="`viscosity` must be a positive finite number, got 0"):
        BoxTurbulence(viscosity=0.0)
    with pytest.raises(ValueError, match="`solver_points` must be at least 32, got 16"):
        BoxTurbulence(solver_points=16)
    with pytest.raises(ValueError, match="`points` must be at least 8, got 4"):
        BoxTurbulence(points=4)
    with pytest.raises(ValueError, match="`parameters` is empty"):
        SMALL.solve([])
