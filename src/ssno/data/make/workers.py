"""Several production lines at once: one single-threaded process per core.

The main process hands out shards one at a time, so a slow core delays nobody, and listens on one pipe per worker.
A worker that dies closes its pipe and is noticed at once; if the main process dies, workers stop at their next
report. Processes are spawned: nothing is inherited but the plan.
"""

import os
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from ssno.data.make.plan import Plan, Shard
from ssno.data.make.produce import GenerationFailed, Report, produce
from ssno.data.store.manifest import Entry

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def run(
    plan: Plan,
    folder: Path,
    shards: Sequence[Shard],
    *,
    workers: int,
    batch: int,
    provenance: Mapping[str, str | int],
    report: Report,
    stored: Callable[[Entry], None],
) -> None:
    """Make all `shards`, in this process for one worker, else in `workers` spawned ones."""
    settings = {"batch": batch, "provenance": provenance}
    if workers == 1:
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
    with spawned(min(workers, len(shards)), (plan, folder, settings)) as team:
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
                        "Finished shards are kept: run the same command again, with fewer `workers`."
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
        os._exit(1)  # the main process is gone, and nobody is left to tell
    except (GenerationFailed, OSError) as error:
        connection.send(("failed", error))
    except Exception:  # of any type, which may not survive the pipe: its story does
        connection.send(("failed", GenerationFailed(f"A worker process failed.\n{traceback.format_exc()}")))


@contextmanager
def spawned(workers: int, arguments: tuple[Any, ...]) -> Iterator[dict[Connection, BaseProcess]]:
    """A team of worker processes by the pipe that leads to each; ended when the block ends, whatever the reason."""
    context = get_context("spawn")
    team: dict[Connection, BaseProcess] = {}
    processes: list[BaseProcess] = []
    try:
        with single_threaded_children():
            for _ in range(workers):
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
