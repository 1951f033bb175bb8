"""Memory and time of a training step on cubes of 32^3 to 128^3 points, SS-NO beside FFNO, and how both grow.

    python -m benchmarks.cubes                            measure and print
    python -m benchmarks.cubes --points 16 32             smaller cubes
    python -m benchmarks.cubes --store                    also write results/cubes.json

One trajectory of two frames, three fields; one thread. Models are narrow (8 channels, 2 layers), so that 128^3 points
fit: the exponents are about points, not width. FFNO keeps 16 modes per axis on every grid. Each model on each cube is
measured in a process of its own: memory is the most that the process held during a step, less what it held before;
time is processor time, the least of some steps. The exponents are slopes between neighbouring cubes, over points.
"""

import json
import math
import subprocess
import sys
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import tyro

from ssno.base.memory import held, most_held
from ssno.base.provenance import provenance
from ssno.models.registry import model_config

ROOT = Path(__file__).parents[1]
FIELDS, ROUNDS, AT_MOST = 3, 3, 1.1
MODELS: Mapping[str, Mapping[str, Any]] = {
    "ssno": {"hidden_channels": 8, "head_channels": 16, "n_layers": 2},
    "ffno": {"hidden_channels": 8, "head_channels": 16, "n_layers": 2, "n_modes": 16},
}


def main(points: tuple[int, ...] = (32, 64, 128), rounds: int = ROUNDS, store: bool = False) -> None:
    """Measure every model on every cube, and print bytes, seconds and exponents.

    Args:
        points: Points along each axis, ascending.
        rounds: Steps of which the fastest counts; the first is a warm-up and does not.
        store: Write results/cubes.json.
    """
    rows = []
    for n in points:
        for model in MODELS:
            row = child(model, n, rounds)
            rows.append(row)
            print(f"{model} {n}^3: {row['bytes'] / 2**20:8.0f} MiB {row['seconds']:8.2f} s", flush=True)
    found = exponents(rows)
    for row in found:
        verdict = "met" if row["exponent"] <= AT_MOST else "missed"
        print(
            f"{row['model']} {row['what']} {row['between']}: exponent {row['exponent']:.3f} (<= {AT_MOST}: {verdict})"
        )
    if store:
        what = "one training step, two frames of three fields, one thread; bytes above the process before"
        content = {"what": what, "models": MODELS, "rows": rows, "exponents": found, "date": time.strftime("%Y-%m-%d")}
        (ROOT / "results" / "cubes.json").write_text(
            json.dumps({**content, "provenance": provenance()}, indent=2) + "\n"
        )


def exponents(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Slopes of log bytes and log seconds over log points, from each cube to the next."""
    found = []
    for model in dict.fromkeys(row["model"] for row in rows):
        for small, large in pairwise(row for row in rows if row["model"] == model):
            for what in ("bytes", "seconds"):
                slope = math.log(large[what] / small[what]) / (3 * math.log(large["points"] / small["points"]))
                between = f"{small['points']}^3 to {large['points']}^3"
                found.append({"model": model, "what": what, "between": between, "exponent": slope})
    return found


def child(model: str, points: int, rounds: int) -> dict[str, Any]:
    """Measure in a young process."""
    code = f"import json; from benchmarks.cubes import *; print(json.dumps(measure({model!r}, {points}, {rounds})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{model} on {points}^3 points failed: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(model: str, points: int, rounds: int) -> dict[str, Any]:
    """Bytes and processor seconds of a training step."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = model_config(model, n_dims=3, in_channels=FIELDS, out_channels=FIELDS, **MODELS[model])
    network = config.for_grid((points,) * 3).recommended(periodic=True).build()
    frames = torch.randn(1, 3, FIELDS, points, points, points)
    smallest = (8,) * 3  # memory that it leaves in pools is nothing beside what is measured
    small = config.for_grid(smallest).recommended(periodic=True).build()
    train_step(small, torch.randn(1, 3, FIELDS, *smallest))  # libraries are loaded, kernels compiled
    before, seconds = held(), []
    for _ in range(rounds + 1):
        began = time.process_time()
        train_step(network, frames)
        seconds.append(time.process_time() - began)
    return {"model": model, "points": points, "bytes": most_held() - before, "seconds": min(seconds[1:])}


def train_step(network: torch.nn.Module, frames: torch.Tensor) -> None:
    """Forward, mean-square loss, backward."""
    network.zero_grad()
    (network(frames[:, :-1]) - frames[:, 1:]).square().mean().backward()


if __name__ == "__main__":
    tyro.cli(main)
