"""Whether an exported step computes what PyTorch does.

The step is run beside PyTorch over 50 steps from smooth random states. Two rules, both relative to the size of each
field; if one is broken the file is not kept. Steps after PyTorch's own forecast has diverged are not compared:

    one step      from each of PyTorch's own 50 states the next frame differs by at most 1e-4
    free running  step k differs by at most 1e-4, or, where the forecast itself amplifies errors, by ten times what a
                  start perturbed by 1e-6 changes PyTorch's own step k

Axes: b trajectory, t frame, c field.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ssno.export.step import ForecastStep
from ssno.forecasting.divergence import NEVER, divergence_step, largest_values
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout

CHECKED_STEPS = 50
TOLERANCE = 1e-4
PERTURBATION, AMPLIFIED = 1e-6, 10.0
"""Size of a perturbation in units of each field, and how many times its growth free-running forecasts may differ."""

StepFunction = Callable[[np.ndarray, np.ndarray | None], Sequence[np.ndarray]]
"""(frame, buffer) -> (frames, buffer, buffer after the first step), as far as there are any."""


class ExportMismatch(ValueError):
    """An exported file that does not compute what PyTorch does."""


@dataclass(frozen=True)
class Agreement:
    """How closely an exported file follows PyTorch, relative to the size of each field."""

    steps: int
    """Steps compared: fewer than 50 if PyTorch's own forecast diverges before."""
    one_step: float
    """Largest difference of one step from PyTorch's own states."""
    free_running: float
    """Difference of the last compared step of the free-running forecasts."""
    amplification: float
    """How many times the forecast has enlarged a small perturbation at that step."""


def compare(
    function: StepFunction, forecaster: Forecaster, step: ForecastStep, *, spacing: Sequence[float] | None, batch: int
) -> Agreement:
    """Run both over 50 steps; an `ExportMismatch` if they differ by more than the rules above allow."""
    first, context = smooth_states(forecaster, step, batch=batch)
    many = context[:, :1].expand(-1, first.shape[1] + CHECKED_STEPS + 1, *[-1] * (context.ndim - 2))

    def forecast(start: Tensor) -> np.ndarray:
        known = many if context.shape[2] else None
        return rollout(forecaster, start, CHECKED_STEPS, context=known, spacing=spacing).numpy()

    noise = torch.randn(first.shape, generator=torch.Generator().manual_seed(1))
    size = torch.tensor(forecaster.normalisers.state.scale).view(-1, *(1,) * len(step.grid)).float()
    expected, twin = forecast(first), forecast(first + PERTURBATION * size * noise)
    sizes = field_sizes(expected, size.numpy())
    # Of a diverged forecast nothing is compared: there one step enlarges rounding without limit.
    diverged = divergence_step(torch.from_numpy(expected), largest_values(first))
    steps = int(torch.where(diverged == NEVER, CHECKED_STEPS, diverged).min())
    if not steps:
        raise ExportMismatch("The model's own first step diverges in PyTorch, so there is nothing to compare.")
    known = context[:, 0].numpy()
    forced, free = _exported_steps(function, step, first.numpy(), known, expected)
    forced_error, free_error, growth = (
        relative_differences(found, expected, sizes)[:steps] for found in (forced, free, twin)
    )
    worst = int(np.nanargmax(np.where(np.isfinite(forced_error), forced_error, np.inf)))
    if not forced_error[worst] <= TOLERANCE:
        raise ExportMismatch(
            f"The exported step differs from PyTorch's by {forced_error[worst]:.1e} of a field's size at state "
            f"{worst + 1} of {steps}, more than {TOLERANCE:g}. Nothing was written."
        )
    allowed = np.maximum(TOLERANCE, AMPLIFIED * np.nan_to_num(growth, nan=np.inf))
    if not (late := free_error <= allowed).all():
        at = int(np.argmin(late))
        raise ExportMismatch(
            f"The exported forecast differs from PyTorch's by {free_error[at]:.1e} of a field's size at step {at + 1}, "
            f"more than {allowed[at]:.1e}. Nothing was written."
        )
    return Agreement(steps, float(forced_error[worst]), float(free_error[-1]), float(growth[-1] / PERTURBATION))


