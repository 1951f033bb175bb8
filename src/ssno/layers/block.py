"""What every S4 block is: a linear scan of each channel, then a gate that mixes channels.

    y_d = kernel_d * x + skip_d x                                      the scan, once per direction d
    out = r x + sum_d GLU( W_d GELU(y_d) + bias_d )                    the gate; W_d: h -> 2h,  GLU(a, b) = a sigmoid(b)

Blocks differ in the system behind the kernel: diagonal (`ssno.layers.memory`), diagonal plus low rank
(`ssno.layers.memory`). One block scans in one direction; a forward and a backward one share a scan
(`ssno.layers.axial`). r counts residuals.

How gates are computed: `ssno.layers.gate`. In native code scan and gate share one backward pass (`GatedScanFunction`).

Axes: b line, h channel, g = 2h gated channel, d direction, l grid point, p position; o and i: what comes before and
after the scanned axis. `forward` takes (b, h, l) like every sequence layer; models call `gated_scan` with (h, o, l, i),
the layout of a field with its channel first, in which a scan is one matrix product per channel and no copy is made.
"""

import abc
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.layers.gate import gate, plain_gate
from ssno.native import operations
from ssno.native.engine import fused, no_autocast
from ssno.native.operations import gradients
from ssno.ssm.convolution import Direction
from ssno.ssm.kernel import LINEAR_CONVOLUTION, Boundary
from ssno.ssm.resolution import Sampling, Transfer, choose_sampling, extended, fit_taps
from ssno.ssm.scan import (
    ScanMethod,
    carries_states,
    choose_for_taps,
    computed_scan,
    plain_scan,
    prepared_taps,
    scan_taps,
    turned_round,
    with_skip,
)


class GatedBlock(nn.Module, abc.ABC):
    """Interface of the S4 blocks, with the part that is the same in all: skip, mixing and gate."""

    direction: Direction = "forward"
    boundary: Boundary = "zero"
    transfer: Transfer = "spectrum"
    method: ScanMethod = "auto"

    def __init__(self, channels: int):
        super().__init__()
        self.skip = nn.Parameter(torch.randn(channels))
        self.mix: nn.Linear | None = nn.Linear(channels, 2 * channels)
        """None where only the scan is wanted."""

    @property
    def blocks(self) -> tuple["GatedBlock", ...]:
        """This block alone, as a scan with one direction."""
        return (self,)

    @abc.abstractmethod
    def kernel(self, length: int, *, spacing: float = 1.0) -> Float[Tensor, "h l"]:
        """The convolution kernel on `length` points, without the skip."""

    def sampled_alike(self) -> Hashable:
        """What blocks of this kind share if their kernels can be sampled together."""
        return self.boundary

    @classmethod
    def kernels(cls, blocks: Sequence[Any], length: int, *, spacing: float = 1.0) -> Float[Tensor, "s h l"]:
        """The kernels of several blocks of this kind that are `sampled_alike`."""
        return torch.stack([block.kernel(length, spacing=spacing) for block in blocks])

    def forward(self, x: Float[Tensor, "b h l"], *, spacing: float = 1.0) -> Float[Tensor, "b h l"]:
        """Scan every sequence. `spacing` is the grid spacing in units of the reference one."""
        (weights,) = scan_weights([((self,), x.shape[-1], spacing)])
        return gated_scan(x.transpose(0, 1)[..., None], weights)[..., 0].transpose(0, 1)

    def taps(self, length: int, *, spacing: float = 1.0) -> Float[Tensor, "h l"]:
        """The kernel with the skip as one more tap at distance zero."""
        return with_skip(self.kernel(length, spacing=spacing), self.skip)

    def with_ends(self, weights: "DiscretisedKernels", length: int) -> "DiscretisedKernels":
        """The weights of a scan with the contribution of values assumed outside a line: here none."""
        return weights


class CarryingBlock(GatedBlock):
    """Interface of the blocks that can also carry their states from point to point, without any kernel."""

    @abc.abstractmethod
    def carried(self, x: Float[Tensor, "h l b"], *, spacing: float = 1.0) -> Float[Tensor, "h l b"]:
        """The scan and skip x, by carrying states along."""


