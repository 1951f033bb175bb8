"""Turn a plan into shards on disk, one after the other, in this process.

Trajectories are drawn, solved in batches, checked and encoded; while one shard is written to disk, the next is
being solved. `ssno.data.generation` runs several of these lines at once.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ssno.base.atomic_write import write_whole
from ssno.base.memory import most_held
from ssno.base.provenance import available_cores
from ssno.data.datasets import Plan
from ssno.data.manifest import Entry, Shard, count_trajectories, write_note
from ssno.data.splits import trajectory_rng
from ssno.data.storage import NotFinite, ShardEncoder
from ssno.data.trajectories import trajectory_bytes
from ssno.pde.problems.problem import Parameters, Problem, Solution, SolverDiverged
from ssno.pde.stepping import one_thread

Report = Callable[[float], None]
SECONDS_BETWEEN_REPORTS = 0.2


class GenerationFailed(RuntimeError):
    """A trajectory could not be made; the message names it, the step and its parameters. Nothing of it is written."""


def produce(
    plan: Plan,
    folder: Path,
    *,
    next_shard: Callable[[], Shard | None],
    batch: int,
    provenance: Mapping[str, str | int],
    report: Report,
    stored: Callable[[Entry], None],
) -> None:
    """Make shard after shard until `next_shard` gives None.

    `report(trajectories)` is told how much has been solved since the last call, in (fractions of) trajectories;
    `stored(entry)` that a shard and its note are safe on disk.
    """

    def store(shard: Shard, data: bytes) -> Entry:
        entry = Entry.of(shard, data, provenance)
        write_whole(folder / shard.path, data)
        write_note(folder, shard, entry)
        return entry

    with one_thread(), ThreadPoolExecutor(max_workers=1) as writer:
        writing: Future[Entry] | None = None
        while (shard := next_shard()) is not None:
            data = encode(plan, shard, batch=batch, provenance=provenance, report=report)
            if writing is not None:
                stored(writing.result())
            writing = writer.submit(store, shard, data)
        if writing is not None:
            stored(writing.result())


def encode(
    plan: Plan, shard: Shard, *, batch: int, provenance: Mapping[str, str | int], report: Report = lambda _: None
) -> bytes:
    """Solve the trajectories of one shard and return its file. The bytes do not depend on `batch`."""
    encoder = ShardEncoder(plan.layout(shard, provenance=provenance), count=shard.count)
    for start in range(0, shard.count, batch):
        numbers = shard.trajectories[start : start + batch]
        drawn = [
            plan.problem.draw_for(shard.split, trajectory_rng(plan.seed, shard.split, number)) for number in numbers
        ]
        solution = _solve(plan, shard, numbers, drawn, report)
        for index, parameters in enumerate(drawn):
            context = None if solution.context is None else solution.context[index]
            try:
                encoder.append(solution.state[index], context, parameters=parameters)
            except NotFinite as error:
                raise GenerationFailed(
                    f"{_name(shard, numbers[index], parameters)} is not finite at {error.place}. "
                    "Nothing of it was written."
                ) from error
    return encoder.finish()


def _solve(plan: Plan, shard: Shard, numbers: range, drawn: list[dict[str, np.ndarray]], report: Report) -> Solution:
    meter = Meter(len(numbers), report)
    try:
        solution = plan.problem.solve(drawn, progress=meter)
    except SolverDiverged as error:
        index = error.trajectory
        raise GenerationFailed(
            f"{_name(shard, numbers[index], drawn[index])} is no longer finite at solver step {error.step}, "
            f"time {error.time:.6g}. Nothing of it was written. Use a smaller time step or a finer grid."
        ) from error
    meter(1, 1)
    return solution


def _name(shard: Shard, number: int, parameters: Parameters) -> str:
    values = ", ".join(
        f"{name}={np.array2string(np.asarray(value), threshold=12)}" for name, value in parameters.items()
    )
    return f"Trajectory {number} of `{shard.split}` (parameters {values})"


class Meter:
    """Turns a solver's `progress(done, total)` into reports of how many trajectories were solved since the last."""

    def __init__(self, trajectories: int, report: Report):
        self.trajectories, self.report = trajectories, report
        self.reported, self.last = 0.0, time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        solved = self.trajectories * done / total
        if solved <= self.reported or (done < total and now - self.last < SECONDS_BETWEEN_REPORTS):
            return
        self.report(solved - self.reported)
        self.reported, self.last = solved, now


# What a generation will cost, measured on its first batch: seconds, bytes on disk, memory.

LONGEST_TRIAL = 3.0  # seconds
WORKER_START = 3.0  # seconds to start a process and import torch


@dataclass(frozen=True)
class GenerationCost:
    """Expected cost of making some shards; `memory_bytes` is the sum over all worker processes."""

    shards: int
    trajectories: int
    jobs: int
    seconds: float
    memory_bytes: int
    disk_bytes: int


def importable(problem: Problem) -> bool:
    """Whether a new process finds the problem's class, which is not so for one of a function, notebook or prompt."""
    kind = type(problem)
    module = sys.modules.get(kind.__module__)
    if kind.__module__ == "__main__" and getattr(module, "__file__", None) is None:
        return False
    return getattr(module, kind.__qualname__, None) is kind


class _Enough(Exception):
    """The trial has run long enough."""


def expected_cost(
    plan: Plan, shards: Sequence[Shard], *, jobs: int | None, batch: int, provenance: Mapping[str, str | int]
) -> GenerationCost:
    """Solve one batch, or 3 seconds of it, write nothing, and scale up.

    `jobs=None` takes one process per core, unless a single one is done before the others have started.
    """
    if not shards:
        return GenerationCost(shards=0, trajectories=0, jobs=0, seconds=0.0, memory_bytes=0, disk_bytes=0)
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

    most = available_cores() if importable(plan.problem) else 1
    choices = (1, most) if jobs is None else (jobs,)
    jobs = min((min(choice, len(shards)) for choice in choices), key=duration)
    largest = max(shard.count for shard in shards) * trajectory_bytes(plan.problem)
    return GenerationCost(
        shards=len(shards),
        trajectories=trajectories,
        jobs=jobs,
        seconds=duration(jobs),
        memory_bytes=jobs * (most_held() + 3 * largest),
        disk_bytes=round(trajectories * stored),
    )