def _exported_steps(
    function: StepFunction, step: ForecastStep, first: np.ndarray, context: np.ndarray, expected: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts of the exported step: each from PyTorch's frames, and all from its own."""

    def call(frame: np.ndarray, buffer: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """The frames of one call (b, n, c, *grid), and the buffers after all of them and after the first."""
        found = function(np.concatenate([frame, context], axis=1), buffer)
        frames = found[0] if step.steps > 1 else found[0][:, None]
        return (frames, None, None) if len(found) == 1 else (frames, found[1], found[-1])

    empty = step.empty_buffer(len(first))
    buffer = None if empty is None else empty.numpy()
    for frame in np.moveaxis(first[:, :-1], 1, 0):
        _, _, buffer = call(np.ascontiguousarray(frame), buffer)
    newest = np.ascontiguousarray(first[:, -1])
    own, free = buffer, list[np.ndarray]()
    frame = newest
    while sum(one.shape[1] for one in free) < CHECKED_STEPS:
        frames, own, _ = call(frame, own)
        free.append(frames)
        frame = np.ascontiguousarray(frames[:, -1])
    forced, frame = list[np.ndarray](), newest
    for number in range(CHECKED_STEPS):
        frames, _, buffer = call(frame, buffer)
        forced.append(frames[:, 0])
        frame = np.ascontiguousarray(expected[:, number])
    return np.stack(forced, axis=1), np.concatenate(free, axis=1)[:, :CHECKED_STEPS]


def smooth_states(forecaster: Forecaster, step: ForecastStep, *, batch: int) -> tuple[Tensor, Tensor]:
    """Input frames (b, t, c, *grid) and context fields (b, 1, k, *grid) in physical units: long waves of usual size."""
    generator = torch.Generator().manual_seed(0)
    centre, spread = (0.5, 0.15) if forecaster.normalisers.state.method == "minmax" else (0.0, 1.0)

    def waves(frames: int, channels: int) -> Tensor:
        total = torch.zeros(batch, frames, channels, *step.grid)
        for _ in range(6):
            shape = (batch, 1, channels, *(1,) * len(step.grid))
            phase = 2 * math.pi * torch.rand(shape, generator=generator)
            phase = phase + 0.05 * torch.arange(frames).view(1, -1, 1, *(1,) * len(step.grid))
            for axis, points in enumerate(step.grid):
                number = int(torch.randint(0, 4, (1,), generator=generator))
                line = 2 * math.pi * number * torch.arange(points) / points
                phase = phase + line.view(*(1,) * (3 + axis), -1, *(1,) * (len(step.grid) - axis - 1))
            total = total + torch.sin(phase) / math.sqrt(3)
        return centre + spread * total

    names = forecaster.normalisers.context.fields
    state = forecaster.normalisers.state.decode(waves(step.input_frames, step.fields))
    context = waves(1, len(names))
    if names:
        context = forecaster.normalisers.context.decode(context)
    if forecaster.mask is not None:
        inside = torch.zeros(step.grid)
        inside[tuple(slice(0, max(1, points // 4)) for points in step.grid)] = 1.0
        context[:, :, names.index(forecaster.mask)] = inside
        state = state.masked_fill(inside.bool(), 0.0)
    return state, context


def field_sizes(frames: np.ndarray, scale: np.ndarray) -> Float[np.ndarray, "b t c"]:
    """Root mean square of every field of every frame, at least the spread that it has in training data."""
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.sqrt(np.square(frames, dtype=np.float64).reshape(*frames.shape[:3], -1).mean(-1))
    return np.maximum(np.maximum(size, scale.reshape(-1)), np.finfo(np.float32).tiny)


def relative_differences(found: np.ndarray, expected: np.ndarray, sizes: np.ndarray) -> Float[np.ndarray, " t"]:
    """Root mean square difference of every frame in units of its fields, the largest of all fields and trajectories."""
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = np.subtract(found, expected, dtype=np.float64).reshape(*expected.shape[:3], -1)
        return (np.sqrt(np.square(gaps).mean(-1)) / sizes).max(axis=(0, 2))
