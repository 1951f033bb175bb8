"""Attention factorised over the axes of a grid, the layer of Factformer.

Each axis has its own attention kernel, computed from features averaged over the other axes, and the kernels act on the
values one after the other:

    kernel_a[i, j] = rotated(q_a[i]) . rotated(k_a[j]),    out = kernel_d ... kernel_1 v        (per head)

There is no softmax and no scaling; a normalisation per head follows instead. Rotating queries and keys by angles in
proportion to their coordinate makes the kernel depend on distance.

Axes: n frame, *grid, h channel, s head, d channel of a head, i and j points along one axis.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

ROTATION_SCALE = 64.0
"""Coordinates are multiplied by this before they become angles."""


class FactorisedAttention(nn.Module):
    """Attention over a whole grid through one kernel per axis; the caller adds the residual."""

    def __init__(self, channels: int, *, axes: int, heads: int, head_channels: int):
        super().__init__()
        self.heads = heads
        inner = heads * head_channels
        self.norm = nn.LayerNorm(channels)
        self.values = nn.Linear(channels, inner, bias=False)
        self.project = nn.Linear(channels, channels, bias=False)
        self.reduce = nn.ModuleList(AxisFeatures(channels) for _ in range(axes))
        self.queries = nn.ModuleList(nn.Linear(channels, inner, bias=False) for _ in range(axes))
        self.keys = nn.ModuleList(nn.Linear(channels, inner, bias=False) for _ in range(axes))
        for linear in [*self.queries, *self.keys]:
            nn.init.xavier_uniform_(linear.weight, gain=0.02)
        self.mix = nn.Sequential(
            nn.Linear(inner, channels, bias=False), nn.GELU(), nn.Linear(channels, channels, bias=False)
        )

    def forward(
        self, u: Float[Tensor, "n *grid h"], coordinates: list[Float[Tensor, " _"]]
    ) -> Float[Tensor, "n *grid h"]:
        """Attend along every axis; `coordinates` holds the positions along each."""
        u = self.norm(u)
        v = self.values(u).unflatten(-1, (self.heads, -1)).movedim(-2, 1)  # n s *grid d
        projected = self.project(u)
        for axis, where in enumerate(coordinates):
            kernel = self.kernel(projected, axis, where)
            lines = v.movedim(2 + axis, 2)  # n s i *rest d
            v = (kernel @ lines.flatten(3)).view(lines.shape).movedim(2, 2 + axis)
        v = functional.layer_norm(v, v.shape[2:], eps=1e-8)
        return self.mix(v.movedim(1, -2).flatten(-2))

    def kernel(
        self, projected: Float[Tensor, "n *grid h"], axis: int, where: Float[Tensor, " i"]
    ) -> Float[Tensor, "n s i i"]:
        """The attention kernel along one axis."""
        sequence = self.reduce[axis](projected, axis)
        query, key = (
            rotated(linear(sequence).unflatten(-1, (self.heads, -1)).transpose(1, 2), where)
            for linear in (self.queries[axis], self.keys[axis])
        )
        return query @ key.transpose(-1, -2)


class AxisFeatures(nn.Module):
    """Features along one axis of a grid: project, average over the other axes, normalise, gated network."""

    def __init__(self, channels: int):
        super().__init__()
        self.project = nn.Linear(channels, channels, bias=False)
        self.norm = nn.LayerNorm(channels)
        self.widen = nn.Linear(channels, 2 * channels)
        self.narrow = nn.Linear(channels, channels)

    def forward(self, u: Float[Tensor, "n *grid h"], axis: int) -> Float[Tensor, "n i h"]:
        others = tuple(dim for dim in range(1, u.ndim - 1) if dim != 1 + axis)
        projected = self.project(u)
        sequence = self.norm(projected.mean(dim=others) if others else projected)
        gate, value = self.widen(sequence).chunk(2, dim=-1)
        return self.narrow(functional.gelu(gate) * value)


def rotated(x: Float[Tensor, "n s i d"], where: Float[Tensor, " i"]) -> Float[Tensor, "n s i d"]:
    """Turn channel pairs (j, j + d/2) by the angle  64 where / 10000^(2j/d)."""
    half = x.shape[-1] // 2
    rates = torch.exp(-math.log(1e4) / half * torch.arange(half, dtype=x.dtype, device=x.device))
    angle = ROTATION_SCALE * where[:, None] * rates
    first, second = x.split(half, dim=-1)
    turned = (first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin())
    return torch.cat(turned, dim=-1)
