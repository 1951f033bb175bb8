"""Every model in the registry learns: four trajectories of a problem whose solution is known exactly.

u_t + speed . grad u = viscosity lap u     on a periodic square or interval,
u(x, t) = sum over waves k of amplitude exp(-viscosity |k|^2 t) cos(k . (x - speed t) + phase)
"""

import math

import pytest
import torch
from torch import Tensor

from ssno.models.operator import NeuralOperator, count_parameters
from ssno.models.registry import MODELS, model_config

LEARNING = [name for name in MODELS if count_parameters(model_config(f"{name}:tiny").build())]
FRAMES = 7


def travelling_waves(n_dims: int, *, points: int = 16, trajectories: int = 4) -> Tensor:
    """Exact trajectories (b, t, 1, *grid) of advection and diffusion."""
    generator = torch.Generator().manual_seed(3)
    grid = torch.meshgrid(*[2 * math.pi * torch.arange(points) / points] * n_dims, indexing="ij")
    time = 0.3 * torch.arange(FRAMES).view(1, -1, *(1,) * n_dims)
    solution = torch.zeros(trajectories, FRAMES, *(points,) * n_dims)
    waves = [(1, 0), (0, 1), (1, 1), (2, -1)] if n_dims == 2 else [(1,), (2,), (3,)]
    for wave in waves:
        amplitude, phase = (
            torch.rand(2, trajectories, 1, *(1,) * n_dims, generator=generator) * torch.tensor(2 * math.pi)
        ).unbind()
        angle = sum(k * (x - 0.7 * time) for k, x in zip(wave, grid, strict=True))
        decay = torch.exp(-0.1 * sum(k * k for k in wave) * time)
        solution += amplitude / math.pi * decay * torch.cos(angle + phase)
    return solution[:, :, None]


def one_step_pairs(model: NeuralOperator, frames: Tensor) -> tuple[Tensor, Tensor]:
    """What the model takes and should predict: whole trajectories, or every window of frames it stacks."""
    stacked = model.frames_as_channels
    if not stacked:
        return frames[:, :-1], frames[:, 1:]
    windows = [frames[:, start : start + stacked + 1] for start in range(FRAMES - stacked)]
    together = torch.cat(windows)
    return together[:, :-1], together[:, -1:]


def trained_error(
    name: str, *, n_dims: int, steps: int, rate: float, goal: float = 0.0, **fields: str
) -> tuple[float, float]:
    """One-step relative error in evaluation mode, before and after training; it ends early once below `goal`."""
    model = model_config(f"{name}:tiny", n_dims=n_dims, **fields).build()
    given, wanted = one_step_pairs(model, travelling_waves(n_dims))

    def error() -> float:
        model.eval()
        with torch.no_grad():
            relative = ((model(given) - wanted).norm() / wanted.norm()).item()
        model.train()
        return relative

    before = error()
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=rate, total_steps=steps)
    pause = max(20, steps // 20)
    for step in range(steps):
        if step % pause == pause - 1 and error() < goal:
            break
        optimiser.zero_grad()
        (model(given) - wanted).square().mean().backward()
        optimiser.step()
        schedule.step()
    return before, error()


@pytest.mark.parametrize("n_dims", [1, 2])
@pytest.mark.parametrize("name", LEARNING)
def test_eighty_steps_lower_the_one_step_error_fivefold(name, n_dims) -> None:
    before, after = trained_error(name, n_dims=n_dims, steps=80, rate=1e-2, goal=0.19)
    assert after < before / 5


@pytest.mark.verify
@pytest.mark.parametrize("n_dims", [1, 2])
@pytest.mark.parametrize("name", LEARNING)
def test_every_model_overfits_four_trajectories(name, n_dims) -> None:
    # Forward scans alone must be told that the axis is periodic: the first points depend on the last ones.
    fields = {"boundary": "periodic"} if name == "ssno-uni" else {}
    _, after = trained_error(name, n_dims=n_dims, steps=2000, rate=1e-2, goal=1e-2, **fields)
    assert after < 1e-2
