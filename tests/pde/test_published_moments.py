"""Eight trajectories of CE-RM and GCE-RT at 128^2 against the moments that Poseidon publishes. Many minutes."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

from ssno.data.provenance import provenance
from ssno.pde.gas_problem import GasProblem
from ssno.pde.rayleigh_taylor import RayleighTaylor
from ssno.pde.richtmyer_meshkov import RichtmyerMeshkov

RESULTS = Path(__file__).parents[2] / "results"
COUNT = 8


def moments(problem: GasProblem) -> dict[str, dict[str, float]]:
    """Mean and standard deviation of every channel over trajectories, frames and cells, and seconds for each."""
    rng = np.random.default_rng(0)
    started, fields = time.perf_counter(), []
    for _ in range(COUNT):
        solution = problem.solve([problem.draw(rng)])
        assert solution.context is not None
        fields.append(np.concatenate([solution.state, solution.context], axis=2)[0].astype(np.float32))
    seconds = (time.perf_counter() - started) / COUNT
    channels = np.stack(fields).astype(np.float64).swapaxes(0, 2)
    names = (*problem.fields, *problem.context_fields)
    found = {
        name: {"mean": float(values.mean()), "std": float(values.std())}
        for name, values in zip(names, channels, strict=True)
    }
    RESULTS.mkdir(exist_ok=True)
    record = {
        "problem": repr(problem),
        "trajectories": COUNT,
        "seconds_per_trajectory": seconds,
        "moments": found,
        "date": time.strftime("%Y-%m-%d"),
        "provenance": provenance(),
    }
    (RESULTS / f"moments-{problem.name}.json").write_text(json.dumps(record, indent=2) + "\n")
    return found


@pytest.mark.verify
def test_ce_rm_has_the_published_moments() -> None:
    found = moments(RichtmyerMeshkov(points=128, frames=21, frame_interval=0.1))
    published = {"density": 0.55432, "velocity_x": 0.24304, "velocity_y": 0.24306, "pressure": 0.89639}
    for name, deviation in published.items():
        assert found[name]["std"] == pytest.approx(deviation, rel=0.03), name
    assert found["density"]["mean"] == pytest.approx(1.19642, rel=1e-3)
    assert found["pressure"]["mean"] == pytest.approx(1.56480, rel=0.01)


@pytest.mark.verify
def test_gce_rt_has_the_published_moments() -> None:
    """Velocity depends on the assumed amplitude of the interface: 10 %. Its mean is zero by symmetry."""
    found = moments(RayleighTaylor(points=128))
    published = {"density": 0.12857835, "pressure": 0.21293919, "potential": 0.40131348}
    for name, deviation in published.items():
        assert found[name]["std"] == pytest.approx(deviation, rel=0.03), name
    for name in ("velocity_x", "velocity_y"):
        assert found[name]["std"] == pytest.approx(0.014896976, rel=0.1), name
        assert abs(found[name]["mean"]) < 1e-3 * found[name]["std"]
