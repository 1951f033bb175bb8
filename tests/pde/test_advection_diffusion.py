"""Linear problems against their closed solutions, in one to three dimensions."""

import numpy as np
import pytest
from tests.pde.draws import drawn

from ssno.pde.problems.heat import AdvectionDiffusion, Heat, LinearProblem

PROBLEMS = [
    Heat(points=33, diffusivity=0.02),
    Heat(dimensions=2, points=16, length=2.0),
    Heat(dimensions=3, points=12),
    AdvectionDiffusion(velocity=(-1.5,), points=64),
    AdvectionDiffusion(velocity=(0.4, -0.7), points=20, length=3.0),
    AdvectionDiffusion(velocity=(0.4, -0.7, 1.1), points=10, diffusivity=0.0),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: f"{problem.name}-{len(problem.axes)}d")
def test_the_solver_reproduces_the_closed_solution(problem: LinearProblem) -> None:
    parameters = drawn(problem, 3)
    state = problem.solve(parameters).state
    closed = [[problem.exact_solution(one, time)[None] for time in problem.times] for one in parameters]
    np.testing.assert_allclose(state, closed, rtol=0, atol=1e-13)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: f"{problem.name}-{len(problem.axes)}d")
def test_a_trajectory_is_bitwise_the_same_in_any_batch(problem: LinearProblem) -> None:
    parameters = drawn(problem, 7)
    together = problem.solve(parameters).state
    for chosen in ([4], [6, 0], [3, 6, 5, 0, 1, 2, 4]):
        assert np.array_equal(problem.solve([parameters[i] for i in chosen]).state, together[chosen])


def test_the_closed_solution_solves_the_equation() -> None:
    """Centred differences of it in space and time balance to second order."""
    problem = AdvectionDiffusion(velocity=(0.9,), points=512, diffusivity=0.03)
    parameters = drawn(problem, 1)[0]
    dt, dx = 1e-4, problem.axes[0].spacing
    past, now, future = (problem.exact_solution(parameters, 0.2 + s * dt) for s in (-1, 0, 1))
    u_t = (future - past) / (2 * dt)
    u_x = (np.roll(now, -1) - np.roll(now, 1)) / (2 * dx)
    u_xx = (np.roll(now, -1) - 2 * now + np.roll(now, 1)) / dx**2
    residual = u_t + 0.9 * u_x - 0.03 * u_xx
    assert np.abs(residual).max() < 2e-3 * np.abs(u_t).max()
