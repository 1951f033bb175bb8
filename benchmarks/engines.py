"""How SS-NO computes: the engines that take part in the benchmarks. A new one is one line here."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from ssno.models.operator import NeuralOperator

TRAINING: Mapping[str, Callable[[], AbstractContextManager[object]]] = {"pytorch": nullcontext}
"""Engines of a training step by name: contexts to compute in."""


@torch.no_grad()
def stream(model: NeuralOperator, first_frames: Tensor, steps: int) -> Tensor:
    """Forecast frame after frame, remembering what memory needs."""
    state, frame, forecast = model.start(first_frames), first_frames[:, -1], []
    for _ in range(steps):
        frame, state = model.step(frame, state)
        forecast.append(frame)
    return torch.stack(forecast, dim=1)
