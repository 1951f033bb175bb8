"""Turn a plan into shards on disk, one after the other, in this process.

Trajectories are drawn, solved in batches, checked and encoded; while one shard is written to disk, the next is
being solved. `ssno.data.make.workers` runs several of these lines at once.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from ssno.base.whole import write_whole
from ssno.data.make.plan import Plan, Shard
from ssno.data.seeds import trajectory_rng
from ssno.data.store.manifest import Entry, write_note
from ssno.data.store.storage import NotFinite, ShardEncoder
from ssno.pde.problems.problem import Parameters, Solution, SolverDiverged
from ssno.pde.schemes.rollout import one_thread

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
