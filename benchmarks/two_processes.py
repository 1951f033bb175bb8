"""Throughput of a training in two processes on two cores against one process on one core (DDP on the CPU).

    python -m benchmarks.two_processes                     measure and print: minutes on an idle machine
    python -m benchmarks.two_processes --store             also write results/two-processes.json
    python -m benchmarks.two_processes --steps 6 --rounds 1 --cores 1 1      a smoke test on one core

Each process takes batches of 4 trajectories, as with recipe `fast`, has one thread and a core to itself. One and two
processes take turns; counted are trajectories per second over the steps of a round, the first ones left out, forward,
backward, averaging of gradients and update included. Exit code 1 if a median ratio is below 1.7.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tyro

ROOT = Path(__file__).parents[1]
CASES = {"ssno-64": ((64,), 26), "ssno-32x32": ((32, 32), 12)}
BATCH, FIRST, BAR = 4, 4, 1.7


def work(case: str, steps: int, cores: list[int]) -> None:
    """One process of a training: the main one prints trajectories per second."""
    import torch

    from ssno.base.distributed_env import number_here, processes
    from ssno.data.trajectories import Trajectories
    from ssno.models.ssno import SSNOConfig
    from ssno.runs.log import Silent
    from ssno.training.loop import run_task
    from ssno.training.task import task_for

    os.sched_setaffinity(0, {cores[number_here()]})
    torch.set_num_threads(1)
    (grid, frames), batch = CASES[case], BATCH * processes()
    noise = np.random.default_rng(0).standard_normal((batch * (steps + FIRST), frames, 1, *grid), np.float32)
    data = Trajectories.from_array(noise, lengths=[1.0] * len(grid))
    times: list[float] = []

    class Clock(Silent):
        def step(self, *, step: int, epoch: int, loss: float, rate: float) -> None:
            times.append(time.perf_counter())

    config = SSNOConfig(n_dims=len(grid))
    task = task_for(config, data, valid=data.select(indices=[0]), epochs=1, batch_size=batch)
    run_task(task, reporter=Clock())
    if times:
        print(json.dumps(batch * (len(times) - FIRST) / (times[-1] - times[FIRST - 1])), flush=True)


def measured(case: str, count: int, *, steps: int, cores: tuple[int, ...]) -> float:
    """Trajectories per second of `count` processes."""
    words = ["benchmarks.two_processes", "--work", case, str(steps), json.dumps(cores)]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)] if count > 1 else []
    done = subprocess.run(
        [sys.executable, *launcher, "-m", *words],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return float(json.loads(done.stdout.splitlines()[-1]))


def main(*, steps: int = 60, rounds: int = 5, cores: tuple[int, ...] = (0, 1), store: bool = False) -> None:
    """Compare two processes with one.

    Args:
        steps: optimiser steps that are timed in a round.
        rounds: how often one and two processes take turns.
        cores: where the processes run.
        store: write results/two-processes.json.
    """
    from ssno.base.provenance import provenance

    load, rows = os.getloadavg()[0], {}
    for case in CASES:
        pairs = [[measured(case, n, steps=steps, cores=cores) for n in (1, 2)] for _ in range(rounds)]
        ratio = statistics.median(two / one for one, two in pairs)
        rows[case] = {"trajectories_per_second": pairs, "ratio": ratio, "met": ratio >= BAR}
        print(f"{case}: {ratio:.2f} times the throughput with two processes (bar {BAR})", flush=True)
    if store:
        document: dict[str, Any] = {
            "rows": rows,
            "steps": steps,
            "cores": cores,
            "load": load,
            "provenance": provenance(),
        }
        (ROOT / "results" / "two-processes.json").write_text(json.dumps(document, indent=2) + "\n")
    sys.exit(not all(row["met"] for row in rows.values()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]))
    else:
        tyro.cli(main)
