"""Pointwise maps, and the coordinates that enter a model with its fields.

Axes: h channel, p everything else (grid points and frames), n frame.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.native import operations
from ssno.native.engine import fused, plain
from ssno.native.operations import gradients


def coordinates(grid: Sequence[int], axes: Sequence[int], *, like: Tensor) -> Float[Tensor, "axes *grid"]:
    """Relative position along some axes, i / points in [0, 1): the same at every resolution."""
    lines = [torch.arange(points, dtype=like.dtype, device=like.device) / points for points in grid]
    fields = torch.meshgrid(*lines, indexing="ij")
    return torch.stack([fields[axis] for axis in axes])


def with_coordinates(frames: Float[Tensor, "n c *grid"], axes: Sequence[int]) -> Float[Tensor, "n d *grid"]:
    """Append a coordinate channel for each of these axes to every frame."""
    return append(coordinates(frames.shape[2:], axes, like=frames), frames) if axes else frames


def append(fields: Float[Tensor, "a *grid"], frames: Float[Tensor, "n c *grid"]) -> Float[Tensor, "n d *grid"]:
    """Append the same fields to every frame."""
    return torch.cat([frames, fields.expand(frames.shape[0], *fields.shape)], dim=1)


class Pointwise(nn.Linear):
    """A linear map of channels, the same at every point, for tensors whose first axis is the channel."""

    def forward(self, x: Float[Tensor, "c *points"]) -> Float[Tensor, "d *points"]:
        flat = torch.addmm(self.bias[:, None], self.weight, x.reshape(x.shape[0], -1))
        return flat.view(-1, *x.shape[1:])


# The projection at the end of a model: two pointwise maps with an activation between them.
#
#     out = W2 act(W1 x + b1) + b2
#
# The wide features in the middle are the largest tensor of a model, so with GELU the backward pass keeps x alone and
# computes them again, in pieces that fit the cache; native code does the same (`ssno.native`).
#
# Axes: h channel, w wide channel, c field, p position.

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


# Feature-wise linear modulation (FiLM): numbers that belong to a whole frame scale and shift its features.
#
#  x <- (1 + scale) x + shift,   (scale, shift) = W2 gelu(W1 p + b1) + b2   for every channel, after every block
#
# W2 and b2 start at zero, so that a fresh network is the one without modulation.
#
# Axes: n frame, k parameter, l block, h channel.

HIDDEN = 64
"""Width between parameters and scales."""


class Film(nn.Module):
    """From the parameters of a frame to a scale and a shift for every channel of every block."""

    def __init__(self, parameters: int, *, channels: int, blocks: int):
        super().__init__()
        self.blocks, self.channels = blocks, channels
        self.first = nn.Linear(parameters, HIDDEN)
        self.last = nn.Linear(HIDDEN, blocks * 2 * channels)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, parameters: Float[Tensor, "n k"]) -> Float[Tensor, "n l 2 h"]:
        """Scale and shift of every block."""
        return self.last(functional.gelu(self.first(parameters))).view(-1, self.blocks, 2, self.channels)


def modulated(features: Float[Tensor, "h *grid n"], by: Float[Tensor, "n 2 h"]) -> Float[Tensor, "h *grid n"]:
    """Features of every frame, scaled and shifted."""
    shape = (features.shape[0], *(1,) * (features.ndim - 2), features.shape[-1])
    scale, shift = (part.t().reshape(shape).to(features.dtype) for part in by.unbind(1))
    return torch.addcmul(features + shift, features, scale)


def without_means(
    frames: Float[Tensor, "n c *grid"], first: int, *, over_pieces: Callable[[Tensor], Tensor] | None = None
) -> tuple[Float[Tensor, "n c *grid"], Float[Tensor, "n k"]]:
    """Frames whose fields from number `first` on have mean zero over the grid, and these means.

    `over_pieces` takes the mean of the means of pieces.
    """
    known = frames[:, first:]
    means = known.flatten(2).mean(dim=2)
    means = means if over_pieces is None else over_pieces(means)
    rest = known - means.view(*means.shape, *(1,) * (frames.ndim - 2))
    return torch.cat([frames[:, :first], rest], dim=1), means
