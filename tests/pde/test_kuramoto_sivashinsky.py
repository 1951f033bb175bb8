"""The Kuramoto-Sivashinsky problem: against an independent solver, its statistics, its bitwise promise."""

import dataclasses

import numpy as np
import pytest
import scipy.fftpack
import scipy.integrate
from tests.pde.draws import drawn

from ssno.base.device import threads
from ssno.data.datasets import build_problem
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky, KuramotoSivashinskyAttractor
from ssno.pde.problems.problem import SolverDiverged
from ssno.pde.spectral import engine


@pytest.fixture(scope="module")
def problem() -> KuramotoSivashinsky:
    return KuramotoSivashinsky(frames=4, end_time=0.3)


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def test_the_public_generator_gives_the_same_trajectory() -> None:
    """Method of lines with spectral derivatives, no dealiasing, Radau with tolerance 1e-9: how the data were made."""
    problem = KuramotoSivashinsky(viscosity=0.1, frames=2, end_time=0.5)
    (parameters,) = drawn(problem, 1)
    length = problem.length

    def rate(time: float, u: np.ndarray) -> np.ndarray:
        u_x, u_xx, u_xxxx = (scipy.fftpack.diff(u, order, length) for order in (1, 2, 4))
        return -u * u_x - u_xx - problem.viscosity * u_xxxx

    start = problem.initial_condition(parameters, problem.axes[0])
    reference = scipy.integrate.solve_ivp(rate, (0, 0.5), start, method="Radau", rtol=1e-9, atol=1e-9).y[:, -1]
    assert relative(problem.solve([parameters]).state[0, -1, 0], reference) < 1e-8


def test_the_default_step_and_grid_are_fine_enough() -> None:
    """Over the whole window, at the smallest viscosity: half the step or half as many points again change little."""
    problem = KuramotoSivashinsky(viscosity=0.075, frames=6)
    parameters = drawn(problem, 8)
    state = problem.solve(parameters).state
    half_step = dataclasses.replace(problem, step=0.0025).solve(parameters).state
    finer_grid = dataclasses.replace(problem, solver_points=1024).solve(parameters).state
    assert relative(state[:, -1], half_step[:, -1]) < 2e-5
    assert relative(state[:, -1], finer_grid[:, -1]) < 2e-5


def test_waves_grow_from_their_stated_size_into_chaos() -> None:
    """rms 0.645 at the start, about 4.3 at the end for viscosity 0.075, |u| around 11."""
    problem = KuramotoSivashinsky(frames=2)
    state = problem.solve(drawn(problem, 64)).state[:, :, 0]
    assert 0.55 < np.sqrt((state[:, 0] ** 2).mean()) < 0.75
    assert 4.0 < np.sqrt((state[:, -1] ** 2).mean()) < 4.6
    assert 9 < np.abs(state).max() < 13


@pytest.mark.parametrize(("waves", "rms"), [(10, 0.6455), (21, 0.9354)])
def test_initial_waves_have_the_stated_statistics(waves: int, rms: float) -> None:
    """rms^2 = waves * (1/12) / 2; wavenumbers 1 ... lmax - 1."""
    problem = KuramotoSivashinsky(waves=waves, points=64)
    parameters = drawn(problem, 1500)
    fields = np.stack([problem.initial_condition(one, problem.axes[0]) for one in parameters])
    assert abs(np.sqrt((fields**2).mean()) - rms) < 0.02 * rms
    assert np.abs(fields.mean(axis=1)).max() < 1e-13
    numbers = np.concatenate([one["wavenumber"] for one in parameters])
    assert np.array_equal(np.unique(numbers), np.arange(1, 9))
    assert np.allclose(np.bincount(numbers)[1:] / len(numbers), 1 / 8, atol=0.01)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_trajectory_is_bitwise_the_same_in_any_batch(problem: KuramotoSivashinsky, count: int) -> None:
    parameters = drawn(problem, 65)
    together = problem.solve(parameters).state
    chosen = np.random.default_rng(count).permutation(65)[:count]
    assert np.array_equal(problem.solve([parameters[i] for i in chosen]).state, together[chosen])


def test_order_and_threads_do_not_change_a_bit(problem: KuramotoSivashinsky) -> None:
    parameters = drawn(problem, 7)
    once = problem.solve(parameters).state
    with threads(2):
        assert np.array_equal(problem.solve(parameters[::-1]).state[::-1], once)


def test_a_coarse_grid_stores_points_of_the_same_solution(problem: KuramotoSivashinsky) -> None:
    parameters = drawn(problem, 2)
    coarse = dataclasses.replace(problem, points=64)
    assert np.array_equal(coarse.solve(parameters).state, problem.solve(parameters).state[..., ::8])
    np.testing.assert_array_equal(coarse.axes[0].coordinates(), problem.axes[0].coordinates()[::8])


def test_frames_and_steps_follow_the_public_data() -> None:
    problem = KuramotoSivashinsky()
    np.testing.assert_allclose(problem.times, 0.1 * np.arange(26))
    np.testing.assert_allclose(problem.axes[0].coordinates(), 0.125 * np.arange(512))
    assert problem.dt == pytest.approx(0.005)
    options = {"points": 512, "dt": problem.dt, "dealias": True, "block": 64, "engine": engine(512)}
    assert problem.solver_options == options


def test_too_long_a_step_is_reported_with_trajectory_step_and_time() -> None:
    problem = KuramotoSivashinsky(viscosity=0.01, frames=3, end_time=20.0, step=0.5)
    with pytest.raises(SolverDiverged, match=r"Trajectory 0 of the batch is no longer finite at solver step \d+"):
        problem.solve(drawn(problem, 1))


def test_attractor_data_are_the_late_frames_of_the_same_trajectories() -> None:
    options = {"viscosity": 0.1, "points": 64, "solver_points": 128, "step": 0.02}
    late = KuramotoSivashinskyAttractor(frames=5, warm_up=0.6, end_time=1.0, **options)
    whole = KuramotoSivashinsky(frames=11, end_time=1.0, **options)
    drawn = [late.draw(np.random.default_rng(seed)) for seed in range(3)]
    np.testing.assert_allclose(late.times, [0.6, 0.7, 0.8, 0.9, 1.0])
    assert late.dt == whole.dt
    np.testing.assert_array_equal(late.solve(drawn).state, whole.solve(drawn).state[:, 6:])
    assert build_problem("ks-attractor", "small").times[[0, -1]].tolist() == [6.0, 22.0]


@pytest.mark.parametrize(
    ("warm_up", "message"),
    [
        (0.65, "`warm_up` must be a multiple of `frame_interval`, got 0.65"),
        (-0.1, "`warm_up` must be a multiple of `frame_interval`, got -0.1"),
        (1.0, "`end_time` must be later than `warm_up` 1, got 1"),
    ],
)
def test_attractor_data_begin_at_a_frame(warm_up, message) -> None:
    with pytest.raises(ValueError, match=message):
        KuramotoSivashinskyAttractor(frames=5, warm_up=warm_up, end_time=1.0)
