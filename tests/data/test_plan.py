"""A plan: which trajectories fall into which file, whoever makes them."""

import json

import numpy as np
import pytest

from ssno.data.datasets import Plan, default_per_shard, problem_options
from ssno.data.trajectories import trajectory_bytes
from ssno.pde.problems.heat import AdvectionDiffusion, Heat
from ssno.pde.problems.problem import Problem


def test_shards_cover_every_trajectory_once() -> None:
    plan = Plan(Heat(), {"train": 21, "test": 8}, per_shard=8)
    shards = plan.shards()
    assert [shard.path for shard in shards] == [
        "train/shard-000.h5",
        "train/shard-001.h5",
        "train/shard-002.h5",
        "test/shard-000.h5",
    ]
    assert [n for shard in shards if shard.split == "train" for n in shard.trajectories] == list(range(21))
    assert [n for shard in shards if shard.split == "test" for n in shard.trajectories] == list(range(8))


@pytest.mark.parametrize("jobs", [1, 2, 3, 7])
def test_parts_share_out_all_shards(jobs: int) -> None:
    plan = Plan(Heat(), {"train": 50, "valid": 9}, per_shard=10)
    parts = [plan.part(number, jobs) for number in range(1, jobs + 1)]
    assert sorted((s for part in parts for s in part), key=plan.shards().index) == plan.shards()
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_description_survives_json_and_tells_plans_apart() -> None:
    plan = Plan(AdvectionDiffusion(velocity=(1.0, 0.5)), {"train": 4}, seed=3)
    assert json.loads(json.dumps(plan.description())) == plan.description()
    assert plan.description()["options"]["velocity"] == [1.0, 0.5]
    others = [
        Plan(AdvectionDiffusion(velocity=(1.0, 0.4)), {"train": 4}, seed=3),
        Plan(AdvectionDiffusion(velocity=(1.0, 0.5)), {"train": 5}, seed=3),
        Plan(AdvectionDiffusion(velocity=(1.0, 0.5)), {"train": 4}, seed=4),
        Plan(AdvectionDiffusion(velocity=(1.0, 0.5)), {"train": 4}, seed=3, per_shard=1),
    ]
    assert all(other.description() != plan.description() for other in others)


def test_files_stay_below_64_mib_and_64_trajectories() -> None:
    assert default_per_shard(Heat()) == 64
    large = Heat(dimensions=3, points=64)
    assert trajectory_bytes(large) == 4 * 21 * 64**3
    assert default_per_shard(large) == 2
    assert default_per_shard(Heat(dimensions=3, points=256)) == 1


def test_impossible_plans_are_refused() -> None:
    for wrong, message in (
        ({"counts": {"train": 0}}, "nothing to generate"),
        ({"counts": {"train": -1, "test": 1}}, "number of `train` trajectories must be 0 or more, got -1"),
        ({"counts": {"train": 1}, "seed": -1}, "`seed` must be 0 or more, got -1"),
        ({"counts": {"train": 1}, "seed": 10**23}, "`seed` must be at most 9223372036854775807, got 10000"),
        ({"counts": {"train": 1}, "per_shard": 0}, "`per_shard` must be at least 1"),
        ({"counts": {"train": 5000}, "per_shard": 4}, "more than 1000 files in a split; choose at least 5"),
    ):
        with pytest.raises(ValueError, match=message):
            Plan(Heat(), **wrong)
    assert len(Plan(Heat(), {"train": 5000}, per_shard=5).shards()) == 1000


@pytest.mark.usefixtures("as_users_call_it")
def test_unknown_splits_and_parts_are_refused() -> None:
    plan = Plan(Heat(), {"train": 1})
    for number, of in ((0, 4), (5, 4)):
        with pytest.raises(ValueError, match=rf"`shard` must be i/n with 1 <= i <= n, as 2/4, got {number}/{of}"):
            plan.part(number, of)
    with pytest.raises(ValueError, match="Splits are train, valid, test; got dev"):
        Plan(Heat(), {"train": 1, "dev": 3})  # type: ignore[dict-item]


def test_a_problem_without_named_options_is_refused() -> None:
    class Nameless(Problem):
        name, fields = "nameless", ("u",)
        axes, times, solver, solver_options, preferred_batch = (), np.zeros(1), "", {}, 1  # type: ignore[assignment]
        draw = solve = None  # type: ignore[assignment]

    with pytest.raises(TypeError, match="must be a frozen dataclass"):
        problem_options(Nameless())
