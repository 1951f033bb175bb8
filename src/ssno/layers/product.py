"""Products of scans: the spatial block of SS-NO-product, and memory that adds to what it remembers.

    y   = (kernel_ahead + kernel_back) * x                 one kernel that looks both ways, for each channel
    out = x + (L y + l) tanh(R y + r)                      two pointwise maps of the same scan, multiplied

Each factor is a linear functional of the neighbourhood of a point, so for small values their product is what a
quadratic term of an equation is (u u_x, u . grad w). The tanh keeps large values from growing faster than linearly:
without it forecasts of Burgers' equation run away. SS-NO's gate is GLU(W GELU(scan)) once per direction instead.

Where a line is a circle (a periodic axis, a wall with its mirror image), both kernels are one circular kernel, so a
scan costs half as much as SS-NO's, and the maps do.

Maps start a tenth as large as linear layers usually do. A product of two numbers of size s has size s squared: started
as usual, four blocks in a row overflow on the first step.

Axes: h channel, o and i: what comes before and after the scanned axis, l grid point, b frame, k remembered frame.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.layers.block import DiscretisedKernels
from ssno.layers.memory import TemporalMemory
from ssno.layers.modes import ModeOptions
from ssno.layers.s4d import S4DBlock
from ssno.layers.sweeps import GridScan, PairedScan
from ssno.ssm.kernel import Boundary

START = 0.1
"""How large the maps of a product start, in units of a linear layer's usual start."""


class ProductScan(PairedScan):
    """Scan sequences both ways, add the two, and add the product of two maps of that to the input.

    The blocks' `mix` are the maps, the left one forward and the right one backward: from h channels to h, not to 2h.
    """

    def __init__(
        self, channels: int, *, d_state: int = 64, boundary: Boundary = "zero", options: ModeOptions | None = None
    ):
        super().__init__()
        ahead = S4DBlock(channels, d_state=d_state, direction="forward", boundary=boundary, options=options)
        self.ahead = with_small_map(ahead)
        back = S4DBlock(channels, d_state=d_state, direction="backward", boundary=boundary, options=options)
        self.back = with_small_map(back)

    def lines(self, x: Float[Tensor, "h o l i"], weights: DiscretisedKernels) -> Float[Tensor, "h o l i"]:
        """x + (L y + l) tanh(R y + r)."""
        scanned = two_sided(weights).scan(x)
        y = (scanned[:, 0] if scanned.shape[1] == 1 else scanned.sum(dim=1)).reshape(x.shape[0], -1)
        (left, right), (below, above) = weights.mix, weights.bias
        first, second = torch.addmm(below[:, None], left, y), torch.addmm(above[:, None], right, y)
        return torch.addcmul(x, first.view(x.shape), torch.tanh(second).view(x.shape))


@torch.no_grad()
def with_small_map(block: S4DBlock) -> S4DBlock:
    """The block with a new map of its channels that starts small."""
    channels = block.mix.in_features
    block.mix = nn.Linear(channels, channels)
    block.mix.weight.mul_(START)
    return block


class ProductAxialScan(GridScan):
    """Products of scans along every axis of a grid in turn."""

    def scan(self, channels: int, d_state: int, boundary: Boundary, options: ModeOptions) -> ProductScan:
        """The product of one axis."""
        return ProductScan(channels, d_state=d_state, boundary=boundary, options=options)


def two_sided(weights: DiscretisedKernels) -> DiscretisedKernels:
    """Weights of a two-way scan with both kernels in one, where the line is a circle; elsewhere as they are."""
    if weights.taps is None or not weights.periodic or len(weights.blocks) == 1:
        return weights
    ahead, back = weights.taps
    ends = None if weights.ends is None else weights.ends.sum(1, keepdim=True)
    return weights._replace(blocks=weights.blocks[:1], taps=(ahead + back.flip(-1).roll(1, -1))[None], ends=ends)


class ResidualMemory(TemporalMemory):
    """Temporal memory whose answer is added to the newest features instead of replacing them."""

    def columns(
        self, features: Float[Tensor, "h *points t"], *, weights: DiscretisedKernels | None = None
    ) -> Float[Tensor, "h *points t"]:
        """Every slot, channel first and time last."""
        return features + super().columns(features, weights=weights)

    def newest(
        self, buffer: Float[Tensor, "k h *points"], *, weights: DiscretisedKernels | None = None
    ) -> Float[Tensor, "h *points"]:
        """Only the newest slot."""
        return buffer[-1] + super().newest(buffer, weights=weights)
