"""The rates of one core in the cost formula of `--mesh`: numbers sent over gloo, multiplied in scans, and copied.

    python -m benchmarks.mesh_rates                     measure and print
    python -m benchmarks.mesh_rates --store             also write results/mesh-rates.json
    python -m benchmarks.mesh_rates --cores 0 0         both processes on one core

`MACHINES["cpu"]` of `ssno.layers.space` has them, rounded to two digits. Two processes exchange messages as turned
lines do (`AxisShare.turned`); scans go forwards and backwards (`scan_taps`, periodic, two directions), counted as the
formula counts them; copies are those that pack a message, each number read and written. A rate is that of processor
time, the median of rounds: what is sent costs the sender and the receiver, so the two count the same work on one core
as on two. `clock` has numbers per second of the clock, which on one core is half as many.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import tyro

ROOT = Path(__file__).parents[1]
CHANNELS, ROUNDS = 64, 21
MESSAGES = (2**16, 2**18, 2**20, 2**22)
AXES = (64, 128, 256, 512, 1024)
LINES = 2**16
"""Points of all lines that are scanned."""


def rate(amount: float, action: Callable[[], Any]) -> dict[str, float]:
    """So many numbers per second of processor time, and of the clock."""
    action()
    used, clock = [], []
    for _ in range(ROUNDS):
        began, at = time.process_time(), time.perf_counter()
        action()
        used.append(time.process_time() - began)
        clock.append(time.perf_counter() - at)
    return {"rate": amount / statistics.median(used), "clock": amount / statistics.median(clock)}


def work() -> None:
    """One of two processes; the first prints what it measured."""
    import torch.distributed as dist

    from ssno.layers.space import AxisScan, AxisShare, costs
    from ssno.ssm.scan import scan_taps

    rank = int(os.environ["RANK"])
    os.sched_setaffinity(0, {json.loads(os.environ["CORES"])[rank]})
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    share = AxisShare(dist.group.WORLD, 2, rank)
    sent = {}
    for numbers in MESSAGES:
        parts = torch.randn(2, CHANNELS, numbers // CHANNELS, 1)
        sent[numbers] = rate(numbers, lambda parts=parts: share.turned(parts))  # half of it stays here
    dist.destroy_process_group()
    if rank:
        return
    products = {}
    for points in AXES:
        x = torch.randn(CHANNELS, 1, points, LINES // points, requires_grad=True)
        taps = torch.randn(2, CHANNELS, points, requires_grad=True)
        cost = costs(AxisScan(points, "periodic", 32, 2, True), 1)["whole"]
        counted = cost.products + cost.transforms

        def scan(x: torch.Tensor = x, taps: torch.Tensor = taps) -> None:
            y = scan_taps(x, taps, ("forward", "backward"), periodic=True)
            torch.autograd.grad(y, (x, taps), torch.ones_like(y))

        products[points] = rate(counted * CHANNELS * LINES, scan)
    field = torch.randn(CHANNELS, 128, 128, 2)
    copied = {math.prod(field.shape): rate(2 * field.numel(), lambda: field.transpose(1, 2).contiguous())}
    print(json.dumps({"sent": sent, "products": products, "copied": copied}))


def main(*, cores: tuple[int, int] = (0, 1), store: bool = False) -> None:
    """Measure the three rates.

    Args:
        cores: where the two processes run.
        store: write results/mesh-rates.json.
    """
    from ssno.base.provenance import provenance

    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = [sys.executable, *launcher, "-m", "benchmarks.mesh_rates", "--work"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CORES": json.dumps(cores)}
    load = os.getloadavg()[0]
    done = subprocess.run(words, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    for name, rows in found.items():
        print(
            name,
            ", ".join(f"{size}: {row['rate']:.3g} ({row['clock']:.3g} by the clock)" for size, row in rows.items()),
        )
    if store:
        document = {"rows": found, "cores": cores, "load": load, "provenance": provenance()}
        (ROOT / "results" / "mesh-rates.json").write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    work() if sys.argv[1:2] == ["--work"] else tyro.cli(main)
