"""Streaming for any module: keep the last K inputs and call `forward` on them.

Our own models stream with cached features. A module of the user's needs only
`forward(frames (b, t, c, *grid)) -> (b, t, c_out, *grid)`; this gives it `start` and `step`.
"""

from typing import Any

import torch
from torch import Tensor, nn

from ssno.models.operator import OperatorState, Spacing


class Windowed(nn.Module):
    """A module with `forward` alone, made to stream over a window of the last `size` frames."""

    def __init__(self, module: nn.Module, *, size: int):
        super().__init__()
        self.module = module
        self.size = max(1, size)

    def forward(self, frames: Tensor, **options: Any) -> Tensor:
        return self.module(frames, **options)

    def start(self, first_frames: Tensor, *, spacing: Spacing = None) -> OperatorState:
        """Keep the given frames but the newest."""
        return OperatorState(first_frames[:, :-1][:, -self.size :], spacing)

    def step(self, frame: Tensor, state: OperatorState) -> tuple[Tensor, OperatorState]:
        """Append the newest frame, predict, forget the oldest."""
        frames = torch.cat([state.buffer, frame[:, None]], dim=1)[:, -self.size :]
        options = {} if state.spacing is None else {"spacing": state.spacing}
        return self.module(frames, **options)[:, -1], OperatorState(frames, state.spacing)
