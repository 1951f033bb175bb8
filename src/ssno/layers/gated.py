"""What every S4 block shares: a linear scan of each channel, then a gated mixing of channels.

    y = GLU( W GELU( kernel * x + skip x ) + bias ),      W: h -> 2h,   GLU(a, b) = a sigmoid(b)

Blocks differ in the system behind the kernel: diagonal (`ssno.layers.s4d`), diagonal plus low rank (`ssno.layers.s4`).

Axes: b line, h channel, g = 2h gated channel, d direction, l grid point; o and i: what comes before and after the
scanned axis. `forward` takes (b, h, l) like every sequence layer; models call `gated_scan` with (h, o, l, i), the
layout of a field with its channel first, in which a scan is one matrix product per channel and no copy is made.
"""

import abc
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.layers.gate import gate
from ssno.native.engine import fused
from ssno.ssm.convolution import Direction
from ssno.ssm.kernel import Boundary
from ssno.ssm.scan import Kernels, ScanMethod, choose_scan, scan_kernels


class GatedBlock(nn.Module, abc.ABC):
    """Interface of the S4 blocks, with the part that is the same in all: skip, mixing and gate."""

    direction: Direction = "forward"
    boundary: Boundary = "zero"
    method: ScanMethod = "auto"

    def __init__(self, channels: int):
        super().__init__()
        self.skip = nn.Parameter(torch.randn(channels))
        self.mix = nn.Linear(channels, 2 * channels)

    @abc.abstractmethod
    def kernel(self, length: int, *, spacing: float = 1.0) -> Float[Tensor, "h l"]:
        """The convolution kernel on `length` points, without the skip."""

    def forward(self, x: Float[Tensor, "b h l"], *, spacing: float = 1.0) -> Float[Tensor, "b h l"]:
        """Scan every sequence. `spacing` is the grid spacing in units of the reference one."""
        return gated_scan([self], x.transpose(0, 1)[..., None], spacing=spacing)[..., 0].transpose(0, 1)

    def taps(self, length: int, *, spacing: float = 1.0) -> Float[Tensor, "h l"]:
        """The kernel with the skip as one more tap at distance zero."""
        return with_skip(self.kernel(length, spacing=spacing), self.skip)

    def carried(self, x: Float[Tensor, "h l b"], *, spacing: float = 1.0) -> Float[Tensor, "h l b"] | None:
        """kernel * x + skip x by carrying states along, without any kernel; None for a system that cannot."""
        return None


def with_skip(
    kernel: Float[Tensor, "*systems h l"], skip: Float[Tensor, "*systems h"]
) -> Float[Tensor, "*systems h l"]:
    """Kernels with the skip added at distance zero: the taps of kernel * x + skip x."""
    return torch.cat([kernel[..., :1] + skip[..., None], kernel[..., 1:]], dim=-1)


class ScanWeights(NamedTuple):
    """What one scan needs of its systems: kernels (None: states are to be carried instead), and mixing weights."""

    kernels: Kernels | None
    weight: Float[Tensor, "d g h"]
    bias: Float[Tensor, "d g"]

    def prepared(self, lines: int) -> "ScanWeights":
        """The same, ready for many scans of so many lines each."""
        return self._replace(kernels=self.kernels.prepared(lines)) if self.kernels is not None else self


def gated_scan(
    blocks: Sequence[GatedBlock],
    x: Float[Tensor, "h o l i"],
    *,
    spacing: float = 1.0,
    weights: ScanWeights | None = None,
    copies_of_input: int = 0,
) -> Float[Tensor, "h o l i"]:
    """Scan along l with every block in its direction, gate, and add up: one block, or a forward and a backward one.

    `weights` are the blocks' own, if known already (`ssno.layers.bank` prepares those of a whole model at once).
    """
    channels, outer, length, inner = x.shape
    if weights is None:
        weights = ScanWeights(None, *mixing_weights(blocks))
    if outer > 1 and inner > 1 and not fused(x):  # only native code scans a middle axis as it lies
        lines = x.transpose(1, 2).reshape(channels, 1, length, outer * inner)
        out = gated_scan(blocks, lines, spacing=spacing, weights=weights, copies_of_input=copies_of_input)
        return out.view(channels, length, outer, inner).transpose(1, 2)
    kernels = weights.kernels
    y = _carried(blocks, x, spacing=spacing) if kernels is None else None
    if y is None:
        if kernels is None:
            taps = torch.stack([block.taps(length, spacing=spacing) for block in blocks])
            kernels = Kernels(taps, tuple(block.direction for block in blocks), blocks[0].boundary)
        y = scan_kernels(x, kernels, method=blocks[0].method)
    residual = x.reshape(channels, -1)
    return gate(y.flatten(2), weights.weight, weights.bias, residual=residual, copies=copies_of_input).view(x.shape)


def mixing_weights(blocks: Sequence[GatedBlock]) -> tuple[Float[Tensor, "d g h"], Float[Tensor, "d g"]]:
    """The channel mixing of several blocks, one above the other."""
    return torch.stack([block.mix.weight for block in blocks]), torch.stack([block.mix.bias for block in blocks])


def _carried(
    blocks: Sequence[GatedBlock], x: Float[Tensor, "h o l i"], *, spacing: float
) -> Float[Tensor, "h d o l i"] | None:
    """The linear part of all blocks by carrying states, where that is the way to go and they can."""
    _, outer, length, inner = x.shape
    method, boundary = blocks[0].method, blocks[0].boundary
    if method == "auto":
        method = choose_scan(length, outer * inner, x.device, boundary=boundary)
    if method != "chunked":
        return None
    lines = x.transpose(1, 2).flatten(2)
    scanned = [y for block in blocks if (y := block.carried(lines, spacing=spacing)) is not None]
    return torch.stack(scanned, dim=1).unflatten(3, (outer, inner)).transpose(2, 3) if scanned else None
