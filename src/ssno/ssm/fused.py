"""The native scan as an operation that autograd knows: y_d = kernel_d * x, keeping x and the kernels only.

Axes: h channel, d direction, o what comes before the scanned axis, l grid point, i what comes after.
"""

from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.native import operations
from ssno.native.library import tiled
from ssno.native.twice import gradients
from ssno.ssm.convolution import Direction, multiply, stacked_matrices

FEW_LINES = 8
"""Below this many lines a direct convolution is faster than building a matrix."""


def fused_scan(
    x: Float[Tensor, "h o l i"], kernels: Float[Tensor, "d h l"], *, backward: int, periodic: bool
) -> Float[Tensor, "h d o l i"]:
    """Scan along l with one kernel per direction; bit d of `backward` turns direction d round."""
    if torch.is_grad_enabled():
        return FusedScan.apply(x, kernels, backward, periodic)
    return computed_scan(x, kernels, backward=backward, periodic=periodic)


def computed_scan(x: Tensor, kernels: Tensor, *, backward: int, periodic: bool) -> Tensor:
    """By a matrix per channel, or directly for a few lines; tiles know by themselves."""
    few = x.shape[1] * x.shape[3] < FEW_LINES
    direct = few and (x.shape[2] > operations.LONGEST_SCAN or not tiled(x.dtype))
    return operations.scan_forward(x, kernels, backward=backward, periodic=periodic, direct=direct)


def plain_scan(x: Tensor, kernels: Tensor, *, backward: int, periodic: bool) -> Tensor:
    """The same written out: a product with the stacked matrices of all directions."""
    channels, outer, length, inner = x.shape
    turned: list[Direction] = ["backward" if backward >> d & 1 else "forward" for d in range(len(kernels))]
    lines = x.transpose(1, 2).reshape(channels, length, outer * inner)
    scanned = multiply(stacked_matrices(kernels, turned, periodic), lines)
    return scanned.unflatten(3, (outer, inner)).transpose(2, 3)


class FusedScan(torch.autograd.Function):
    """`FusedScan.apply(x, kernels, backward, periodic)`, where bit d of `backward` turns direction d round."""

    @staticmethod
    def forward(
        ctx: Any, x: Float[Tensor, "h o l i"], kernels: Float[Tensor, "d h l"], backward: int, periodic: bool
    ) -> Float[Tensor, "h d o l i"]:
        operations.check_length(x.shape[2])  # now, not after a forward pass for nothing
        ctx.save_for_backward(x, kernels)
        ctx.options = {"backward": backward, "periodic": periodic}
        return computed_scan(x, kernels, **ctx.options)

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "h d o l i"]) -> tuple[Tensor | None, ...]:
        x, kernels = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *gradients(partial(plain_scan, **ctx.options), (x, kernels), grad), None, None
        return *operations.scan_backward(x, kernels, grad, **ctx.options), None, None
