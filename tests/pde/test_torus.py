"""The three datasets on the torus."""

import numpy as np
import pytest
from tests.pde.draws import drawn

from ssno.pde.problems.problem import SolverDiverged
from ssno.pde.problems.torus import TorusLi, TorusVis, TorusVisForce

SMALL = {"points": 16, "solver_points": 32, "frames": 3, "frame_interval": 0.5, "step": 0.05}


def test_lis_force_and_times_are_the_published_ones() -> None:
    problem = TorusLi()
    np.testing.assert_array_equal(problem.times, np.arange(1, 21))
    assert (problem.axes[0].points, problem.solver_points, problem.viscosity) == (64, 256, 1e-5)
    x, y = (axis.coordinates() for axis in problem.axes)
    angle = 2 * np.pi * (x[:, None] + y)
    expected = 0.1 * (np.sin(angle) + np.cos(angle))
    np.testing.assert_allclose(problem.force([{}]).values(problem.axes, 5.0)[0], expected, atol=1e-15)


def test_the_random_force_has_twelve_waves_without_a_constant() -> None:
    problem = TorusVisForce(**SMALL)
    one = drawn(problem, 1)[0]
    time = 2.5
    x, y = (axis.coordinates() for axis in problem.axes)
    x, y = x[:, None], y[None]
    expected = np.zeros((16, 16))
    terms = [(p, i, j) for p in (1, 2) for i, j in ((1, 0), (0, 1), (1, 1))]
    for (p, i, j), a, b in zip(terms, one["force_sine"], one["force_cosine"], strict=True):
        angle = 2 * np.pi * p * (i * x + j * y) + 0.2 * time
        expected = expected + 0.1 * (a * np.sin(angle) + b * np.cos(angle))
    np.testing.assert_allclose(problem.force([one]).values(problem.axes, time)[0], expected, atol=1e-15)
    assert abs(expected.mean()) < 1e-15


def test_drawn_parameters_have_the_stated_ranges() -> None:
    parameters = drawn(TorusVis(), 2000)
    viscosity = np.array([one["viscosity"] for one in parameters])
    assert (viscosity.min() >= 1e-5, viscosity.max() < 1e-4) == (True, True)
    assert viscosity.mean() == pytest.approx(5.5e-5, rel=0.03)
    amplitudes = np.array([[one["force_sine"], one["force_cosine"]] for one in parameters])
    assert amplitudes.shape == (2000, 2, 6)
    assert amplitudes.mean() == pytest.approx(0.5, abs=0.01)
    assert amplitudes.var() == pytest.approx(1 / 12, abs=0.005)
    assert len({int(one["field_seed"]) for one in parameters}) == 2000


def test_a_force_that_does_not_drift_makes_the_steady_dataset() -> None:
    steady, drifting = TorusVis(**SMALL), TorusVisForce(**SMALL, drift=0.0)
    parameters = drawn(steady, 2)
    np.testing.assert_array_equal(steady.solve(parameters).state, drifting.solve(parameters).state)
    moving = TorusVisForce(**SMALL, drift=1.0).solve(parameters).state
    assert np.abs(moving - steady.solve(parameters).state).max() > 1e-3


def test_known_fields_are_force_and_viscosity_at_the_stored_times() -> None:
    for problem, count in ((TorusVis(**SMALL), 1), (TorusVisForce(**SMALL), 3)):
        parameters = drawn(problem, 2)
        context = problem.solve(parameters).context
        assert context is not None
        assert context.shape == (2, count, 2, 16, 16)
        for frame in range(count):
            expected = problem.force(parameters).values(problem.axes, problem.times[frame])
            np.testing.assert_array_equal(context[:, frame, 0], expected)
        for one, fields in zip(parameters, context, strict=True):
            assert (fields[:, 1] == one["viscosity"]).all()
    assert TorusLi(**SMALL).solve([{"field_seed": np.array(1)}]).context is None


def test_frames_do_not_depend_on_how_many_are_stored() -> None:
    """A frame at t = 0 is the initial field itself, and storing it changes later frames by rounding at most."""
    shared = {"points": 32, "solver_points": 32, "frame_interval": 0.5, "step": 0.01}
    parameters = drawn(TorusLi(), 1)
    with_start = TorusLi(first_time=0.0, frames=3, **shared).solve(parameters).state
    without = TorusLi(first_time=0.5, frames=2, **shared).solve(parameters).state
    np.testing.assert_allclose(with_start[:, 1:], without, atol=1e-12)
    initial = TorusLi(**SMALL).initial_condition(parameters[0], 32)
    spectrum, stored = np.fft.fft2(initial), np.fft.fft2(with_start[0, 0, 0])
    np.testing.assert_allclose(stored[:11, :11], spectrum[:11, :11], atol=1e-12)
    assert np.abs(stored[11:22]).max() < 1e-12


def test_conventions_of_the_initial_field_differ_by_the_root_of_two() -> None:
    one = drawn(TorusLi(), 1)[0]
    old, new = (TorusLi(convention=name).initial_condition(one, 16) for name in ("fno2020", "fno2022"))
    np.testing.assert_allclose(old, np.sqrt(2) * new)


def test_stored_points_are_every_nth_of_the_solver() -> None:
    options = {**SMALL, "frames": 1, "first_time": 0.2}
    parameters = drawn(TorusLi(), 1)
    fine = TorusLi(**{**options, "points": 32}).solve(parameters).state
    np.testing.assert_array_equal(TorusLi(**options).solve(parameters).state, fine[..., ::2, ::2])


def test_progress_reaches_the_total() -> None:
    problem, calls = TorusLi(**SMALL), []
    problem.solve(drawn(problem, 3), progress=lambda *call: calls.append(call))
    assert calls[-1] == (9, 9)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_what_is_not_finite_is_reported_and_never_returned() -> None:
    problem = TorusVis(**SMALL)
    parameters = drawn(problem, 6)
    parameters[4]["viscosity"] = np.array(np.nan)
    with pytest.raises(SolverDiverged, match="Trajectory 4 of the batch is no longer finite at solver step 1"):
        problem.solve(parameters)