class DiscretisedKernels(NamedTuple):
    """What one scan needs of its blocks (one, or one per direction) on axes of one length and spacing."""

    blocks: tuple[GatedBlock, ...]
    sampling: Sampling
    taps: Float[Tensor, "d h l"] | None
    """None on an axis so long that states are carried along instead."""
    mix: Float[Tensor, "d g h"]
    """Empty where only the scan is wanted; so is `bias`."""
    bias: Float[Tensor, "d g"]
    matrix: Tensor | None = None
    """The taps as stacked matrices or spectra, for repeated use."""
    ends: Float[Tensor, "h d l"] | None = None
    """What a learned value outside a line adds to its scan."""
    turned: Any = None
    """Lines in several processes are made whole by this `TurnedLines` first (`ssno.layers.space`),"""
    carried: Any = None
    """or scanned in pieces by this `CarriedStates`."""

    def directions(self) -> tuple[Direction, ...]:
        return tuple(block.direction for block in self.blocks)

    def periodic(self) -> bool:
        return self.blocks[0].boundary not in LINEAR_CONVOLUTION or self.sampling.extension is not None

    def with_taps(self, taps: Float[Tensor, "d h l"]) -> "DiscretisedKernels":
        """The same scan with other taps. PyTorch 2.8 cannot compile `_replace`, nor properties of a named tuple."""
        return DiscretisedKernels(self.blocks, self.sampling, taps, self.mix, self.bias, self.matrix, self.ends)

    def scan(self, x: Float[Tensor, "h o l i"]) -> Float[Tensor, "h d o l i"]:
        """kernel * x + skip x along l, with every block in its direction."""
        if self.carried is not None:
            return self.carried.scan(x)
        channels, outer, length, inner = x.shape
        copies, extension = self.sampling.copies, self.sampling.extension
        if copies > 1:  # each copy of the learned grid by itself: its points are `copies` apart
            x = x.reshape(channels, outer, length // copies, copies * inner)
        x = extended(x, extension)
        if self.taps is None:
            lines = x.transpose(1, 2).flatten(2)
            whole = lines.to(self.blocks[0].skip.dtype)
            carrying = (block for block in self.blocks if isinstance(block, CarryingBlock))
            carried = torch.stack([b.carried(whole, spacing=self.sampling.spacing) for b in carrying], dim=1)
            y = carried.to(x.dtype).unflatten(3, (outer, -1)).transpose(2, 3)
        else:
            method = self.blocks[0].method
            y = scan_taps(x, self.taps, self.directions(), periodic=self.periodic(), method=method, matrix=self.matrix)
        y = y if extension is None else y[:, :, :, : y.shape[3] // 2]
        y = y.reshape(channels, -1, outer, length, inner)
        return y if self.ends is None else y + self.ends[:, :, None, :, None].to(y.dtype)

    def scanned_natively(self, x: Float[Tensor, "h o l i"]) -> bool:
        """Whether native code takes lines of x as they are, with kernels as long as they."""
        whole = self.sampling.copies == 1 and self.sampling.extension is None and self.matrix is None
        whole = whole and self.carried is None
        if self.taps is None or self.ends is not None or not whole or self.blocks[0].method not in ("auto", "fused"):
            return False
        lines = x.shape[1] * x.shape[3]
        return fused(x, self.taps, self.mix, self.bias) and choose_for_taps(self.taps, lines) == "fused"

    def prepared(self, lines: int) -> "DiscretisedKernels":
        """The same, prepared for repeated scans of `lines` lines."""
        if self.taps is None:
            return self
        return self._replace(matrix=prepared_taps(self.taps, self.directions(), periodic=self.periodic(), lines=lines))


def scan_weights(scans: Sequence[tuple[Sequence[GatedBlock], int, float]]) -> list[DiscretisedKernels]:
    """Weights for scans given as (blocks, length, spacing), in order; the kernels of like blocks are sampled together.

    A kernel costs little, but many small operations; sixteen of them cost sixteen times as many.
    """
    blocks = [block for scan, _, _ in scans for block in scan]
    if blocks[0].skip.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"The weights of a scan must be float32 or float64, got {blocks[0].skip.dtype}: kernels are sampled in "
            "them. For activations of fewer bits leave the weights as they are and use `torch.autocast`."
        )
    with no_autocast(blocks[0].skip.device):
        return _sampled(scans)


def _sampled(scans: Sequence[tuple[Sequence[GatedBlock], int, float]]) -> list[DiscretisedKernels]:
    blocks = [block for scan, _, _ in scans for block in scan]
    maps = [block.mix for block in blocks if block.mix is not None]
    sizes = [sum(block.mix is not None for block in scan) for scan, _, _ in scans]
    mixes = torch.stack([one.weight for one in maps]).split(sizes)
    biases = torch.stack([one.bias for one in maps]).split(sizes)
    samplings = [_sampling(scan[0], length, spacing) for scan, length, spacing in scans]
    groups: dict[Any, list[int]] = {}
    for index, ((scan, _, _), sampling) in enumerate(zip(scans, samplings, strict=True)):
        if not _carries(scan[0], sampling):
            groups.setdefault((type(scan[0]), sampling, scan[0].sampled_alike()), []).append(index)
    taps: list[Tensor | None] = [None] * len(scans)
    for (kind, sampling, _), members in groups.items():
        alike = [block for index in members for block in scans[index][0]]
        kernels = kind.kernels(alike, sampling.points, spacing=sampling.spacing)
        sampled = with_skip(kernels, torch.stack([block.skip for block in alike]))
        fitting = fit_taps(sampled, sampling).split([len(scans[index][0]) for index in members])
        for index, part in zip(members, fitting, strict=True):
            taps[index] = part
    return [
        scan[0].with_ends(DiscretisedKernels(tuple(scan), *parts), length)
        for (scan, length, _), *parts in zip(scans, samplings, taps, mixes, biases, strict=True)
    ]


def _sampling(block: GatedBlock, length: int, spacing: float) -> Sampling:
    sampling = choose_sampling(length, spacing, boundary=block.boundary, transfer=block.transfer)
    if sampling.length is not None and _carries(block, sampling):
        return Sampling(length, spacing)  # without a kernel there is no spectrum to continue
    return sampling


def _carries(block: GatedBlock, sampling: Sampling) -> bool:
    asked = block.method == "chunked" or (block.method == "auto" and carries_states(sampling.points, block.boundary))
    return asked and isinstance(block, CarryingBlock)


def gated_scan(
    x: Float[Tensor, "h o l i"], weights: DiscretisedKernels, *, residual_weight: int = 0
) -> Float[Tensor, "h o l i"]:
    """Scan along l with every block in its direction, gate, add up, and add `residual_weight` times x."""
    if weights.turned is not None:
        on_lines = partial(gated_scan, weights=weights._replace(turned=None), residual_weight=residual_weight)
        return weights.turned.through(on_lines, x)
    channels, outer, length, inner = x.shape
    if outer > 1 and inner > 1 and not fused(x):  # only native code scans a middle axis as it lies
        lines = x.transpose(1, 2).reshape(channels, 1, length, outer * inner)
        out = gated_scan(lines, weights, residual_weight=residual_weight)
        return out.view(channels, length, outer, inner).transpose(1, 2)
    if torch.is_grad_enabled() and weights.scanned_natively(x):
        turned, taps = turned_round(weights.directions()), weights.taps
        return GatedScanFunction.apply(x, taps, weights.mix, weights.bias, turned, weights.periodic(), residual_weight)
    residual = x.reshape(channels, -1)
    out = gate(
        weights.scan(x).flatten(2), weights.mix, weights.bias, residual=residual, residual_weight=residual_weight
    )
    return out.view(x.shape)


class GatedScanFunction(torch.autograd.Function):
    """Scan and gate in native code, with one backward pass that adds the residual's gradient on the way."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        taps: Tensor,
        weight: Tensor,
        bias: Tensor,
        turned: int,
        periodic: bool,
        residual_weight: int,
    ) -> Tensor:
        y = computed_scan(x, taps, backward=turned, periodic=periodic)
        ctx.save_for_backward(x, y, taps, weight, bias)
        ctx.options, ctx.residual_weight = {"backward": turned, "periodic": periodic}, residual_weight
        residual = x.reshape(x.shape[0], -1) if residual_weight else None
        return operations.gate_forward(y.flatten(2), weight, bias, residual, residual_weight).view(x.shape)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, y, taps, weight, bias = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *gradients(partial(_plain_gated_scan, ctx), (x, taps, weight, bias), grad), None, None, None
        found = operations.gate_backward(y.flatten(2), weight, bias, grad.reshape(grad.shape[0], -1))
        residual = grad.reshape(x.shape) if ctx.residual_weight else None
        grad_x, grad_taps = operations.scan_backward(
            x, taps, found.y.view(y.shape), **ctx.options, residual=residual, copies=ctx.residual_weight
        )
        return grad_x, grad_taps, found.weight, found.bias, None, None, None


def _plain_gated_scan(ctx: Any, x: Tensor, taps: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    y = plain_scan(x, taps, **ctx.options).flatten(2)
    residual = x.reshape(x.shape[0], -1)
    return plain_gate(y, weight, bias, residual=residual, residual_weight=ctx.residual_weight).view(x.shape)
