"""Eight trajectories of CE-RM and GCE-RT against the moments that Poseidon publishes. Many minutes.

Eight random draws of GCE-RT's central density and pressure would miss the published moments by chance, so the draws
are stratified (every parameter has one value in each eighth of its range), and what the initial condition contributes
to the moments is taken from many draws; the eight solved trajectories say how the moments change in time.
"""

import json
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import qmc

from ssno.base.provenance import provenance
from ssno.pde.gas import cell_averages, to_primitive
from ssno.pde.problems.gas import GasProblem, RayleighTaylor, RichtmyerMeshkov

RESULTS = Path(__file__).parents[2] / "results"
COUNT, MANY = 8, 2000
POSEIDON = {
    "ce-rm": {"density": 0.55432, "velocity_x": 0.24304, "velocity_y": 0.24306, "pressure": 0.89639},
    "gce-rt": {
        "density": 0.12857835,
        "velocity_x": 0.014896976,
        "velocity_y": 0.014896975,
        "pressure": 0.21293919,
        "potential": 0.40131348,
    },
}
pytestmark = [pytest.mark.verify, pytest.mark.usefixtures("as_users_call_it")]


class Stratified:
    """Stands in for a random generator: one uniform number after the other from a point of a Latin hypercube."""

    def __init__(self, point: np.ndarray):
        self.left = list(point)

    def uniform(self, low: float, high: float, size: int | None = None) -> np.ndarray:
        taken = [self.left.pop(0) for _ in range(size or 1)]
        return low + (high - low) * (np.array(taken) if size else np.float64(taken[0]))


def solved(problem: GasProblem, draws: list) -> tuple[np.ndarray, float]:
    """First and second moments over cells (2, n, t, c), and processor seconds for each trajectory."""
    started, found = time.process_time(), []
    for one in draws:
        solution = problem.solve([one])
        assert solution.context is not None
        fields = np.concatenate([solution.state, solution.context], axis=2)[0]
        found.append([fields.mean(axis=(2, 3)), (fields**2).mean(axis=(2, 3))])
    return np.array(found).swapaxes(0, 1), (time.process_time() - started) / len(draws)


def initial(problem: GasProblem, draws: list) -> np.ndarray:
    """First and second moments over cells (2, n, c) of frame 0."""
    found = []
    for one in draws:
        gas = cell_averages(partial(problem.gas_at, one), problem.solver_axes)[None]
        fields = torch.cat([to_primitive(gas[:, :5], gamma=problem.gamma), gas[:, 5:]], dim=1)[0]
        found.append([fields.mean(dim=(1, 2)).numpy(), fields.square().mean(dim=(1, 2)).numpy()])
    return np.array(found).swapaxes(0, 1)


def summary(problem: GasProblem, first: np.ndarray, second: np.ndarray) -> dict[str, dict[str, float]]:
    names = (*problem.fields, *problem.context_fields)
    deviation = np.sqrt(second - first**2)
    found = {
        name: {"mean": float(mean), "std": float(std)} for name, mean, std in zip(names, first, deviation, strict=True)
    }
    for name, published in POSEIDON[problem.name].items():
        found[name]["std_published"] = published
        found[name]["std_off"] = found[name]["std"] / published - 1
    return found


def record(problem: GasProblem, **results) -> None:
    RESULTS.mkdir(exist_ok=True)
    entry = {"problem": repr(problem), "trajectories": COUNT, **results}
    entry |= {"date": time.strftime("%Y-%m-%d"), "provenance": provenance()}
    (RESULTS / f"moments-{problem.name}.json").write_text(json.dumps(entry, indent=2) + "\n")


def test_ce_rm_has_the_published_moments() -> None:
    problem = RichtmyerMeshkov(points=128, frames=21, frame_interval=0.1)
    rng = np.random.default_rng(0)
    moments, seconds = solved(problem, [problem.draw(rng) for _ in range(COUNT)])
    found = summary(problem, *moments.mean(axis=(1, 2)))
    record(problem, cpu_seconds_per_trajectory=seconds, moments=found)
    for name in POSEIDON["ce-rm"]:
        assert abs(found[name]["std_off"]) < 0.03, name
    assert found["density"]["mean"] == pytest.approx(1.19642, rel=1e-3)
    assert found["pressure"]["mean"] == pytest.approx(1.56480, rel=0.01)


def star_record(start: np.ndarray, coarse: np.ndarray, fine: np.ndarray) -> dict:
    """Moments on 128^2 and 256^2 cells; the first trajectories of both are the same, and there are more coarse ones.

    The mean square velocity on the fine grid is that of all coarse trajectories plus the mean change of those solved
    on both: velocity differs much between draws, and its change with the grid little.
    """
    grids = {}
    for name, moments in (("128^2", coarse), ("256^2", fine)):
        change = (moments - moments[:, :, :1]).mean(axis=(1, 2))
        grids[name] = {
            "trajectories": moments.shape[1],
            "moments": summary(RayleighTaylor(), *(start + change)),
            "velocity_std_of_each_draw": np.sqrt(moments[1, :, :, 1].mean(axis=1)).tolist(),
        }
    squares, finer = (np.square(grids[name]["velocity_std_of_each_draw"]) for name in grids)
    change = finer - squares[: len(finer)]
    mean = squares.mean() + change.mean()
    error = np.hypot(squares.std(ddof=1) / len(squares) ** 0.5, change.std(ddof=1) / len(change) ** 0.5)
    published = POSEIDON["gce-rt"]["velocity_x"]
    velocity = {
        "std": mean**0.5,
        "std_published": published,
        "std_off": mean**0.5 / published - 1,
        "standard_error": 0.5 * error / mean**0.5 / published,
        "tolerance": 0.1,
    }
    velocity["met"] = bool(abs(velocity["std_off"]) < velocity["tolerance"])
    return {"initial_draws": MANY, "grids": grids, "velocity_on_256^2_cells": velocity}


def test_gce_rt_has_the_published_moments() -> None:
    """On the 256^2 cells of the reference. On 128^2 the wave is 10 cells long and grows too slowly.

    Eight draws cannot decide whether velocity is within 10 %: the verdict is recorded with its standard error, and
    the test fails if the two together exclude it.
    """
    points = qmc.LatinHypercube(5, seed=3, scramble=False).random(COUNT)
    rng, small = np.random.default_rng(0), RayleighTaylor(points=64, cells=64)
    start = initial(small, [small.draw(rng) for _ in range(MANY)]).mean(axis=1)
    draws = [small.draw(Stratified(point)) for point in points]  # type: ignore[arg-type]
    problem = RayleighTaylor(points=128, refine=2)
    coarse, _ = solved(RayleighTaylor(points=128), draws)
    fine, seconds = solved(problem, draws[: COUNT // 2])
    results = star_record(start, coarse, fine)
    record(problem, cpu_seconds_per_trajectory=seconds, **results)
    found, velocity = results["grids"]["256^2"]["moments"], results["velocity_on_256^2_cells"]
    for name in ("density", "pressure", "potential"):
        assert abs(found[name]["std_off"]) < 0.03, name
    assert abs(velocity["std_off"]) < velocity["tolerance"] + 2 * velocity["standard_error"]
    for name in ("velocity_x", "velocity_y"):
        assert abs(found[name]["mean"]) < 1e-3 * found[name]["std"]
    assert found["velocity_x"]["std"] == pytest.approx(found["velocity_y"]["std"], rel=1e-7)
