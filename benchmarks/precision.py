"""What bf16 gains and costs: the roof of one thread, native operations below it, and memory of a training step.

    python -m benchmarks.precision                 measure and print
    python -m benchmarks.precision --store         also write results/precision.json

The roof is measured, not quoted: `roof.cpp` issues nothing but multiplications. Operations are timed on one thread at
the size of a training step (N = 64, 32 trajectories of 25 frames), forward and backward. Rates count products only, so
what an operation lacks to the roof are activations, packing and memory.
"""

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import tyro

from benchmarks.measure import threads
from benchmarks.training import GRIDS, engines, ssno, trajectories
from ssno.base.memory import peak_memory
from ssno.base.provenance import provenance
from ssno.evaluation.cost import time_interleaved
from ssno.native import build, operations
from ssno.native.build import tiled

ROOT = Path(__file__).parents[1]
TILES = ROOT / "src" / "ssno" / "native" / "tiles.h"
KINDS = {"float32": torch.float32, "bf16": torch.bfloat16}
CHANNELS, WIDE, POINTS, COLUMNS = 64, 256, 64, 800
SECONDS = 4.0


def main(store: bool = False) -> None:
    """Measure; with `store`, keep."""
    kinds = {name: dtype for name, dtype in KINDS.items() if tiled(dtype)}
    found = {"roof_gflop_per_s": roof(kinds), "operations": operations_below(kinds), "memory_mib": memory()}
    print(json.dumps(found, indent=1))
    if store:
        path = ROOT / "results" / "precision.json"
        path.write_text(json.dumps({**found, "provenance": provenance()}, indent=1) + "\n")


def roof(kinds: dict[str, torch.dtype]) -> dict[str, dict[str, float]]:
    """Billions of operations per second and thread: of the bare instruction, of our tile, of PyTorch's product."""
    source = Path(__file__).with_name("roof.cpp")
    library = ctypes.CDLL(str(built(source)))
    rates: dict[str, dict[str, float]] = {}
    for name, dtype in kinds.items():
        rates[name] = {}
        for what in ("instruction", "tile"):
            call = getattr(library, f"{what}_{name}")
            call.restype = ctypes.c_double
            rates[name][what] = call()
        a, b = torch.randn(128, 64).to(dtype), torch.randn(64, 16384).to(dtype)
        with threads(1):
            seconds = min(time_interleaved({"": lambda a=a, b=b: a @ b}, budget=1.0, least_rounds=20)[""].seconds)
        rates[name]["torch 128x64 by 64x16384"] = 2 * 128 * 64 * 16384 / seconds / 1e9
    return rates


def built(source: Path) -> Path:
    """The compiled roof; its header lies beside the package's sources."""
    folder = build.cache_folder() / "roof"
    folder.mkdir(parents=True, exist_ok=True)
    copies = [folder / path.name for path in (source, TILES)]
    for path, copy in zip((source, TILES), copies, strict=True):
        copy.write_text(path.read_text())
    return build.build(*copies, compiler=build.compiler(".cpp"), folder=folder)


def operations_below(kinds: dict[str, torch.dtype]) -> dict[str, dict[str, dict[str, float]]]:
    """Time and rate of every operation of one bidirectional block, of memory and of the head, on one thread."""
    positions = POINTS * COLUMNS
    gate = 2 * 2 * 2 * CHANNELS * CHANNELS * positions / 1e9
    scan = 2 * POINTS * CHANNELS * positions / 1e9  # without what lies beyond the diagonal
    head = 2 * WIDE * CHANNELS * positions / 1e9
    gflop = {"gate": gate, "scan": scan, "head": head}  # memory multiplies by four taps: nothing to count
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, dtype in kinds.items():
        tasks = calls(dtype)
        with threads(1):
            times = time_interleaved(tasks, budget=SECONDS, least_rounds=5, warm_up=1)
        found[name] = {}
        for task, timing in times.items():
            what, way = task.split()
            found[name][task] = {"ms": 1e3 * timing.median}
            if what in gflop:
                work = gflop[what] * (1 if way == "forward" else 2 if what == "scan" else 3)
                found[name][task]["gflop_per_s"] = work / timing.median
    return found


def calls(dtype: torch.dtype) -> dict[str, Callable[[], Any]]:
    """Native operations on features of one kind."""
    torch.manual_seed(0)
    x = torch.randn(CHANNELS, POINTS * COLUMNS).to(dtype)
    y = torch.randn(CHANNELS, 2, POINTS * COLUMNS).to(dtype)
    mix = torch.randn(2, 2 * CHANNELS, CHANNELS) / 8, torch.randn(2, 2 * CHANNELS)
    taps, line = torch.randn(2, CHANNELS, POINTS), x.view(CHANNELS, 1, POINTS, COLUMNS)
    window, slots = torch.zeros(1, CHANNELS, 25), x.view(CHANNELS, -1, 25, 1)
    window[..., :4] = 1.0
    maps = torch.randn(WIDE, CHANNELS) / 8, torch.randn(WIDE), torch.randn(1, WIDE) / 16
    both = {"backward": 0b10, "periodic": False}
    once = {"backward": 0, "periodic": False}
    scanned = y.view(CHANNELS, 2, 1, POINTS, COLUMNS)
    return {
        "gate forward": lambda: operations.gate_forward(y, *mix, x, 1),
        "gate backward": lambda: operations.gate_backward(y, *mix, x),
        "scan forward": lambda: operations.scan_forward(line, taps, **both, direct=False),
        "scan backward": lambda: operations.scan_backward(line, taps, scanned, **both),
        "memory forward": lambda: operations.scan_forward(slots, window, **once, direct=False),
        "memory backward": lambda: operations.scan_backward(slots, window, slots[:, None], **once),
        "head forward": lambda: operations.head_forward(x, *maps, torch.zeros(1)),
        "head backward": lambda: operations.head_backward(x, *maps, torch.ones(1, x.shape[1])),
    }


def memory() -> dict[str, dict[str, float]]:
    """Peak of live tensors in a training step, MiB, per grid and contestant."""
    found = {}
    for grid, (batch, frames) in GRIDS.items():
        model, (given, target) = ssno(grid), trajectories(grid, batch=batch, frames=frames)
        peaks = {name: peak_memory(run) / 2**20 for name, run in engines(model, given, target).items()}
        found["x".join(map(str, grid))] = peaks | {"bf16 / fused": peaks["bf16"] / peaks["fused"]}
    return found


if __name__ == "__main__":
    tyro.cli(main)
