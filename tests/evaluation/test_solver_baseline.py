"""The data's own solver as a forecaster: it finds its own data again, and coarser grids and steps cost accuracy."""

import shutil

import numpy as np
import pytest

from ssno.data.convert import convert_data
from ssno.data.datasets import build_plan
from ssno.data.generation import generate
from ssno.data.load import DataOptions, load_dataset
from ssno.data.manifest import DESCRIPTION, MANIFEST, seal, unseal
from ssno.data.windows import Window
from ssno.evaluation.record import BreakEven
from ssno.evaluation.solver import (
    SAME_GRID,
    SAME_TIME,
    candidates,
    check_same,
    equal_error,
    fastest_fitting,
    measured,
    on_grid,
    parameters_of,
    problem_of,
    solve_on,
    solver_baselines,
)
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky

COUNTS = {"train": 0, "valid": 0, "test": 2}
TORUS = {"points": 16, "solver_points": 16, "frames": 3, "frame_interval": 0.1, "first_time": 0.1, "step": 0.05}
SMALL = {
    "ks": {"frames": 6, "end_time": 0.5, "points": 128, "solver_points": 128, "step": 0.1},
    "burgers": {"points": 64, "cells": 64, "frames": 15, "spectral_points": 64},
    "torus-li": TORUS,
    "torus-vis": TORUS,
    "torus-vis-force": TORUS,
    "ce-rm": {"points": 16, "cells": 16, "frames": 3, "frame_interval": 0.02},
    "heat": {"frames": 5},
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """A small dataset of any name, generated once."""
    made = {}

    def build(name: str) -> DataOptions:
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name)
            generate(build_plan(name, "tiny", counts=COUNTS, **SMALL[name]), made[name])
        return DataOptions(name=str(made[name]))

    return build


@pytest.mark.parametrize("name", ["ks", "burgers", "torus-li", "torus-vis", "torus-vis-force", "ce-rm"])
def test_on_the_datas_own_grid_the_solver_finds_the_data_again(dataset, name) -> None:
    options = dataset(name)
    data = options.load("test")
    scores = solver_baselines(options, data, Window(size=1), seconds=0.0)
    assert set(scores) == {SAME_GRID}  # nothing is as fast as no time at all
    assert scores[SAME_GRID].means["rel_l2"] < 1e-6
    assert scores[SAME_GRID].means["points"] == data.axes[0].points
    assert scores[SAME_GRID].means["seconds"] > 0


def test_with_all_the_time_in_the_world_the_finest_grid_is_taken(dataset) -> None:
    options = dataset("ks")
    data = options.load("test").select(resolution=32)
    scores = solver_baselines(options, data, Window(size=1), seconds=1e9)
    assert scores[SAME_TIME].means["points"] == 128
    assert scores[SAME_TIME].means["step_factor"] == 1
    assert scores[SAME_TIME].means["rel_l2"] < 1e-6 < 1e-4 < scores[SAME_GRID].means["rel_l2"]


@pytest.mark.parametrize(("points", "how"), [(32, "stride"), (48, "spectral"), (49, "spectral")])
def test_a_solver_on_the_datas_own_grid_has_no_error_on_any_coarser_one(dataset, points, how) -> None:
    options = dataset("ks")
    data = options.load("test").select(resolution=points, reduction=how)
    solved = solve_on(problem_of(options), data, [0, 1])
    np.testing.assert_allclose(solved, data.read([0, 1]).state, atol=1e-5)


def test_candidates_go_from_cheap_to_the_datas_own_grid(dataset) -> None:
    problem = problem_of(dataset("ks"))
    found = [(one.points, one.longer) for one in candidates(problem, 64)]
    # 16 points cannot carry the eight initial waves of KS, 32 can.
    assert found == [(32, 32), (32, 16), (32, 8), (32, 4), (64, 2), (128, 1)]
    finite_volumes = problem_of(dataset("burgers"))
    assert [(one.points, one.longer) for one in candidates(finite_volumes, 64)] == [(16, 1), (32, 1), (64, 1)]


def test_the_finest_grid_within_the_time_is_taken(dataset, monkeypatch) -> None:
    options = dataset("ks")
    cost = {(32, 3.2): np.inf, (32, 1.6): 0.1, (32, 0.8): 0.2, (32, 0.4): 0.3, (64, 0.2): 0.4, (128, 0.1): 0.9}
    monkeypatch.setattr("ssno.evaluation.solver.measured", lambda p, _: cost[(p.points, round(p.step, 6))])
    data = options.load("test").select(resolution=64)
    # A diverging first candidate is passed over; the search ends at the first that is too slow.
    assert fastest_fitting(problem_of(options), data, seconds=0.5).points == 64
    assert fastest_fitting(problem_of(options), data, seconds=0.15).longer == 16
    assert fastest_fitting(problem_of(options), data, seconds=0.05) is None


def test_frames_are_found_at_their_times_in_cut_and_thinned_trajectories(dataset) -> None:
    options = dataset("ks")
    problem = problem_of(options)
    whole = options.load("test")
    for data in (whole.select(time_index=slice(1, None, 2)), whole.cut(3), whole.select(indices=[1])):
        check_same(problem, data)
        chosen = range(len(data))
        np.testing.assert_allclose(solve_on(problem, data, chosen), data.read(chosen).state, atol=1e-5)


