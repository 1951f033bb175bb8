"""What other geometries cost: shallow water on the sphere, clouds around aerofoils, steps of their models.

`python -m benchmarks.geometries` writes results/geometries.json: CPU seconds of one thread, the least of a few rounds;
making the kt-foil dataset is timed on the clock, with two processes. A minute on an idle machine.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from ssno.base.provenance import provenance
from ssno.layers.memory import MemoryOptions
from ssno.models.baselines.sfno import SFNOConfig
from ssno.models.slices import SSNOSlicesConfig, TransolverConfig
from ssno.models.ssno_sphere import SphereSSNOConfig
from ssno.paper.airfoils import GRID_MODES, SMALL
from ssno.pde.problems.shallow_water import ShallowWater
from ssno.pde.sphere import ShallowWaterEquations

RESULT = Path(__file__).parents[1] / "results" / "geometries.json"
SPECIFIED = {32: (4.9e-5, 0.015), 64: (2.5e-4, 0.15), 128: (1e-3, 1.2)}
"""CPU seconds of one right-hand side and of 100 frames by the public scheme, per trajectory, by rings of the grid."""
BATCHES = {32: 32, 64: 4, 128: 8}


def cpu_seconds(run: Callable[[], object], *, rounds: int) -> float:
    """The least CPU time of some rounds, after one that does not count."""
    run()
    found = []
    for _ in range(rounds):
        begin = time.process_time()
        run()
        found.append(time.process_time() - begin)
    return min(found)


def solver_seconds() -> dict[str, dict[str, float]]:
    """Shallow water, per trajectory: a right-hand side; 100 frames as coefficients; the same on the stored grid."""
    found = {}
    for nlat, batch in BATCHES.items():
        problem = ShallowWater(nlat=nlat, frames=101 if nlat < 128 else 11)
        drawn = [problem.draw(np.random.default_rng(seed)) for seed in range(batch)]
        equations = ShallowWaterEquations(problem.degrees)
        state = torch.stack([problem.initial_state(one, equations) for one in drawn], dim=3)
        per_frame = 100 / (problem.frames - 1)
        block = drawn[: problem.block]
        rate, modes, stored = (
            cpu_seconds(partial(equations.rate, state), rounds=10) / batch,
            cpu_seconds(partial(problem.coefficients, block), rounds=1) / len(block) * per_frame,
            cpu_seconds(partial(problem.solve, block), rounds=1) / len(block) * per_frame,
        )
        names = ("rate", "rate, specified", "100 frames", "100 frames, specified", "100 frames, stored")
        numbers = (rate, SPECIFIED[nlat][0], modes, SPECIFIED[nlat][1], stored)
        found[f"{nlat} x {2 * nlat}"] = dict(zip(names, numbers, strict=True))
    return found


def step_seconds(model: torch.nn.Module, frames: torch.Tensor, *, rounds: int = 5) -> float:
    """Forward and backward."""

    def step() -> None:
        model.zero_grad(set_to_none=True)
        model(frames).square().mean().backward()

    return cpu_seconds(step, rounds=rounds)


def sphere_steps() -> dict[str, float]:
    """Training steps of ten frames of the models of experiment `swe`."""
    axes = SphereSSNOConfig(memory=MemoryOptions(window=0), hidden_channels=32, d_state=32, head_channels=128)
    circles = replace(axes, scans="great-circles")
    models = {"sfno": SFNOConfig(residual=False), "ssno-sphere, axes": axes, "ssno-sphere, great circles": circles}
    frames = torch.randn(1, 10, 3, 32, 64)
    return {name: step_seconds(model.build(), frames) for name, model in models.items()}


def slice_steps() -> dict[str, dict[str, float]]:
    """Training steps on clouds, small as in experiment `airfoils` and in the published size."""
    found: dict[str, dict[str, float]] = {}
    scans = SSNOSlicesConfig(**SMALL, d_state=16, modes=GRID_MODES)  # type: ignore[arg-type]
    sizes = {
        "4 x 256 points, width 64": (TransolverConfig(**SMALL), scans, torch.randn(4, 1, 8, 256)),  # type: ignore[arg-type]
        "2,048 points, published size": (TransolverConfig(), SSNOSlicesConfig(), torch.randn(1, 1, 8, 2048)),
    }
    for size, (attention, linear, cloud) in sizes.items():
        models = {"attention": attention, "scan": linear, "selective": replace(linear, scan="selective")}
        found[size] = {name: step_seconds(model.build(), cloud, rounds=3) for name, model in models.items()}
    return found


def foil_seconds() -> dict[str, float]:
    """`ssno data generate kt-foil --preset small` in two processes, on the clock, start of Python included."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        command = [sys.executable, "-m", "ssno", "data", "generate", "kt-foil", "--preset", "small"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        return {"seconds": time.perf_counter() - begin, "asked": 10.0}


def main() -> None:
    """Measure everything and write it down."""
    torch.set_num_threads(1)
    found = {
        "kt-foil small": foil_seconds(),
        "shallow water": solver_seconds(),
        "steps on the sphere": sphere_steps(),
        "steps on clouds": slice_steps(),
        "provenance": provenance(),
    }
    RESULT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
