"""What a generation will cost, measured on its first batch: seconds, bytes on disk, memory."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ssno.base.process_memory import most_held
from ssno.base.provenance import available_cores
from ssno.data.make.plan import Plan, Shard, count_trajectories
from ssno.data.make.produce import encode
from ssno.data.sizes import trajectory_bytes

LONGEST_TRIAL = 3.0  # seconds
WORKER_START = 3.0  # seconds to start a process and import torch


@dataclass(frozen=True)
class GenerationCost:
    """Expected cost of making some shards; `memory_bytes` is the sum over all workers."""

    shards: int
    trajectories: int
    workers: int
    seconds: float
    memory_bytes: int
    disk_bytes: int


class _Enough(Exception):
    """The trial has run long enough."""


def expected_cost(
    plan: Plan, shards: Sequence[Shard], *, workers: int | None, batch: int, provenance: Mapping[str, str | int]
) -> GenerationCost:
    """Solve one batch, or 3 seconds of it, write nothing, and scale up.

    `workers=None` takes one process per core, unless a single one is done before the others have started.
    """
    if not shards:
        return GenerationCost(shards=0, trajectories=0, workers=0, seconds=0.0, memory_bytes=0, disk_bytes=0)
    trial = replace(shards[0], count=min(batch, shards[0].count))
    solved, start = 0.0, time.perf_counter()

    def stopwatch(trajectories: float) -> None:
        nonlocal solved
        solved += trajectories
        if time.perf_counter() - start > LONGEST_TRIAL and solved < trial.count:
            raise _Enough

    try:
        stored = len(encode(plan, trial, batch=batch, provenance=provenance, report=stopwatch)) / trial.count
    except _Enough:
        stored = trajectory_bytes(plan.problem)  # compression is not known yet: an upper bound
    seconds = (time.perf_counter() - start) / solved
    trajectories = count_trajectories(shards)

    def duration(processes: int) -> float:
        return trajectories * seconds / processes + (WORKER_START if processes > 1 else 0.0)

    choices = (1, available_cores()) if workers is None else (workers,)
    workers = min((min(choice, len(shards)) for choice in choices), key=duration)
    largest = max(shard.count for shard in shards) * trajectory_bytes(plan.problem)
    return GenerationCost(
        shards=len(shards),
        trajectories=trajectories,
        workers=workers,
        seconds=duration(workers),
        memory_bytes=workers * (most_held() + 3 * largest),
        disk_bytes=round(trajectories * stored),
    )
