"""Generate a dataset into a folder: check, forecast, make what is missing, seal.

    plan = Plan(KuramotoSivashinsky(viscosity=0.075), counts={"train": 2048, "valid": 256})
    generate(plan, Path("data/ks-0.075-paper"), jobs=2)

Calling it again continues: finished shards are kept, everything else is made anew. Several machines may work in one
folder at the same time, each on its own part (`part=(1, 4)`); whoever finds the dataset complete writes the
manifest. The result is the same to the last bit in all these cases.
"""

import errno
import os
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ssno.base import byte_size
from ssno.base.atomic_write import write_whole
from ssno.base.provenance import provenance
from ssno.data.datasets import Plan
from ssno.data.manifest import (
    DESCRIPTION,
    MANIFEST,
    PROGRESS,
    Entry,
    Shard,
    count_trajectories,
    entries_of,
    finished_shards,
    read_manifest,
    seal,
    unseal,
    write_manifest,
)
from ssno.data.solve_shards import GenerationCost, GenerationFailed, Report, expected_cost, importable, produce

# Several production lines at once: one single-threaded process per core.
#
# The main process hands out shards one at a time, so a slow core delays nobody, and listens on one pipe per worker.
# A worker that dies closes its pipe and is noticed at once; if the main process dies, workers stop at their next
# report. Processes are spawned: nothing is inherited but the plan.

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def run(
    plan: Plan,
    folder: Path,
    shards: Sequence[Shard],
    *,
    jobs: int,
    batch: int,
    provenance: Mapping[str, str | int],
    report: Report,
    stored: Callable[[Entry], None],
) -> None:
    """Make all `shards`, in this process for one worker, else in `jobs` spawned ones."""
    settings = {"batch": batch, "provenance": provenance}
    if jobs == 1:
        queue = iter(shards)
        produce(
            plan,
            folder,
            next_shard=lambda: next(queue, None),
            report=report,
            stored=stored,
            **settings,  # type: ignore[arg-type]
        )
        return
    if not importable(plan.problem):
        raise GenerationFailed(
            f"Worker processes cannot import {type(plan.problem).__qualname__}. Define it at the top level of a module "
            "or script, or use `jobs=1`."
        )
    with spawned(min(jobs, len(shards)), (plan, folder, settings)) as team:
        listen(team, list(shards), report=report, stored=stored)


def listen(
    team: dict[Connection, BaseProcess], queue: list[Shard], *, report: Report, stored: Callable[[Entry], None]
) -> None:
    """Serve the workers until all have stopped. The first failure ends the run."""
    while team:
        for connection in wait(list(team)):
            assert isinstance(connection, Connection)
            try:
                kind, content = connection.recv()
                if kind == "next":
                    connection.send(queue.pop(0) if queue else None)
            except (EOFError, OSError):  # the other end is closed, maybe in the middle of a message
                process = team.pop(connection)
                process.join()
                if process.exitcode != 0:
                    raise GenerationFailed(
                        f"A worker process died (exit code {process.exitcode}); -9 usually means out of memory. "
                        "Finished shards are kept: run the same command again, with fewer `jobs`."
                    ) from None
                continue
            if kind == "solved":
                report(content)
            elif kind == "stored":
                stored(content)
            elif kind == "failed":
                raise content


def work(connection: Connection, plan: Plan, folder: Path, settings: dict[str, Any]) -> None:
    """What a worker process does: ask for shards and make them until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the main process decides

    def next_shard() -> Shard | None:
        connection.send(("next", None))
        return connection.recv()

    try:
        produce(
            plan,
            folder,
            next_shard=next_shard,
            report=lambda solved: connection.send(("solved", solved)),
            stored=lambda entry: connection.send(("stored", entry)),
            **settings,
        )
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(1)  # the main process is gone, and nobody is left to count
    except (GenerationFailed, OSError) as error:
        connection.send(("failed", error))
    except Exception:  # of any type, which may not survive the pipe: its story does
        connection.send(("failed", GenerationFailed(f"A worker process failed.\n{traceback.format_exc()}")))


@contextmanager
def spawned(jobs: int, arguments: tuple[Any, ...]) -> Iterator[dict[Connection, BaseProcess]]:
    """A team of worker processes by the pipe that leads to each; ended when the block ends, whatever the reason."""
    context = get_context("spawn")
    team: dict[Connection, BaseProcess] = {}
    processes: list[BaseProcess] = []
    try:
        with single_threaded_children():
            for _ in range(jobs):
                ours, theirs = context.Pipe()
                process: BaseProcess = context.Process(target=work, args=(theirs, *arguments), daemon=True)
                process.start()
                theirs.close()
                team[ours] = process
                processes.append(process)
        yield team
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
            process.join()


@contextmanager
def single_threaded_children() -> Iterator[None]:
    """Processes started in this block compute with one thread in every numerical library."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


PLANNED = f"{PROGRESS}/recipe.json"
NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR}


