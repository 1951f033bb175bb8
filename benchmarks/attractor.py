"""Does a model of chaos live on the right attractor? Long forecasts of KS beside the solver's.

    python -m benchmarks.attractor runs/ks-attractor-64                 measure, print
    python -m benchmarks.attractor ks-attractor-64 --store              also write results/ks-attractor.json

Forecasts start from test states of `ks-attractor` (`ssno data generate ks-attractor --preset small`), solver runs from
the same. Measured of both alike: the energy of every wavenumber over long runs, and the largest Lyapunov exponent, the
mean rate at which two nearby states part; these are brought back to the same small distance after every frame
(Benettin). Its error is the standard error over independent trajectories. Exit code 1 if a forecast diverges, energies
are off by more than 5 % (mean over wavenumbers), or the exponent by more than 10 %.
"""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from torch import Tensor

from ssno.base.atomic_write import write_whole
from ssno.base.provenance import provenance
from ssno.data.datasets import build_problem
from ssno.data.load import DataOptions
from ssno.forecasting.divergence import FACTOR
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.metrics import energy_spectrum
from ssno.forecasting.rollout import rollout, stream
from ssno.pde.grids import SpectralGrid
from ssno.pde.integrators import etdrk4
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinskyAttractor
from ssno.pde.stepping import integrate
from ssno.runs.open import open_run

STORE = Path(__file__).parents[1] / "results" / "ks-attractor.json"
DISTANCE = 1e-6
"""Of nearby states, relative to their norm."""
SPECTRUM, EXPONENT = 0.05, 0.1
Step = Callable[[Tensor], Tensor]
"""From states (b, ...) to those one frame later."""


def solver_step(problem: KuramotoSivashinskyAttractor) -> Step:
    """One frame of the solver, from and to fields (b, 1, points of the solver), in float64."""
    grid = SpectralGrid(problem.solver_axes, dealias=True)
    advance = etdrk4(problem.equation(grid, []), problem.dt)

    def step(fields: Tensor) -> Tensor:
        modes = grid.to_modes(fields).clone()
        (after,) = integrate(advance, modes, dt=problem.dt, frames=1, steps_per_frame=problem.steps_per_frame)
        return grid.to_field(after).clone()

    return step


def model_step(forecaster: Forecaster, spacing: tuple[float, ...]) -> Step:
    """One frame of a model, from and to its input frames (b, K, 1, points)."""

    def step(window: Tensor) -> Tensor:
        return torch.cat([window[:, 1:], rollout(forecaster, window, 1, spacing=spacing)], dim=1)

    return step


@torch.no_grad()
def largest_exponent(
    step: Step, states: Tensor, *, frames: int, discarded: int, interval: float
) -> tuple[float, float]:
    """Mean rate at which nearby states part, and its standard error over trajectories."""
    generator = torch.Generator().manual_seed(0)
    apart = torch.randn(states.shape, generator=generator, dtype=states.dtype)
    rates = []
    for frame in range(frames):
        norms = states.flatten(1).norm(dim=1) * DISTANCE
        apart = apart * (norms / apart.flatten(1).norm(dim=1)).view(-1, *([1] * (states.dim() - 1)))
        both = step(torch.cat([states, states + apart]))
        states, apart = both[: len(states)], both[len(states) :] - both[: len(states)]
        if frame >= discarded:
            rates.append(torch.log(apart.flatten(1).norm(dim=1) / norms) / interval)
    each = torch.stack(rates).mean(0)
    return each.mean().item(), (each.std() / math.sqrt(len(each))).item()


def deviations(ours: Tensor, theirs: Tensor) -> dict[str, Any]:
    """How the energies of wavenumbers differ."""
    relative = (ours / theirs - 1).abs()
    both = {"model": ours.tolist(), "solver": theirs.tolist()}
    return {"mean": relative.mean().item(), "largest": relative.max().item(), **both}


@torch.no_grad()
def main(
    run: Annotated[str, tyro.conf.Positional],
    *,
    steps: int = 100_000,
    trajectories: int = 4,
    solver_frames: int = 1000,
    exponent_frames: int = 400,
    store: bool = False,
) -> None:
    """Measure and print; exit code 1 if a bar is missed."""
    data = DataOptions(name="ks-attractor", viscosity=0.1, preset="small").load("test")
    problem = build_problem("ks-attractor", "small")
    assert isinstance(problem, KuramotoSivashinskyAttractor)
    frames = data.read(range(len(data))).state
    forecaster = open_run(run).forecaster
    inputs = forecaster.window.frames_seen
    largest, energies, count, bounded = frames.abs().max().item(), None, 0, steps
    for number, frame in zip(
        range(1, steps + 1), stream(forecaster, frames[:trajectories, :inputs], spacing=data.spacing), strict=False
    ):
        if not frame.isfinite().all() or frame.abs().max() > FACTOR * largest:
            bounded = number - 1
            break
        if number % 10 == 0 and number > 100:
            energy = energy_spectrum(frame[:, None], spacing=data.spacing)[1].mean((0, 1, 2))[1:]
            energies, count = energy if energies is None else energies + energy, count + 1
    found: dict[str, Any] = {"run": Path(run).name, "steps": steps, "trajectories": trajectories, "bounded": bounded}

    fine = torch.from_numpy(
        np.stack([refined(field, problem.solver_points) for field in frames[:, -1].double().numpy()])
    )
    step, states, theirs = solver_step(problem), fine, None
    stride = problem.solver_points // problem.points
    for _ in range(solver_frames):
        states = step(states)
        energy = energy_spectrum(states[:, None, :, ::stride], spacing=data.spacing)[1].mean((0, 1, 2))[1:]
        theirs = energy if theirs is None else theirs + energy
    assert theirs is not None
    if energies is not None:
        found["spectrum"] = deviations(energies / count, theirs / solver_frames)

    exact = open_run(run, precision="float64").forecaster
    options = {"frames": exponent_frames, "discarded": 50, "interval": problem.frame_interval}
    found["exponent_of_solver"] = largest_exponent(step, states, **options)
    window = frames[:, -inputs:].double()
    found["exponent_of_model"] = largest_exponent(model_step(exact, data.spacing), window, **options)
    (ours, _), (solver, _) = found["exponent_of_model"], found["exponent_of_solver"]
    found["exponent_ratio"] = ours / solver
    print(json.dumps({k: v for k, v in found.items() if k != "spectrum"}, indent=1))
    if "spectrum" in found:
        print({name: value for name, value in found["spectrum"].items() if name not in ("model", "solver")})
    if store:
        write_whole(STORE, (json.dumps({**found, "provenance": provenance()}, indent=1) + "\n").encode())
    good = bounded == steps and found["spectrum"]["mean"] <= SPECTRUM and abs(ours / solver - 1) <= EXPONENT
    sys.exit(0 if good else 1)


def refined(field: np.ndarray, points: int) -> np.ndarray:
    """A periodic field (1, l) on a finer grid, by its waves."""
    modes = np.fft.rfft(field)
    modes[..., -1] = 0
    return np.fft.irfft(modes, n=points) * (points / field.shape[-1])


if __name__ == "__main__":
    tyro.cli(main)
