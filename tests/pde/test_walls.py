"""Problems with walls: the unfolded solver against closed forms, symmetries, references and refinement."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from tests.pde.draws import drawn

from ssno.evaluation.solver import interpolate
from ssno.pde.problems.gray_scott import GrayScott
from ssno.pde.problems.heat import HeatBox
from ssno.pde.spectral import box_axis, crop, extend, unfolded


@pytest.mark.parametrize("boundary", ["dirichlet", "neumann", "mixed"])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_heat_between_walls_is_the_closed_solution(boundary, dimensions) -> None:
    problem = HeatBox(boundary=boundary, dimensions=dimensions, points=9, frames=5, diffusivity=0.05)
    parameters = drawn(problem, 3)
    exact = [[problem.exact_solution(one, time) for time in problem.times] for one in parameters]
    np.testing.assert_allclose(problem.solve(parameters).state[:, :, 0], exact, rtol=0, atol=1e-13)
    assert not any(axis.periodic for axis in problem.axes)


@pytest.mark.parametrize(("boundary", "odd"), [("dirichlet", True), ("neumann", False)])
def test_walls_hold_the_value_or_stop_the_flux(boundary, odd) -> None:
    """One-sided differences towards the wall, half a cell away, vanish with the cell."""
    size = []
    for points in (64, 128):
        problem = HeatBox(boundary=boundary, dimensions=1, points=points, frames=3)
        u = problem.solve(drawn(problem, 1)).state[0, -1, 0]
        size.append(abs(u[0]) if odd else abs(u[1] - u[0]) / problem.axes[0].spacing)
    assert size[1] < 0.6 * size[0]


@pytest.mark.parametrize("wall", ["periodic", "neumann", "dirichlet"])
def test_cropping_undoes_extending(wall) -> None:
    field = np.random.default_rng(0).normal(size=(2, 3, 5))
    axes = (box_axis("x", 1.0, 3, "neumann"), box_axis("y", 2.0, 5, wall))
    longer = extend(field, ("neumann", wall))
    assert longer.shape[1:] == tuple(axis.points for axis in unfolded(axes))
    np.testing.assert_array_equal(crop(longer, axes), field)


SMALL = {"points": 16, "solver_points": 32, "frames": 3, "warm_up": 20.0}


def test_a_uniform_gray_scott_state_follows_its_ordinary_equations() -> None:
    problem = GrayScott(**SMALL, spots=1)
    one = {"feed": np.array(0.03), "place": np.full((1, 2), 0.5), "width": np.array([1e6])}
    found = problem.solve([one]).state[0, :, :, 0, 0]

    def rate(_: float, state: np.ndarray) -> list[float]:
        u, v = state
        return [-u * v**2 + 0.03 * (1 - u), u * v**2 - (0.03 + problem.kill) * v]

    start = problem.initial_condition(one, *problem.axes)[:, 0, 0]
    truth = solve_ivp(rate, (0, 60), start, t_eval=problem.times, rtol=1e-11, atol=1e-12).y.T
    np.testing.assert_allclose(found, truth, atol=2e-6)


@pytest.mark.parametrize(("warm_up", "interval", "waited"), [(0.3, 0.1, 3), (0.7, 0.1, 7), (0.0, 0.1, 0)])
def test_a_warm_up_may_be_any_multiple_of_the_interval(warm_up, interval, waited) -> None:
    small = {"points": 8, "solver_points": 16, "frame_interval": interval, "step": 0.1}
    problem, whole = GrayScott(**small, warm_up=warm_up, frames=2), GrayScott(**small, warm_up=0.0, frames=2 + waited)
    one = drawn(problem, 1)
    np.testing.assert_array_equal(problem.solve(one).state, whole.solve(one).state[:, waited:])


def test_gray_scott_is_as_accurate_as_its_module_says() -> None:
    coarse, fine = (
        GrayScott(points=n, solver_points=n, frames=2, frame_interval=100.0, warm_up=0.0) for n in (128, 256)
    )
    pair = drawn(fine, 2)
    found, frames = coarse.solve(pair).state[:, 1], fine.solve(pair).state[:, 1]
    truth = interpolate(frames, fine.axes, coarse.axes, "stride")  # the two have their points at different places
    error = np.linalg.norm((found - truth).reshape(2, -1), axis=1) / np.linalg.norm(truth.reshape(2, -1), axis=1)
    assert 1e-5 < error.max() < 1e-4


def test_gray_scott_converges_in_time_at_fourth_order() -> None:
    ends = [GrayScott(**SMALL, step=step).solve(drawn(GrayScott(**SMALL), 2)).state[:, -1] for step in (4.0, 2.0, 1.0)]
    errors = [np.abs(ends[i] - ends[i + 1]).max() for i in (0, 1)]
    assert np.log2(errors[0] / errors[1]) > 3.3
    assert errors[1] < 1e-4


def test_walls_in_a_symmetric_periodic_box_change_nothing() -> None:
    """A periodic pattern that is its own mirror image about the middle has no flux there."""
    walls = GrayScott(**SMALL, boundary="walls", spots=1)
    one = {"feed": np.array(0.04), "place": np.array([[0.3, 0.6]]), "width": np.array([0.08])}
    found = walls.solve([one]).state[0]
    twin = GrayScott(**SMALL | {"points": 32, "solver_points": 64}, length=2.0, spots=4)
    places = np.array([[0.3, 0.6], [1.7, 0.6], [0.3, 1.4], [1.7, 1.4]]) / 2
    four = {"feed": np.array(0.04), "place": places, "width": np.full(4, 0.04)}
    np.testing.assert_allclose(found, twin.solve([four]).state[0][..., :16, :16], atol=1e-6)


def test_a_channel_is_periodic_along_x_only_and_does_not_depend_on_company() -> None:
    problem = GrayScott(**SMALL, boundary="channel")
    assert [axis.periodic for axis in problem.axes] == [True, False]
    parameters = drawn(problem, 3)
    together = problem.solve(parameters)
    np.testing.assert_array_equal(together.state[2], problem.solve(parameters[2:]).state[0])
    assert together.context is not None
    assert together.context[:, 0, 0, 0, 0].tolist() == [float(one["feed"]) for one in parameters]
