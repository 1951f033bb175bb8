"""Grids and errors that every problem shares."""

import pickle

import numpy as np
import pytest

from ssno.pde.problems.burgers import Burgers
from ssno.pde.problems.gas import RayleighTaylor, RichtmyerMeshkov
from ssno.pde.problems.heat import Heat
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky
from ssno.pde.problems.problem import Axis, Problem, SolverDiverged
from ssno.pde.problems.torus import TorusVisForce


def test_cell_centres_lie_half_a_spacing_inside() -> None:
    axis = Axis("x", 2.0, 4, offset=0.25)
    np.testing.assert_array_equal(axis.coordinates(), [0.25, 0.75, 1.25, 1.75])
    assert axis.spacing == 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length": 0.0}, "`length` of axis 'x' must be a positive number between 1e-100 and 1e[+]100, got 0.0"),
        ({"length": float("inf")}, "`length` of axis 'x' must be a positive number between .*, got inf"),
        ({"points": 0}, "`points` of axis 'x' must be at least 1, got 0"),
        ({"offset": float("nan")}, "`offset` of axis 'x' must be a finite number, got nan"),
    ],
)
def test_impossible_axes_are_refused(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Axis(**{"name": "x", "length": 1.0, "points": 8, **change})


def test_a_divergence_survives_the_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(SolverDiverged(3, 17, 0.085)))
    assert (error.trajectory, error.step, error.time) == (3, 17, 0.085)
    assert str(error).startswith("Trajectory 3 of the batch is no longer finite at solver step 17, time 0.085.")


@pytest.mark.parametrize("problem", [KuramotoSivashinsky(), Burgers(), Burgers(solver="exact"), Heat()])
def test_a_problem_is_a_value_that_describes_its_data(problem: Problem) -> None:
    assert problem == pickle.loads(pickle.dumps(problem))
    assert hash(problem) == hash(pickle.loads(pickle.dumps(problem)))
    assert problem.times[0] == 0
    assert np.allclose(np.diff(problem.times), problem.times[1])
    assert all(isinstance(value, str | int | float) for value in problem.solver_options.values())


@pytest.mark.parametrize("problem", [KuramotoSivashinsky(), Burgers(), Burgers(window="independent"), Heat()])
def test_parameters_depend_on_the_generator_only(problem: Problem) -> None:
    first, again, other = (problem.draw(np.random.Generator(np.random.Philox(seed))) for seed in (5, 5, 6))
    assert all(np.array_equal(first[key], again[key]) for key in first)
    assert any(not np.array_equal(first[key], other[key]) for key in first)
    assert {value.dtype for value in first.values()} <= {np.dtype("float64"), np.dtype("int64")}


@pytest.mark.parametrize(
    "problem",
    [
        RichtmyerMeshkov(points=16, cells=16, frames=2, frame_interval=0.1),
        RayleighTaylor(points=16, cells=16, frames=2, frame_interval=0.1),
        # With steps up to 0.5 some trajectories take halves of them and others do not.
        TorusVisForce(points=16, solver_points=32, frames=4, frame_interval=1.0, step=0.5),
    ],
    ids=lambda problem: problem.name,
)
def test_a_trajectory_is_bitwise_the_same_in_any_batch(problem: Problem) -> None:
    rng = np.random.default_rng(0)
    parameters = [problem.draw(rng) for _ in range(20)]
    together = problem.solve(parameters)
    for count in (1, 2, 7):
        chosen = np.random.default_rng(count).permutation(20)[:count]
        alone = problem.solve([parameters[i] for i in chosen])
        assert np.array_equal(alone.state, together.state[chosen])
        assert np.array_equal(alone.context, together.context[chosen])
