"""What SOAP and Muon cost beside AdamW: time per training step, at full width.

    python -m benchmarks.optimisers                 measure, print
    python -m benchmarks.optimisers --store         also write results/optimisers.json

A round times a forward and backward pass, and ten steps of every optimiser on the gradients it left: SOAP updates its
bases in one of ten. The cost of an optimiser is (pass + a tenth of its ten steps) / the same with AdamW, round by
round; medians and quartiles are reported. Exit code 1 if SOAP costs more than 1.1 in one dimension. One thread; run it
on an idle machine.
"""

import json
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import tyro
from torch import nn

from benchmarks.training import trajectories
from ssno.base.atomic_write import write_whole
from ssno.base.device import threads
from ssno.base.provenance import provenance
from ssno.evaluation.cost import Timing, time_interleaved
from ssno.models.registry import model_config
from ssno.runs.options import Optimizer, TrainOptions
from ssno.training.objective import make_optimiser, set_rate

STORE = Path(__file__).parents[1] / "results" / "optimisers.json"
OPTIMISERS: tuple[Optimizer, ...] = ("adamw", "soap", "muon")
STEPS = 10
MOST = 1.1
PASS = "pass"


@dataclass(frozen=True)
class Case:
    """A model of the usual width on a batch of trajectories."""

    model: str
    grid: tuple[int, ...]
    batch: int
    frames: int

    @property
    def name(self) -> str:
        return f"{self.model}-{'x'.join(map(str, self.grid))}-b{self.batch}-t{self.frames}"

    def build(self) -> nn.Module:
        torch.manual_seed(0)
        return model_config(self.model, n_dims=len(self.grid)).for_grid(self.grid).build()


CASES = [
    Case(model, grid, batch, frames)
    for grid, batch, frames in (((64,), 32, 25), ((32, 32), 4, 19))
    for model in ("ssno", "ffno")
]


def measure(case: Case, *, seconds: float) -> dict[str, Any]:
    """Times and costs of all optimisers in one case."""
    given, target = trajectories(case.grid, batch=case.batch, frames=case.frames)
    model = case.build()

    def forward_and_backward() -> None:
        model.zero_grad()
        (model(given) - target).square().mean().backward()

    forward_and_backward()
    runs: dict[str, Callable[[], Any]] = {PASS: forward_and_backward}
    for name in OPTIMISERS:
        runs[name] = ten_steps(model, name)
    times = time_interleaved(runs, budget=seconds, least_rounds=7, warm_up=1)
    found: dict[str, Any] = {"case": case.name, "pass_ms": 1e3 * times[PASS].median, "rounds": len(times[PASS].seconds)}
    for name in OPTIMISERS:
        rounds = zip(times[PASS].seconds, times[name].seconds, times["adamw"].seconds, strict=True)
        cost = Timing(tuple((once + own / STEPS) / (once + adamw / STEPS) for once, own, adamw in rounds))
        step = 1e3 * times[name].median / STEPS
        found[name] = {"step_ms": step, "cost": cost.median, "quartiles": list(cost.quartiles)}
    return found


def ten_steps(model: nn.Module, name: Optimizer) -> Callable[[], None]:
    """Ten steps of an optimiser on a copy of the model with the gradients it has now."""
    own = deepcopy(model)
    for parameter, copied in zip(model.parameters(), own.parameters(), strict=True):
        copied.grad = None if parameter.grad is None else parameter.grad.clone()
    optimiser = make_optimiser(own, TrainOptions(optimizer=name))
    set_rate(optimiser, 1e-6)
    optimiser.step()  # SOAP's first makes its bases

    def run() -> None:
        for _ in range(STEPS):
            optimiser.step()

    return run


def main(*, seconds: float = 40.0, store: bool = False) -> None:
    """Measure all cases, about `seconds` each."""
    with threads(1):
        found = [measure(case, seconds=seconds) for case in CASES]
    for one in found:
        costs = ", ".join(f"{name} {one[name]['cost']:.3f} ({one[name]['step_ms']:.1f} ms)" for name in OPTIMISERS)
        print(f"{one['case']}: pass {one['pass_ms']:.0f} ms; {costs}")
    if store:
        write_whole(STORE, (json.dumps({"cases": found, "provenance": provenance()}, indent=1) + "\n").encode())
    flat = [one["soap"]["cost"] for one, case in zip(found, CASES, strict=True) if len(case.grid) == 1]
    sys.exit(int(max(flat) > MOST))


if __name__ == "__main__":
    tyro.cli(main)
