"""Temporal memory: a causal S4D or S4 block over the last K frames, at every grid point (the MemNO recipe).

The window is the first K taps of the causal kernel with an empty past, so slot t sees frames t-K+1 ... t, and three
ways to compute it agree: over a whole trajectory at once, over sliding windows, and streaming with the features of the
last K frames kept in a buffer. The output replaces the input: no outer residual.

Axes: b trajectory, t time slot, h channel, p grid point, k age of a frame (0 is now).
"""

from typing import Literal, get_args

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.layers.gate import gate
from ssno.layers.gated import GatedBlock, ScanWeights, gated_scan, mixing_weights
from ssno.layers.modes import require_one_of
from ssno.layers.s4 import S4Block
from ssno.layers.s4d import S4DBlock
from ssno.ssm.scan import Kernels

MemoryKernel = Literal["s4d", "s4"]


class TemporalMemory(nn.Module):
    """Mix each grid point's features over the last `window` frames.

    `kernel` says which system remembers: diagonal ("s4d") or diagonal plus low rank ("s4").
    """

    def __init__(self, channels: int, *, window: int, d_state: int = 64, kernel: MemoryKernel = "s4d"):
        super().__init__()
        if window < 1:
            raise ValueError(f"`window` must be at least 1, got {window}. For a model without memory, leave it out.")
        require_one_of("kernel", kernel, get_args(MemoryKernel))
        self.window = window
        self.block: GatedBlock = (
            S4DBlock(channels, d_state=d_state)
            if kernel == "s4d"
            else S4Block(channels, d_state=d_state, length=window)
        )

    def forward(self, features: Float[Tensor, "b t h *grid"]) -> Float[Tensor, "b t h *grid"]:
        """Every slot of a trajectory at once."""
        columns = features.movedim((2, 1), (0, -1))  # h b *grid t
        return self.columns(columns).movedim((0, -1), (2, 1))

    def taps(self) -> Float[Tensor, "h k"]:
        """The weight of each age of a frame."""
        return self.block.taps(self.window)

    def columns(
        self, features: Float[Tensor, "h *points t"], *, taps: Float[Tensor, "h k"] | None = None
    ) -> Float[Tensor, "h *points t"]:
        """The same with channel first and time last, the layout of `ssno.layers.scan` with frames folded (b, t)."""
        slots = features.shape[-1]
        taps = self.taps() if taps is None else taps
        fitted = functional.pad(taps[:, :slots], (0, max(0, slots - self.window)))
        lines = features.reshape(features.shape[0], -1, slots, 1)
        weights = ScanWeights(Kernels(fitted[None], ("forward",)), *mixing_weights([self.block]))
        return gated_scan([self.block], lines, weights=weights).view(features.shape)

    def newest(
        self, buffer: Float[Tensor, "k h *points"], *, taps: Float[Tensor, "h window"] | None = None
    ) -> Float[Tensor, "h *points"]:
        """Only the newest slot, from a buffer of at most `window` feature maps, oldest first."""
        by_age = (self.taps() if taps is None else taps)[:, : buffer.shape[0]].flip(1).t()  # k h, oldest first
        mixed = (by_age[..., None] * buffer.flatten(2)).sum(dim=0)
        return gate(mixed[:, None], *mixing_weights([self.block])).view(buffer.shape[1:])
