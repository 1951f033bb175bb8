"""The Burgers problem: against the closed solution, its statistics, its bitwise promise."""

import dataclasses

import numpy as np
import pytest
from jaxtyping import Float
from tests.pde.draws import drawn

from ssno.pde.problems.burgers import Burgers
from ssno.pde.problems.problem import SolverDiverged


def relative(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.norm(a - b, axis=-1) / np.linalg.norm(b, axis=-1)


def cole_hopf(
    parameters: dict[str, np.ndarray], x: Float[np.ndarray, " l"], *, time: float, diffusivity: float
) -> Float[np.ndarray, " l"]:
    """u = int (x-y)/t e^{-G/2d} dy / int e^{-G/2d} dy,  G = int_0^y u0 + (x-y)^2 / 2t,  for sums of sine waves.

    The weights span thousands of orders of magnitude: subtract the smallest G before taking exponentials. The
    integrand is smooth and decays, so the trapezoidal rule converges faster than any power of the spacing.
    """
    y = np.linspace(-2, 3, 5 * 2048 + 1)
    potential = np.zeros_like(y)
    for a, n, phase in zip(*(parameters[key] for key in ("amplitude", "wavenumber", "phase")), strict=True):
        k = 2 * np.pi * n
        potential += a * (np.sin(phase) * y if n == 0 else (np.cos(phase) - np.cos(k * y + phase)) / k)
    potential *= parameters["sign"]
    distance = x[:, None] - y
    exponent = -(potential + distance**2 / (2 * time)) / (2 * diffusivity)
    weight = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return (weight * distance).sum(axis=1) / weight.sum(axis=1) / time


@pytest.fixture(scope="module")
def plain() -> list[dict[str, np.ndarray]]:
    """Trajectories without absolute value or window, which the closed solution covers."""
    return [one for one in drawn(Burgers(), 9) if not (one["absolute"] or one["window"])][:4]


def errors(problem: Burgers, parameters: list[dict[str, np.ndarray]]) -> np.ndarray:
    """Relative distance from the closed solution: (trajectory, frame 1, 2, ...)."""
    x = problem.axes[0].coordinates()
    closed = [
        [cole_hopf(one, x, time=time, diffusivity=problem.diffusivity) for time in problem.times[1:]]
        for one in parameters
    ]
    return relative(problem.solve(parameters).state[:, 1:, 0], np.array(closed))


def test_the_exact_solver_agrees_with_the_cole_hopf_solution(plain: list[dict[str, np.ndarray]]) -> None:
    """To 1e-6 where 2048 points resolve the shocks, just formed (t = 0.14) and later."""
    problem = Burgers(solver="exact", viscosity=5e-3, points=128, frames=4, frame_interval=0.14, step=2e-4)
    assert errors(dataclasses.replace(problem, spectral_points=2048), plain).max() < 1e-6


def test_the_default_exact_solver_resolves_the_thin_shocks_of_the_data(
    plain: list[dict[str, np.ndarray]],
) -> None:
    error = errors(Burgers(solver="exact", points=128, frames=2, frame_interval=0.14), plain)
    assert np.median(error) < 5e-6
    assert error.max() < 5e-4


def test_finite_volumes_come_as_close_to_the_cole_hopf_solution_as_the_public_data(
    plain: list[dict[str, np.ndarray]],
) -> None:
    """About 1e-2 when shocks form, at most 3e-3 at t = 0.35."""
    problem = Burgers(points=128, frames=6, frame_interval=0.07, initial_period=1.0)
    error = errors(problem, plain)
    assert error.max() < 2e-2
    assert error[:, -1].max() < 3e-3


def test_the_diffusion_coefficient_is_the_viscosity_over_pi() -> None:
    """A wave too small to steepen decays as exp(-(viscosity / pi) k^2 t), in both solvers."""
    parameters = {
        "amplitude": np.array([1e-6]),
        "wavenumber": np.array([4]),
        "phase": np.array([0.0]),
        "absolute": np.array(0),
        "sign": np.array(1),
        "window": np.array(0),
        "window_edges": np.array([0.1, 0.55]),
    }
    shared = {"points": 256, "cells": 256, "frames": 2, "frame_interval": 1.0, "initial_period": 1.0}
    for problem in (Burgers(solver="exact", spectral_points=256, step=0.01, **shared), Burgers(**shared)):
        state = problem.solve([parameters]).state[0, :, 0]
        decay = np.exp(-1e-3 / np.pi * (8 * np.pi) ** 2)
        np.testing.assert_allclose(state[1], decay * state[0], atol=2e-4 * 1e-6)


def test_trajectories_too_fast_for_the_longest_step_take_shorter_ones() -> None:
    """max|u| = 3.2: h = 5e-4 would blow up at once; an eighth of it agrees with the closed solution."""
    parameters = {
        "amplitude": np.array([1.0, 1.0, 0.7, 0.5]),
        "wavenumber": np.array([1, 0, 0, 0]),
        "phase": np.full(4, np.pi / 2),
        "absolute": np.array(0),
        "sign": np.array(1),
        "window": np.array(0),
        "window_edges": np.array([0.1, 0.55]),
    }
    problem = Burgers(solver="exact", points=128, spectral_points=2048, frames=2, frame_interval=0.05)
    closed = cole_hopf(parameters, problem.axes[0].coordinates(), time=0.05, diffusivity=problem.diffusivity)
    slow = drawn(problem, 1)[0]
    slow["amplitude"] = 0.1 * slow["amplitude"]
    state = problem.solve([slow, parameters]).state[:, 1, 0]
    assert relative(state[1], closed) < 2e-6
    assert np.array_equal(state[0], problem.solve([slow]).state[0, 1, 0])


def test_initial_conditions_have_the_stated_statistics() -> None:
    """One in ten positive, one in ten windowed, x_R - x_L = 0.45, x_L in [0.1, 0.135], sign even, mean zero."""
    problem = Burgers(points=64)
    count = 4000
    parameters = drawn(problem, count)
    noise = 4 * np.sqrt(0.1 * 0.9 / count)
    assert abs(np.mean([one["absolute"] for one in parameters]) - 0.1) < noise
    windows = [one["window_edges"] for one in parameters if one["window"]]
    assert abs(len(windows) / count - 0.1) < noise
    left, right = np.array(windows).T
    np.testing.assert_allclose(right - left, 0.45)
    assert left.min() >= 0.1
    assert left.max() < 0.135
    assert abs(np.mean([one["sign"] for one in parameters])) < 4 / np.sqrt(count)
    fields = np.stack([problem.initial_condition(one, problem.axes[0]) for one in parameters])
    assert abs(fields.mean()) < 4 * fields.mean(axis=1).std() / np.sqrt(count)
    positive = [f.min() >= 0 or f.max() <= 0 for f, one in zip(fields, parameters, strict=True) if one["absolute"]]
    assert all(positive)
    # Without absolute value and window every wave, oscillating or not, has mean square (1/3)(1/2).
    ordinary = [not (one["absolute"] or one["window"]) for one in parameters]
    assert abs((fields[ordinary] ** 2).mean() - 4 / 6) < 0.03


def test_two_draws_choose_the_waves_that_oscillate() -> None:
    """Wavenumber j m_j, multiplicities adding up to two; a quarter of the draws hit one wave twice."""
    numbers = np.array([one["wavenumber"] for one in drawn(Burgers(), 4000)])
    multiplicity = numbers // np.arange(1, 5)
    assert (multiplicity.sum(axis=1) == 2).all()
    assert np.array_equal(numbers, multiplicity * np.arange(1, 5))
    assert abs((multiplicity == 2).any(axis=1).mean() - 0.25) < 0.03


def test_windows_cut_the_field_to_a_smooth_interval() -> None:
    problem = Burgers(initial_period=1.0)
    parameters = drawn(problem, 1)[0] | {"window": np.array(1), "window_edges": np.array([0.12, 0.57])}
    windowed = problem.initial_condition(parameters, problem.axes[0])
    whole = problem.initial_condition(parameters | {"window": np.array(0)}, problem.axes[0])
    x = problem.axes[0].coordinates()
    inside, outside = (x > 0.17) & (x < 0.52), (x < 0.07) | (x > 0.62)
    np.testing.assert_allclose(windowed[inside], whole[inside], rtol=1e-4)
    assert np.abs(windowed[outside]).max() < 2e-4
    edge = np.argmin(np.abs(x - 0.12))
    assert windowed[edge] == pytest.approx(0.5 * whole[edge], rel=0.06)


def test_independent_windows_have_edges_of_their_own() -> None:
    parameters = drawn(Burgers(window="independent"), 5000)
    left, right = np.array([one["window_edges"] for one in parameters if one["window"]]).T
    assert abs(np.corrcoef(left, right)[0, 1]) < 0.2
    assert (left >= 0.1).all()
    assert left.max() > 0.42
    assert (right >= 0.55).all()
    assert right.max() > 0.87
    assert abs(len(left) / 5000 - 0.1) < 0.02


def test_the_public_period_leaves_a_small_jump_at_the_seam() -> None:
    """The initial condition is periodic with 1 - 1/1024, so the value one spacing past the end is the second one."""
    problem = Burgers()
    parameters = drawn(problem, 1)[0]
    field = problem.initial_condition(parameters, problem.axes[0])
    assert problem.period == 1 - 1 / 1024
    assert field[-1] == pytest.approx(field[0], abs=1e-12)
    periodic = dataclasses.replace(problem, initial_period=1.0).initial_condition(parameters, problem.axes[0])
    assert abs(periodic[-1] - periodic[0]) > 1e-4


@pytest.mark.parametrize("solver", ["fv", "exact"])
def test_a_trajectory_is_bitwise_the_same_in_any_batch(solver: str) -> None:
    problem = Burgers(solver=solver, points=128, cells=256, spectral_points=1024, viscosity=0.01, frames=3)
    parameters = drawn(problem, 40)
    together = problem.solve(parameters).state
    for count in (1, 2, 7):
        chosen = np.random.default_rng(count).permutation(40)[:count]
        assert np.array_equal(problem.solve([parameters[i] for i in chosen]).state, together[chosen])


def test_both_solvers_store_the_same_points() -> None:
    fv, exact = Burgers(points=128), Burgers(points=128, solver="exact")
    assert fv.axes == exact.axes
    np.testing.assert_allclose(fv.axes[0].coordinates(), Burgers().axes[0].coordinates()[::8])
    assert Burgers().axes[0].coordinates()[0] == 1 / 2048
    np.testing.assert_allclose(fv.times, 0.01 * np.arange(141))


def test_progress_reaches_the_total_with_both_solvers() -> None:
    for solver in ("fv", "exact"):
        problem = Burgers(solver=solver, points=64, cells=64, spectral_points=512, viscosity=0.05, frames=3)
        calls: list[tuple[int, int]] = []
        problem.solve(drawn(problem, 5), progress=lambda *call, calls=calls: calls.append(call))
        assert calls[-1] == (15, 15)


@pytest.mark.parametrize(("solver", "amplitude"), [("fv", 1e300), ("fv", np.nan), ("exact", np.nan)])
def test_what_is_not_finite_is_reported_and_never_returned(solver: str, amplitude: float) -> None:
    problem = Burgers(solver=solver, points=64, cells=64, spectral_points=64, viscosity=0.05, frames=3)
    parameters = drawn(problem, 6)
    parameters[4]["amplitude"][:] = amplitude
    with pytest.raises(SolverDiverged, match=r"Trajectory 4 of the batch is no longer finite at solver step [01]"):
        problem.solve(parameters)