@dataclass(frozen=True)
class GenerationReport:
    """What a call to `generate` did: shards made now, kept from before, and missing (other parts make them)."""

    folder: Path
    forecast: GenerationCost
    made: int
    kept: int
    missing: int
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether the dataset is whole and its manifest written."""
        return self.missing == 0 and (self.folder / MANIFEST).is_file()


def generate(
    plan: Plan,
    folder: Path,
    *,
    jobs: int | None = None,
    batch: int | None = None,
    part: tuple[int, int] = (1, 1),
    dry_run: bool = False,
    announce: Callable[[GenerationCost], None] = lambda _: None,
    report: Callable[[float, int], None] = lambda done, total: None,
    origin: Mapping[str, str | int] | None = None,
) -> GenerationReport:
    """Make the shards of `part` that are not yet in `folder`, and the manifest once all parts are there.

    `jobs` is the number of single-threaded processes, by default one per core where that pays; `batch` the
    number of trajectories solved at once. `announce` hears the forecast before the work starts, `report` the number of
    trajectories solved so far and in total. `dry_run` stops after the forecast and writes nothing. `origin` is
    what files and manifest say about versions, commit and hardware; those of this process by default.
    """
    start = time.monotonic()
    batch = plan.problem.preferred_batch if batch is None else batch
    for name, value in (("jobs", jobs), ("batch", batch)):
        if value is not None and value < 1:
            raise ValueError(f"`{name}` must be at least 1, got {value}.")
    origin = provenance() if origin is None else origin
    mine = plan.part(*part)
    refuse_other_plans(plan, folder)
    kept = finished_shards(folder, mine)
    todo = [shard for shard in mine if shard.path not in kept]
    if todo and not dry_run:
        prepare_folder(plan, folder)
    cost = expected_cost(plan, todo, jobs=jobs, batch=batch, provenance=origin)
    check_room(cost, folder)
    announce(cost)
    made: list[Entry] = []
    if todo and not dry_run:
        total, solved = count_trajectories(todo), 0.0

        def count(trajectories: float) -> None:
            nonlocal solved
            solved += trajectories
            report(min(solved, total), total)

        run(plan, folder, todo, jobs=cost.jobs, batch=batch, provenance=origin, report=count, stored=made.append)
        report(total, total)  # fractions of trajectories may not add up to the last digit
    missing = len(plan.shards()) - len(finished_shards(folder, plan.shards()))
    if missing == 0 and not dry_run:
        seal_folder(plan, folder)
    return GenerationReport(folder, cost, len(made), len(mine) - len(todo), missing, time.monotonic() - start)


def refuse_other_plans(plan: Plan, folder: Path) -> None:
    """Raise `FileExistsError` if the folder holds, or is being filled with, anything but this plan."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; `out` must be a folder.")
    if (folder / MANIFEST).is_file():
        theirs = read_manifest(folder)[DESCRIPTION]
    elif (folder / PLANNED).is_file():
        theirs = unseal(folder / PLANNED)
    elif any(path.name != PROGRESS for path in folder.iterdir()):
        raise FileExistsError(
            f"{folder} is not empty and was not made by `ssno data generate`. Choose another `out`, or empty it."
        )
    else:
        return
    theirs.pop("same_as", None)  # older ones said that valid was test; now loading holds out training trajectories
    if differences := compare(theirs, plan.description()):
        raise FileExistsError(
            f"{folder} holds another dataset: {'; '.join(differences)}. Choose another `out`, or move it away."
        )


def compare(theirs: Mapping[str, Any], ours: Mapping[str, Any], prefix: str = "") -> list[str]:
    """What differs between two descriptions, in words."""
    differences = []
    for key in sorted({*theirs, *ours}):
        there, here = theirs.get(key), ours.get(key)
        if isinstance(there, dict) and isinstance(here, dict):
            differences += compare(there, here, f"{prefix}{key}.")
        elif there != here:
            differences.append(f"`{prefix}{key}` is {_short(there)} there and {_short(here)} here")
    return differences


def prepare_folder(plan: Plan, folder: Path) -> None:
    """Make the folder and leave the plan in it; a folder that cannot be written is found out here."""
    try:
        (folder / PROGRESS).mkdir(parents=True, exist_ok=True)
        write_whole(folder / PLANNED, seal(plan.description()))  # first of all: a folder with a plan can be continued
        for shard in plan.shards():
            (folder / shard.path).parent.mkdir(exist_ok=True)
    except OSError as error:
        if error.errno not in NOT_WRITABLE:
            raise
        raise PermissionError(f"Cannot write to {folder} ({error.strerror}). Choose another `out`.") from error
    refuse_other_plans(plan, folder)  # another job may have left its plan at the same moment


def check_room(cost: GenerationCost, folder: Path) -> None:
    """Raise `OSError` if the disk has less room than the dataset needs."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    free = shutil.disk_usage(there).free
    if cost.disk_bytes > free:
        raise OSError(
            f"The dataset needs about {byte_size(cost.disk_bytes)} but {there} has {byte_size(free)} free. Free some "
            "space or choose another `out`."
        )


def seal_folder(plan: Plan, folder: Path) -> None:
    """Write the manifest of a whole dataset; remove the notes and what killed writers left behind."""
    entries = finished_shards(folder, plan.shards())
    listed = [entries[shard.path] for shard in plan.shards()]
    if not (folder / MANIFEST).is_file() or entries_of(read_manifest(folder)) != listed:
        known = plan.problem.stationary and plan.counts["train"] > 0
        statistics = training_statistics(folder, plan, listed) if known else None
        write_manifest(folder, description=plan.description(), entries=listed, statistics=statistics)
    for leftover in (*folder.glob("*.partial"), *folder.glob("*/*.partial")):
        leftover.unlink(missing_ok=True)
    shutil.rmtree(folder / PROGRESS, ignore_errors=True)  # another job may be removing it too


def training_statistics(folder: Path, plan: Plan, entries: Sequence[Entry]) -> dict[str, dict[str, float]]:
    """Mean and standard deviation of each field over all training frames and points."""
    found = {}
    for name in plan.problem.fields:
        total, squares, count = 0.0, 0.0, 0
        for entry in entries:
            if entry.split == "train":
                with h5py.File(folder / entry.path, "r") as file:
                    values = np.asarray(file["t0_fields"][name], dtype=np.float64)
                total, squares, count = total + values.sum(), squares + np.square(values).sum(), count + values.size
        mean = total / count
        found[name] = {"mean": float(mean), "deviation": float(np.sqrt(squares / count - mean**2))}
    return found


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
