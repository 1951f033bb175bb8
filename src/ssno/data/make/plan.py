"""What a generated dataset is: a problem, how many trajectories per split, a seed, and how they fall into shards.

Two plans with the same `description()` mean the same bytes, whoever makes them: that is what a folder
remembers and refuses to mix with another. How the work is shared out (workers, batches, machines) is no part of it.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ssno.base.checks import require_seed
from ssno.data.splits import SPLITS, Split
from ssno.data.store.storage import Layout
from ssno.data.trajectories import trajectory_bytes
from ssno.pde.problems.problem import Problem

LARGEST_SHARD = 64 * 2**20  # bytes before compression: what a kill may cost, and what a worker holds in memory
MOST_TRAJECTORIES = 64
MOST_SHARDS = 1000  # `shard-NNN.h5`: three digits, so that names sort like numbers


@dataclass(frozen=True)
class Shard:
    """`count` trajectories of a split, from trajectory `first` on, in one file."""

    split: Split
    number: int
    first: int
    count: int

    @property
    def path(self) -> str:
        """Where the shard lives in the dataset's folder."""
        return f"{self.split}/shard-{self.number:03d}.h5"

    @property
    def trajectories(self) -> range:
        """Numbers of its trajectories in the split."""
        return range(self.first, self.first + self.count)


@dataclass(frozen=True)
class Plan:
    """A dataset to generate."""

    problem: Problem
    counts: Mapping[Split, int]
    seed: int = 0
    per_shard: int | None = None

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.counts) - set(SPLITS)):
            raise ValueError(f"Splits are {', '.join(SPLITS)}; got {', '.join(unknown)}.")
        for split, count in self.counts.items():
            if count < 0:
                raise ValueError(f"The number of `{split}` trajectories must be 0 or more, got {count}.")
        if not any(self.counts.values()):
            raise ValueError("There is nothing to generate: `train`, `valid` and `test` are all 0.")
        require_seed(self.seed)
        if self.per_shard is None:
            object.__setattr__(self, "per_shard", default_per_shard(self.problem))
        if self.per_shard < 1:  # type: ignore[operator]
            raise ValueError(f"`per_shard` must be at least 1 trajectory per file, got {self.per_shard}.")
        if len(self.shards()) and max(shard.number for shard in self.shards()) >= MOST_SHARDS:
            raise ValueError(
                f"`per_shard={self.per_shard}` makes more than {MOST_SHARDS} files in a split; choose at least "
                f"{-(-max(self.counts.values()) // MOST_SHARDS)}."
            )

    def shards(self) -> list[Shard]:
        """All files of the dataset, split by split."""
        size = self.per_shard
        assert size is not None
        return [
            Shard(split, first // size, first, min(size, count - first))
            for split in SPLITS
            for count in [self.counts.get(split, 0)]
            for first in range(0, count, size)
        ]

    def part(self, number: int, of: int) -> list[Shard]:
        """The files that job `number` (1, 2, ...) of `of` jobs makes: every `of`-th, so that all work alike."""
        if not 1 <= number <= of:
            raise ValueError(f"`shard` must be i/n with 1 <= i <= n, as 2/4, got {number}/{of}.")
        return self.shards()[number - 1 :: of]

    def description(self) -> dict[str, Any]:
        """Everything that decides the trajectories, as JSON values."""
        problem = self.problem
        description = {
            "dataset": problem.name,
            "options": problem_options(problem),
            "solver": problem.solver,
            "solver_options": problem.solver_options,
            "seed": self.seed,
            "counts": {split: self.counts.get(split, 0) for split in SPLITS},
            "per_shard": self.per_shard,
            "fields": problem.fields,
            "context_fields": problem.context_fields,
            "axes": [dataclasses.asdict(axis) for axis in problem.axes],
            "times": problem.times.tolist(),
        }
        return json.loads(json.dumps(description, allow_nan=False))

    def layout(self, shard: Shard, *, provenance: Mapping[str, str | int]) -> Layout:
        """What the shard's file says about itself."""
        problem = self.problem
        options = problem_options(problem)
        numbers = {name: value for name, value in options.items() if type(value) in (int, float)}
        return Layout(
            name=problem.name,
            fields=problem.fields,
            axes=problem.axes,
            times=problem.times,
            context_fields=problem.context_fields,
            grid_type=problem.grid_type,
            parameters=numbers,
            attributes={
                "generator": "ssno",
                "generator_version": provenance["ssno"],
                "git_commit": provenance["commit"],
                "problem_options": json.dumps(options, sort_keys=True),
                "solver": problem.solver,
                "solver_options": json.dumps(problem.solver_options, sort_keys=True),
                "float_precision_of_solver": "float64",
                "seed": self.seed,
                "split": shard.split,
                "first_trajectory": shard.first,
            },
        )


def problem_options(problem: Problem) -> dict[str, Any]:
    """The named options of a problem: the fields of its dataclass, as JSON values."""
    if not dataclasses.is_dataclass(problem):
        raise TypeError(f"A problem must be a frozen dataclass whose fields are its options, got {type(problem)}.")
    return json.loads(json.dumps(dataclasses.asdict(problem), allow_nan=False))


def default_per_shard(problem: Problem) -> int:
    """Trajectories per file: a power of two, at most 64, at most 64 MiB before compression."""
    fitting = max(1, min(MOST_TRAJECTORIES, LARGEST_SHARD // trajectory_bytes(problem)))
    return 1 << (fitting.bit_length() - 1)


def count_trajectories(shards: Sequence[Shard]) -> int:
    """How many trajectories these files hold together."""
    return sum(shard.count for shard in shards)