def test_the_spectral_burgers_solver_keeps_its_points() -> None:
    from ssno.pde.problems.burgers import Burgers

    fine = Burgers(solver="exact", points=64, cells=64, spectral_points=256, frames=3)
    coarse = on_grid(fine, 32, longer=2.0)
    assert (coarse.points, coarse.spectral_points, coarse.cells, coarse.step) == (32, 32, 64, 2 * fine.step)
    assert coarse.axes[0].offset == fine.axes[0].offset
    assert [one.points for one in candidates(fine, 64)][-1] == 256


def test_a_solver_that_diverges_is_scored_as_not_finite(dataset) -> None:
    options = dataset("ks")
    data = options.load("test")
    wild = KuramotoSivashinsky(frames=6, end_time=50.0, points=128, solver_points=128, viscosity=1e-6, step=1.0)
    assert measured(wild, parameters_of(data, [0])) == np.inf
    assert solve_on(wild, data, [0, 1]).isnan().any()


def test_options_that_are_gone_do_not_hide_the_solver_of_older_data(dataset, tmp_path) -> None:
    folder = tmp_path / "ce-rm"
    shutil.copytree(dataset("ce-rm").name, folder)
    manifest = unseal(folder / MANIFEST)
    for shape in ("angular", "x"):
        manifest[DESCRIPTION]["options"]["perturbation"] = shape
        (folder / MANIFEST).write_bytes(seal(manifest))
        if shape == "angular":
            assert problem_of(DataOptions(name=str(folder))) == problem_of(dataset("ce-rm"))
    with pytest.raises(ValueError, match="`options.perturbation` is 'x', .* always 'angular' now"):
        problem_of(DataOptions(name=str(folder)))


def test_data_without_a_solver_say_why(dataset, tmp_path) -> None:
    with pytest.raises(ValueError, match="`solver`: 'heat' has an exact solution"):
        problem_of(dataset("heat"))
    plain = tmp_path / "plain"
    shutil.copytree(dataset("ks").name, plain)
    (plain / "manifest.json").unlink()
    with pytest.raises(ValueError, match="was not generated by ssno, so there is no solver for it"):
        problem_of(DataOptions(name=str(plain)))


def test_converted_data_have_no_solver(dataset, tmp_path) -> None:
    convert_data({"test": dataset("ks").load("test")}, tmp_path / "ks", source="a file")
    with pytest.raises(ValueError, match="was converted, not generated"):
        problem_of(DataOptions(name=str(tmp_path / "ks")))


def test_trajectories_of_another_problem_are_refused(dataset) -> None:
    with pytest.raises(ValueError, match="The trajectories of 'burgers' are not those that KuramotoSivashinsky makes"):
        check_same(problem_of(dataset("ks")), load_dataset(dataset("burgers").name, "test", time_index=slice(None)))


def parts(**seconds) -> BreakEven:
    return BreakEven(**{"training": 90.0, "data": 10.0, "model": 0.5, "solver": 2.5, **seconds})


def test_break_even_divides_what_is_paid_once_by_what_each_forecast_saves() -> None:
    assert parts().forecasts == (90 + 10) / (2.5 - 0.5) == 50
    assert parts(training=0.0, data=3.0, solver=1.5).forecasts == 3
    assert parts().sentence() == (
        "Break-even: after 50 forecasts (training 90 s, data 10 s, solver at equal error 2.5 s, "
        "model 0.5 s per forecast)."
    )


@pytest.mark.parametrize("solver", [0.4, 0.5])
def test_a_model_that_is_not_faster_than_the_solver_never_breaks_even(solver) -> None:
    assert parts(solver=solver).forecasts == np.inf
    assert parts(solver=solver, training=None).forecasts == np.inf  # whatever training took
    assert parts(solver=solver).sentence().startswith("Break-even: never (")


@pytest.mark.parametrize("missing", ["training", "data", "solver"])
def test_a_missing_part_makes_break_even_unknown(missing) -> None:
    found = parts(**{missing: None}, remarks=("Why it is missing",))
    assert found.forecasts is None
    assert found.result() == "unknown"
    assert f"{'solver at equal error' if missing == 'solver' else missing} unknown" in found.sentence()
    assert found.sentence().endswith("Why it is missing.")


def test_the_solver_of_equal_error_is_the_cheapest_that_is_exact_enough(dataset, monkeypatch) -> None:
    options = dataset("ks")
    problem, data = problem_of(options), options.load("test").select(resolution=64)
    monkeypatch.setattr("ssno.evaluation.solver.measured", lambda p, _: p.points / p.step)
    found = list(candidates(problem, data.axes[0].points))
    errors = [score_on(one.problem, data) for one in found]
    assert min(errors[:-2]) > errors[-2] > errors[-1]
    for error in (1.001 * one for one in errors[:-1]):
        cheapest = next(one for one, its in zip(found, errors, strict=True) if its <= error)
        seconds = cheapest.points / cheapest.problem.step  # type: ignore[attr-defined]
        assert equal_error(problem, data, Window(size=1), error=error) == (cheapest.points, seconds)
    assert equal_error(problem, data, Window(size=1), error=1e-6) == (128, 128 / problem.step)
    assert equal_error(problem, data, Window(size=1), error=-1.0) is None


def score_on(problem, data) -> float:
    """rel_l2 of a solver, written out."""
    truth, found = (x[:, 1:].double().flatten(1) for x in (data.read([0, 1]).state, solve_on(problem, data, [0, 1])))
    return float(((found - truth).norm(dim=1) / truth.norm(dim=1)).mean().nan_to_num(np.inf))
