"""The cost of a generation, measured on its first batch."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from ssno.data import solve_shards as module
from ssno.data.datasets import Plan
from ssno.data.solve_shards import encode, expected_cost
from ssno.data.trajectories import trajectory_bytes
from ssno.pde.geometry import Axis
from ssno.pde.problems.problem import OnProgress, Parameters, Problem, Solution

ORIGIN = {"ssno": "test", "commit": "test"}


@dataclass(frozen=True)
class Slow(Problem):
    """Noise that takes `seconds` per trajectory and says so ten times in between."""

    seconds: float = 0.02

    name: ClassVar[str] = "slow"
    fields: ClassVar[tuple[str, ...]] = ("u",)
    axes: ClassVar[tuple[Axis, ...]] = (Axis("x", 1.0, 1000),)  # type: ignore[misc]
    times: ClassVar[np.ndarray] = np.arange(10.0)  # type: ignore[misc]
    solver: ClassVar[str] = "sleep"  # type: ignore[misc]
    solver_options: ClassVar[dict[str, int]] = {}  # type: ignore[misc,assignment]
    preferred_batch: ClassVar[int] = 2  # type: ignore[misc]

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"values": rng.normal(size=(10, 1, 1000))}

    def solve(self, parameters: Sequence[Parameters], *, progress: OnProgress | None = None) -> Solution:
        for done in range(10):
            time.sleep(self.seconds * len(parameters) / 10)
            if progress is not None:
                progress(done + 1, 10)
        return Solution(np.stack([one["values"] for one in parameters]))


def cost(plan: Plan, *, jobs: int | None = 1) -> module.GenerationCost:
    return expected_cost(plan, plan.shards(), jobs=jobs, batch=2, provenance=ORIGIN)


def test_time_and_disk_are_scaled_up_from_one_batch() -> None:
    plan = Plan(Slow(0.05), {"train": 40, "test": 10}, per_shard=5)
    measured = cost(plan)
    assert (measured.shards, measured.trajectories, measured.jobs) == (10, 50, 1)
    assert 50 * 0.05 <= measured.seconds < 50 * 0.25
    size = sum(len(encode(plan, shard, batch=5, provenance=ORIGIN)) for shard in plan.shards()[:1]) * 10
    assert measured.disk_bytes == pytest.approx(size, rel=0.2)
    assert measured.memory_bytes > trajectory_bytes(plan.problem)


def test_workers_share_the_time_and_each_takes_memory() -> None:
    plan = Plan(Slow(0.05), {"train": 40}, per_shard=5)
    one, four = cost(plan), cost(plan, jobs=4)
    assert 0.5 <= four.seconds - module.WORKER_START < one.seconds
    assert four.memory_bytes >= 4 * one.memory_bytes
    assert cost(plan, jobs=100).jobs == 8  # there are 8 files


def test_a_slow_solver_is_stopped_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_TRIAL", 0.1)
    start = time.perf_counter()
    plan = Plan(Slow(2.0), {"train": 10}, per_shard=5)
    measured = cost(plan)
    assert time.perf_counter() - start < 2
    assert 19 < measured.seconds < 60
    assert measured.disk_bytes == 10 * trajectory_bytes(plan.problem)  # before compression: it is not known yet


def test_processes_are_started_only_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_TRIAL", 0.05)
    monkeypatch.setattr(module, "available_cores", lambda: 4)
    assert cost(Plan(Slow(0.01), {"train": 40}, per_shard=5), jobs=None).jobs == 1
    assert cost(Plan(Slow(2.0), {"train": 40}, per_shard=5), jobs=None).jobs == 4
    assert cost(Plan(Slow(2.0), {"train": 40}, per_shard=20), jobs=None).jobs == 2


def test_nothing_to_do_costs_nothing() -> None:
    nothing = expected_cost(Plan(Slow(), {"train": 1}), [], jobs=2, batch=1, provenance=ORIGIN)
    assert (nothing.trajectories, nothing.seconds, nothing.disk_bytes) == (0, 0.0, 0)
