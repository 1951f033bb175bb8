"""The gate that mixes channels after a scan, in four computations that agree to rounding.

    out = r x + sum_d GLU( W_d GELU(y_d) + bias_d )                    W_d: h -> 2h,  GLU(a, b) = a sigmoid(b)

`plain_gate` is written out for PyTorch to differentiate and compile; `GateFunction` has a backward pass that keeps y
alone and works through the positions in pieces that fit the cache; native code (`ssno.native`) does the same,
and so does a kernel for GPUs (`ssno.layers.triton_gate`).

`product` computes the product of two maps of the scans themselves instead, (a_d; b_d) = W_d y_d + bias_d:

    out = r x + sum_d a_d tanh(b_d)

Axes: h channel, g = 2h gated channel, d direction, p position. r counts residuals.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from ssno.native import operations
from ssno.native.engine import by_triton, fused, plain
from ssno.native.operations import gradients

PIECE = 16384
"""Positions handled at a time by `GateFunction`: fastest between 2048 and 16384, steadiest on a busy machine here."""


def gate(
    y: Float[Tensor, "h d p"],
    weight: Float[Tensor, "d g h"],
    bias: Float[Tensor, "d g"],
    *,
    residual: Float[Tensor, "h p"] | None = None,
    residual_weight: int = 0,
    product: bool = False,
) -> Float[Tensor, "h p"]:
    """Gate (or multiply) and sum all directions, and add `residual_weight` times the residual."""
    if not product and by_triton(y, weight, bias):
        from ssno.layers.triton_gate import TritonGate  # where Triton is installed

        return TritonGate.apply(y, weight, bias, residual if residual_weight else None, residual_weight)
    if plain() or (product and not fused(y, weight, bias)):
        return plain_gate(y, weight, bias, residual=residual, residual_weight=residual_weight, product=product)
    residual, y = residual if residual_weight else None, y.contiguous()
    if not torch.is_grad_enabled():
        return computed_gate(y, weight, bias, residual, residual_weight, product)
    return GateFunction.apply(y, weight, bias, residual, residual_weight, product)


def plain_gate(
    y: Tensor,
    weight: Tensor,
    bias: Tensor,
    *,
    residual: Tensor | None = None,
    residual_weight: int = 0,
    product: bool = False,
) -> Tensor:
    """The formula, written out."""
    out = residual_weight * residual if residual_weight and residual is not None else None
    for direction, (matrix, shift) in enumerate(zip(weight, bias, strict=True)):
        scanned = y[:, direction] if product else functional.gelu(y[:, direction])
        mixed = torch.addmm(shift[:, None], matrix, scanned)
        gated = multiplied(mixed) if product else functional.glu(mixed, dim=0)
        out = gated if out is None else out + gated
    assert out is not None, "at least one direction"
    return out


def multiplied(mixed: Float[Tensor, "g p"]) -> Float[Tensor, "h p"]:
    """The first half times the hyperbolic tangent of the second."""
    first, second = mixed.chunk(2)
    return first * torch.tanh(second)


def computed_gate(
    y: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None, residual_weight: int, product: bool = False
) -> Tensor:
    """The formula in native code, or, of gates, piece by piece."""
    if product or fused(y, weight, bias):
        return operations.gate_forward(y, weight, bias, residual, residual_weight, product=product)
    if y.shape[2] <= PIECE:  # one piece: fewer and larger operations
        gated = functional.glu(torch.baddbmm(bias[..., None], weight, functional.gelu(y).transpose(0, 1)), dim=1).sum(0)
        return gated if residual is None else gated.add_(residual, alpha=residual_weight)
    out = torch.mul(residual, residual_weight) if residual is not None else torch.zeros_like(y[:, 0])
    for piece, active, mixed in pieces(y, 1):
        for direction in range(y.shape[1]):
            value, openness = opened(y[:, direction, piece], weight[direction], bias[direction], active, mixed)
            out[:, piece].addcmul_(value, openness)
    return out


def opened(y: Tensor, weight: Tensor, bias: Tensor, active: Tensor, mixed: Tensor) -> tuple[Tensor, Tensor]:
    """Both halves of a gate of one direction, the second one as sigmoid; `active` and `mixed` are filled on the way."""
    torch.ops.aten.gelu.out(y, out=active)
    torch.addmm(bias[:, None], weight, active, out=mixed)
    value, openness = mixed.chunk(2)
    return value, openness.sigmoid_()


class GateFunction(torch.autograd.Function):
    """`gate` with a backward pass that keeps y and the weights, nothing else."""

    @staticmethod
    def forward(
        ctx: Any,
        y: Tensor,
        weight: Tensor,
        bias: Tensor,
        residual: Tensor | None,
        residual_weight: int,
        product: bool = False,
    ) -> Tensor:
        ctx.save_for_backward(y, weight, bias)
        ctx.residual_weight, ctx.product = residual_weight, product
        return computed_gate(y, weight, bias, residual, residual_weight, product)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        y, weight, bias = ctx.saved_tensors
        grad_residual = None
        if ctx.needs_input_grad[3]:
            grad_residual = grad if ctx.residual_weight == 1 else ctx.residual_weight * grad
        if torch.is_grad_enabled():
            plain_form = partial(plain_gate, product=ctx.product)
            return *gradients(plain_form, (y, weight, bias), grad), grad_residual, None, None
        if ctx.product or fused(y, weight, bias):
            return *operations.gate_backward(y, weight, bias, grad, product=ctx.product), grad_residual, None, None
        grad_y, grad_weight, grad_bias = torch.empty_like(y), torch.zeros_like(weight), torch.zeros_like(bias)
        for piece, active, mixed, scratch in pieces(y, 2):
            for direction in range(y.shape[1]):
                here = y[:, direction, piece]
                value, openness = opened(here, weight[direction], bias[direction], active, mixed)
                torch.mul(grad[:, piece], openness, out=scratch)  # gradient of the value
                value.mul_(scratch)
                torch.addcmul(value, value, openness, value=-1, out=openness)  # gradient of the gate
                value.copy_(scratch)
                grad_weight[direction].addmm_(mixed, active.t())
                grad_bias[direction] += mixed.sum(1)
                torch.mm(weight[direction].t(), mixed, out=scratch)
                torch.ops.aten.gelu_backward.grad_input(scratch, here, grad_input=grad_y[:, direction, piece])
        return grad_y, grad_weight, grad_bias, grad_residual, None, None


def pieces(y: Float[Tensor, "h d p"], narrow: int) -> Iterator[tuple[Any, ...]]:
    """Slices of the positions, each with room for one wide (2h) and `narrow` narrow (h) sets of features, reused."""
    channels, _, positions = y.shape
    size = max(1, min(PIECE, positions))  # without positions there is no piece
    buffers = [y.new_empty(rows * size) for rows in (channels, 2 * channels, *[channels] * (narrow - 1))]
    for first in range(0, positions, size):
        count = min(size, positions - first)
        yield (
            slice(first, first + count),
            *(buffer[: buffer.numel() // size * count].view(-1, count) for buffer in buffers),
        )
