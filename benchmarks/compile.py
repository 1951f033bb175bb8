"""A compiled training step of SS-NO beside one of FFNO compiled the same way: what devices other than the CPU run.

    python -m benchmarks.compile --grid 64              measure and print
    python -m benchmarks.compile --grid 64 64 --store   also put the row into results/compile.json

One thread; sizes of the recipes (both models' defaults, 32 trajectories of 25 frames on a line, 4 of 4 on a square);
forward, relative error, backward and AdamW, one graph without breaks (`fullgraph=True`, which raises at a break). The
steps run in turns, and the clock is the processor time of this process, so that other load shifts both; the ratio is
that of the fastest rounds. Compiling takes minutes on a CPU, of which `seconds_to_compile` has the processor time,
that of the C++ compiler included.
"""

import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import torch
import tyro

from benchmarks.training import GRIDS, trajectories
from ssno.base.device import threads
from ssno.base.provenance import provenance
from ssno.forecasting.metrics import frame_errors
from ssno.models.registry import model_config

RESULT = Path(__file__).parents[1] / "results" / "compile.json"


def main(grid: tuple[int, ...] = (64,), rounds: int = 7, store: bool = False) -> None:
    """Compile both steps, run them in turns, print; with `store`, keep the row of this grid."""
    with threads(1):
        steps, compiling = {}, {}
        for name in ("ssno", "ffno"):
            steps[name] = compiled_step(name, grid)
            began = processor_seconds()
            steps[name]()
            compiling[name] = processor_seconds() - began
            print(f"{name}: compiled in {compiling[name]:.0f} s", flush=True)
        seconds: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(rounds):
            for name, step in steps.items():
                began = time.process_time()
                step()
                seconds[name].append(time.process_time() - began)
    least = {name: min(found) for name, found in seconds.items()}
    row = {
        "batch_and_frames": GRIDS[grid],
        "ffno_over_ssno": least["ffno"] / least["ssno"],
        "processor_seconds": seconds,
        "seconds_to_compile": compiling,
        "load": os.getloadavg()[0],
        "provenance": provenance(),
    }
    print(json.dumps(row, indent=1))
    if store:
        stored = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        RESULT.write_text(json.dumps({**stored, "x".join(map(str, grid)): row}, indent=1) + "\n")


def compiled_step(name: str, grid: tuple[int, ...]) -> Callable[[], object]:
    """A training step of this model."""
    given, target = trajectories(grid, batch=GRIDS[grid][0], frames=GRIDS[grid][1])
    torch.manual_seed(0)
    model = model_config(name, n_dims=len(grid)).for_grid(grid).build()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = torch.compile(lambda: frame_errors(model(given), target).mean(), fullgraph=True, dynamic=False)

    def step() -> None:
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()

    return step


def processor_seconds() -> float:
    """Of this process and those it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    tyro.cli(main)
