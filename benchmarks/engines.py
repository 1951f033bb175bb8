"""How models compute: the engines that take part in the benchmarks, and how forecasts are made. One line each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import torch
from torch import Tensor

from ssno.models.frozen import freeze
from ssno.models.operator import MemoryOperator, NeuralOperator
from ssno.native.engine import computing, use

TRAINING: Mapping[str, Callable[[], AbstractContextManager[object]]] = {
    "pytorch": partial(use, "torch"),
    "fused": partial(use, "fused"),
}
"""Engines of a training step by name: contexts to compute in."""


@contextmanager
def in_bf16(model: NeuralOperator) -> Iterator[None]:
    """The fused engine with bfloat16 activations, or autocast where there is none."""
    with use("fused"), computing(model, "bf16"):
        yield


def forecaster(model: NeuralOperator, grid: Sequence[int], *, batch: int) -> Callable[[Tensor, int], Tensor]:
    """A function of first frames and a number of steps that forecasts in the fastest way the model has."""
    if isinstance(model, MemoryOperator) and not model.frames_as_channels:
        return freeze(model, grid=grid, batch=batch).rollout
    return lambda first_frames, steps: stream(model, first_frames, steps)


@torch.no_grad()
def stream(model: NeuralOperator, first_frames: Tensor, steps: int) -> Tensor:
    """Forecast frame after frame, remembering what memory needs."""
    state, frame, forecast = model.start(first_frames), first_frames[:, -1], []
    for _ in range(steps):
        frame, state = model.step(frame, state)
        forecast.append(frame)
    return torch.stack(forecast, dim=1)
