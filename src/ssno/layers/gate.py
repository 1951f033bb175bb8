"""The gate of every S4 block: activate, mix channels, gate, and add up the directions.

    out = copies * residual + sum_d GLU( W_d GELU(y_d) + bias_d ),        GLU(a, b) = a sigmoid(b)

Three ways that agree to rounding: written out for PyTorch to differentiate and compile (`plain_gate`); with a backward
pass that keeps y alone and works through the positions in pieces that fit the cache (`GateFunction`); and the same in
native code (`ssno.native`).

Axes: h channel, d direction, g = 2h gated channel, p position.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ssno.native import operations
from ssno.native.engine import fused, plain

PIECE = 16384
"""Positions handled at a time by `GateFunction`: fastest between 2048 and 16384, steadiest on a busy machine here."""


def gate(
    y: Float[Tensor, "h d p"],
    weight: Float[Tensor, "d g h"],
    bias: Float[Tensor, "d g"],
    *,
    residual: Float[Tensor, "h p"] | None = None,
    copies: int = 0,
) -> Float[Tensor, "h p"]:
    """Gate and sum all directions, and add `copies` of the residual."""
    if plain():
        return plain_gate(y, weight, bias, residual=residual, copies=copies)
    residual = residual if copies else None
    if not torch.is_grad_enabled():
        return computed_gate(y, weight, bias, residual, copies)
    return GateFunction.apply(y, weight, bias, residual, copies)


def plain_gate(
    y: Float[Tensor, "h d p"],
    weight: Float[Tensor, "d g h"],
    bias: Float[Tensor, "d g"],
    *,
    residual: Float[Tensor, "h p"] | None = None,
    copies: int = 0,
) -> Float[Tensor, "h p"]:
    """The formula, written out."""
    out = copies * residual if copies and residual is not None else None
    for direction, (matrix, shift) in enumerate(zip(weight, bias, strict=True)):
        mixed = torch.addmm(shift[:, None], matrix, functional.gelu(y[:, direction]))
        gated = functional.glu(mixed, dim=0)
        out = gated if out is None else out + gated
    assert out is not None, "at least one direction"
    return out


def computed_gate(y: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None, copies: int) -> Tensor:
    """The formula in native code, or piece by piece."""
    y = y.contiguous()
    if fused(y, weight, bias):
        return operations.gate_forward(y, weight, bias, residual, copies)
    if y.shape[2] <= PIECE:  # one piece: fewer and larger operations
        gated = functional.glu(torch.baddbmm(bias[..., None], weight, functional.gelu(y).transpose(0, 1)), dim=1).sum(0)
        return gated if residual is None else gated.add_(residual, alpha=copies)
    out = torch.mul(residual, copies) if residual is not None else torch.zeros_like(y[:, 0])
    for piece, active, mixed in pieces(y, 1):
        for direction in range(y.shape[1]):
            here = y[:, direction, piece]
            torch.ops.aten.gelu.out(here, out=active)
            torch.addmm(bias[direction, :, None], weight[direction], active, out=mixed)
            value, openness = mixed.chunk(2)
            out[:, piece].addcmul_(value, openness.sigmoid_())
    return out


class GateFunction(torch.autograd.Function):
    """`gate` with a backward pass that keeps y and the weights, nothing else."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None, copies: int) -> Tensor:
        y = y.contiguous()
        ctx.save_for_backward(y, weight, bias)
        ctx.copies = copies
        return computed_gate(y, weight, bias, residual, copies)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        y, weight, bias = ctx.saved_tensors
        grad_residual = None
        if ctx.needs_input_grad[3]:
            grad_residual = grad if ctx.copies == 1 else ctx.copies * grad
        if fused(y, weight, bias):
            return *operations.gate_backward(y, weight, bias, grad), grad_residual, None
        grad_y, grad_weight, grad_bias = torch.empty_like(y), torch.zeros_like(weight), torch.zeros_like(bias)
        for piece, active, mixed, scratch in pieces(y, 2):
            for direction in range(y.shape[1]):
                here = y[:, direction, piece]
                torch.ops.aten.gelu.out(here, out=active)
                torch.addmm(bias[direction, :, None], weight[direction], active, out=mixed)
                value, openness = mixed.chunk(2)
                openness.sigmoid_()
                torch.mul(grad[:, piece], openness, out=scratch)  # gradient of the value
                value.mul_(scratch)
                torch.addcmul(value, value, openness, value=-1, out=openness)  # gradient of the gate
                value.copy_(scratch)
                grad_weight[direction].addmm_(mixed, active.t())
                grad_bias[direction] += mixed.sum(1)
                torch.mm(weight[direction].t(), mixed, out=scratch)
                torch.ops.aten.gelu_backward.grad_input(scratch, here, grad_input=grad_y[:, direction, piece])
        return grad_y, grad_weight, grad_bias, grad_residual, None


def pieces(y: Float[Tensor, "h d p"], narrow: int) -> Iterator[tuple[Any, ...]]:
    """Slices of the positions, each with room for one wide (2h) and `narrow` narrow (h) sets of features, reused."""
    channels, _, positions = y.shape
    size = min(PIECE, positions)
    buffers = [y.new_empty(rows * size) for rows in (channels, 2 * channels, *[channels] * (narrow - 1))]
    for first in range(0, positions, size):
        count = min(size, positions - first)
        yield (
            slice(first, first + count),
            *(buffer[: buffer.numel() // size * count].view(-1, count) for buffer in buffers),
        )
