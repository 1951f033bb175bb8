"""Temporal memory: a causal S4D or S4 block over the last K frames, at every grid point (as in MemNO).

The window is the first K taps of the causal kernel with an empty past, so slot t sees frames t-K+1 ... t, and three
ways to compute it agree: over a whole trajectory at once, over sliding windows, and streaming with the features of the
last K frames kept in a buffer. The output replaces the input: no outer residual.

Axes: b trajectory, t time slot, h channel, p grid point, k age of a frame (0 is now).
"""

from typing import Literal, get_args

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.base import require_one_of
from ssno.layers.block import DiscretisedKernels, GatedBlock, gated_scan, scan_weights
from ssno.layers.gate import gate
from ssno.layers.modes import ModeOptions
from ssno.layers.s4 import S4Block
from ssno.layers.s4d import S4DBlock
from ssno.native.engine import plain

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
            S4DBlock(channels, d_state=d_state, options=ModeOptions())  # few frames, no waves of a grid
            if kernel == "s4d"
            else S4Block(channels, d_state=d_state, length=window)
        )

    def forward(self, features: Float[Tensor, "b t h *grid"]) -> Float[Tensor, "b t h *grid"]:
        """Every slot of a trajectory at once."""
        columns = features.movedim((2, 1), (0, -1))  # h b *grid t
        return self.columns(columns).movedim((0, -1), (2, 1))

    def weights(self) -> DiscretisedKernels:
        """What the block needs to scan `window` frames."""
        return scan_weights([((self.block,), self.window, 1.0)])[0]

    def columns(
        self, features: Float[Tensor, "h *points t"], *, weights: DiscretisedKernels | None = None
    ) -> Float[Tensor, "h *points t"]:
        """The same with channel first and time last, the layout of `ssno.layers.sweeps` with frames folded (b, t)."""
        slots = features.shape[-1]
        weights = self.weights() if weights is None else weights
        assert weights.taps is not None
        taps = functional.pad(weights.taps[..., :slots], (0, max(0, slots - self.window)))
        lines = features.reshape(features.shape[0], -1, slots, 1)
        return gated_scan(lines, weights._replace(taps=taps)).view(features.shape)

    def newest(
        self, buffer: Float[Tensor, "k h *points"], *, weights: DiscretisedKernels | None = None
    ) -> Float[Tensor, "h *points"]:
        """Only the newest slot, from a buffer of at most `window` feature maps, oldest first."""
        weights = self.weights() if weights is None else weights
        assert weights.taps is not None
        by_age = weights.taps[0, :, : buffer.shape[0]].flip(1).t()  # k h, oldest first
        maps = buffer.flatten(2)
        # A product of matrices is one pass over the maps, as they lie; autocast would lower its digits.
        mixed = (by_age[..., None] * maps).sum(dim=0) if plain() else (by_age.t()[:, None] @ maps.transpose(0, 1))[:, 0]
        return gate(mixed[:, None], weights.mix, weights.bias).view(buffer.shape[1:])
