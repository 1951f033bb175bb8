"""The projection at the end of a model: two pointwise maps with an activation between them.

    out = W2 act(W1 x + b1) + b2

The wide features in the middle are the largest tensor of a model, so with GELU the backward pass keeps x alone and
computes them again, in pieces that fit the cache; native code does the same (`ssno.native`).

Axes: h channel, w wide channel, c field, p position.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.layers.pointwise import Pointwise
from ssno.native import operations
from ssno.native.engine import fused, plain
from ssno.native.twice import gradients

PIECE = 16384
"""Positions handled at a time, as in `ssno.layers.block`."""


class ChannelMLP(nn.Module):
    """Two pointwise maps with an activation between them: features to output fields."""

    def __init__(
        self, channels: int, *, hidden: int, out_channels: int, activation: Callable[[Tensor], Tensor] = functional.gelu
    ):
        super().__init__()
        self.activation = activation
        self.widen = Pointwise(channels, hidden)
        self.narrow = Pointwise(hidden, out_channels)

    def forward(self, features: Float[Tensor, "h *points"]) -> Float[Tensor, "c *points"]:
        if plain() or self.activation is not functional.gelu:
            return self.narrow(self.activation(self.widen(features)))
        flat = features.reshape(features.shape[0], -1)
        weights = (self.widen.weight, self.widen.bias, self.narrow.weight, self.narrow.bias)
        if torch.is_grad_enabled():
            return HeadFunction.apply(flat, *weights).view(-1, *features.shape[1:])
        return computed_head(flat, *weights).view(-1, *features.shape[1:])


def computed_head(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """The formula in native code, or piece by piece."""
    if fused(x, w1, b1, w2, b2):
        return operations.head_forward(x, w1, b1, w2, b2)
    out = x.new_empty(w2.shape[0], x.shape[1])
    for part, room in zip(x.split(PIECE, dim=1), out.split(PIECE, dim=1), strict=True):
        room.copy_(plain_head(part, w1, b1, w2, b2))
    return out


def plain_head(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """The formula, written out."""
    return torch.addmm(b2[:, None], w2, functional.gelu(torch.addmm(b1[:, None], w1, x)))


class HeadFunction(torch.autograd.Function):
    """w2 GELU(w1 x + b1) + b2 with a backward pass that keeps x and the weights, nothing else."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        ctx.save_for_backward(x, w1, b1, w2, b2)
        return computed_head(x, w1, b1, w2, b2)

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "c p"]) -> tuple[Tensor | None, ...]:
        x, w1, b1, w2, b2 = ctx.saved_tensors
        if torch.is_grad_enabled():
            return gradients(plain_head, (x, w1, b1, w2, b2), grad)
        if fused(x, w1, b1, w2, grad):
            return operations.head_backward(x, w1, b1, w2, grad)
        grad_x, *sums = torch.empty_like(x), *(torch.zeros_like(tensor) for tensor in (w1, b1, w2))
        grad_w1, grad_b1, grad_w2 = sums
        for part, room, given in zip(*(t.split(PIECE, dim=1) for t in (x, grad_x, grad)), strict=True):
            wide = torch.addmm(b1[:, None], w1, part)
            grad_w2.addmm_(given, functional.gelu(wide).t())
            grad_wide = torch.ops.aten.gelu_backward(w2.t() @ given, wide)
            grad_w1.addmm_(grad_wide, part.t())
            grad_b1 += grad_wide.sum(1)
            room.copy_(w1.t() @ grad_wide)
        return grad_x, grad_w1, grad_b1, grad_w2, grad.sum(1)
