"""Temporal memory: a causal S4D block over the last K frames, at every grid point (the MemNO recipe).

The window is the first K taps of the causal kernel with an empty past, so slot t sees frames t-K+1 ... t, and three
ways to compute it agree: over a whole trajectory at once, over sliding windows, and streaming with the features of the
last K frames kept in a buffer. The output replaces the input: no outer residual.

Axes: b trajectory, t time slot, h channel, p grid point, k age of a frame (0 is now).
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.layers.modes import ModeOptions
from ssno.layers.s4d import S4DBlock
from ssno.ssm.convolution import toeplitz


class TemporalMemory(nn.Module):
    """Mix each grid point's features over the last `window` frames."""

    def __init__(self, channels: int, *, window: int, d_state: int = 64, options: ModeOptions | None = None):
        super().__init__()
        if window < 1:
            raise ValueError(f"`window` must be at least 1, got {window}. For a model without memory, leave it out.")
        self.window = window
        self.block = S4DBlock(channels, d_state=d_state, options=options)

    def forward(self, features: Float[Tensor, "b t h *grid"]) -> Float[Tensor, "b t h *grid"]:
        """Every slot of a trajectory at once."""
        columns = features.movedim((2, 1), (0, -1))  # h b *grid t
        return self.columns(columns).movedim((0, -1), (2, 1))

    def columns(self, features: Float[Tensor, "h *points t"]) -> Float[Tensor, "h *points t"]:
        """The same with channel first and time last, the layout of `ssno.layers.scan` with frames folded (b, t)."""
        slots = features.shape[-1]
        matrix = toeplitz(torch.nn.functional.pad(self.taps(min(slots, self.window)), (0, max(0, slots - self.window))))
        lines = features.reshape(features.shape[0], -1, slots)
        return self.block.activate(lines @ matrix.transpose(1, 2)).view(features.shape)

    def newest(self, buffer: Float[Tensor, "k h *points"]) -> Float[Tensor, "h *points"]:
        """Only the newest slot, from a buffer of at most `window` feature maps, oldest first."""
        weights = self.taps(buffer.shape[0]).flip(1)  # h k, oldest first
        mixed = torch.einsum("hk,kh...->h...", weights, buffer)
        return self.block.activate(mixed)

    def taps(self, count: int) -> Float[Tensor, "h k"]:
        """The first `count` weights over age, the skip included."""
        kernel = self.block.modes.kernel(count)
        return torch.cat([kernel[:, :1] + self.block.skip[:, None], kernel[:, 1:]], dim=1)
