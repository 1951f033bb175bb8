"""Factformer: attention factorised over axes (`ssno.models.baselines.factformer`), with memory after half the layers.

    lift -> layers -> memory -> layers -> latent step -> project

    layer:        u <- u + position(x),  then  u <- u + attention(u)
    latent step:  u <- L u + e,  then  u <- u + MLP(norm(u))        e a learned vector

Position enters through frozen random Fourier features, sin and cos of 2 pi x G, in every layer, and through the
rotation of queries and keys; so coordinates are not appended to the input unless asked for, and `coordinates=False`
does not make the model commute with translations. As in the original, coordinates run over [0, 2 pi] with both ends,
whatever the grid. `spacing` has no effect. The frozen matrices G count in the total number of parameters.

Axes: n frame, c field, h channel. Inside, fields are (n, *grid, h).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.layers.memory import MemoryOptions
from ssno.layers.pointwise import with_coordinates
from ssno.models.config import GridConfig
from ssno.models.operator import MemoryOperator, PrecomputedWeights
from ssno.models.pretrained import Pretrained

# Attention factorised over the axes of a grid, the layer of Factformer.
#
# Each axis has its own attention kernel, computed from features averaged over the other axes, and the kernels act on
# the values one after the other:
#
#     kernel_a[i, j] = rotated(q_a[i]) . rotated(k_a[j]),    out = kernel_d ... kernel_1 v        (per head)
#
# There is no softmax and no scaling; a normalisation per head follows instead. Rotating queries and keys by angles in
# proportion to their coordinate makes the kernel depend on distance.
#
# Axes: n frame, *grid, h channel, s head, d channel of a head, i and j points along one axis.

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


# Factformer: attention factorised over axes (`ssno.models.baselines.factformer`), with memory after half the layers.

HEAD_GROUPS = 8


@dataclass(frozen=True, kw_only=True)
class FactformerConfig(GridConfig):
    """Factformer: attention with one kernel per axis, linear in the number of points of the other axes."""

    model_name: ClassVar[str] = "factformer"
    origin: ClassVar[str] = "Li et al. 2023 (FactFormer); memory as in the SS-NO paper"
    smallest: ClassVar[Mapping[str, Any]] = {
        "hidden_channels": 16,
        "n_layers": 2,
        "n_heads": 2,
        "head_channels": 16,
        "frequency": 1.0,
        "memory": MemoryOptions(d_state=8),
    }

    coordinates: bool | tuple[int, ...] = False
    hidden_channels: int = 64
    """Width of the network; a multiple of 8."""
    n_layers: int = 4
    """Number of attention layers, half before memory, half after."""
    n_heads: int = 4
    """Attention heads."""
    head_channels: int = 128
    """Channels of each attention head; even."""
    frequency: float = 8.0
    """Standard deviation of the frozen frequencies of the positional features."""
    memory: MemoryOptions = field(default_factory=MemoryOptions)
    """The temporal memory."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_channels % HEAD_GROUPS:
            raise ValueError(f"`hidden_channels` must be a multiple of {HEAD_GROUPS}, got {self.hidden_channels}.")
        if self.head_channels % 2:
            raise ValueError(f"`head_channels` are rotated in pairs and must be even, got {self.head_channels}.")

    def build(self) -> "Factformer":
        return Factformer(self)


class Factformer(MemoryOperator, Pretrained):
    """Factformer: `Factformer(config)`, or `Factformer(n_dims=2, n_heads=8)` with its fields."""

    config_type = FactformerConfig
    config: FactformerConfig

    def __init__(self, config: FactformerConfig | None = None, **fields: Any):
        super().__init__()
        self.config = config = replace(config or FactformerConfig(), **fields)
        width = config.hidden_channels
        self.lift = nn.Linear(config.lifted_channels(), width)
        self.layers_before = nn.ModuleList(AttentionLayer(config) for _ in range(config.n_layers // 2))
        self.memory = config.memory.build(width)
        self.layers_after = nn.ModuleList(AttentionLayer(config) for _ in range(config.n_layers - config.n_layers // 2))
        self.to_latent = nn.Linear(width, width, bias=False)
        self.latent_step = nn.Parameter(torch.randn(1, width) * 0.02)
        self.propagate = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.head = nn.Sequential(
            nn.GroupNorm(HEAD_GROUPS, width),
            nn.Conv1d(width, width, kernel_size=1, groups=HEAD_GROUPS, bias=False),
            nn.GELU(),
            nn.Conv1d(width, width // 2, kernel_size=1, bias=False),
            nn.GELU(),
            nn.Conv1d(width // 2, config.out_channels, kernel_size=1),
        )

    def before(self, frames: Float[Tensor, "n c *grid"], weights: PrecomputedWeights) -> tuple[Tensor, None]:
        """Lift and attend."""
        fields = with_coordinates(frames, self.config.coordinate_axes())
        features = self._attend(self.layers_before, self.lift(fields.movedim(1, -1)))
        return features.movedim((-1, 0), (0, -1)), None

    def after(self, features: Tensor, skip: None, weights: PrecomputedWeights) -> Float[Tensor, "n c *grid"]:
        """Attend, take the latent step, project."""
        u = self._attend(self.layers_after, features.movedim((0, -1), (-1, 0)))
        u = self.to_latent(u) + self.latent_step[0]
        u = (u + self.propagate(u)).movedim(-1, 1)  # n h *grid
        return self.head(u.flatten(2)).unflatten(2, u.shape[2:])

    def _attend(self, layers: nn.ModuleList, u: Float[Tensor, "n *grid h"]) -> Float[Tensor, "n *grid h"]:
        where = positions(u.shape[1:-1], like=u)
        for layer in layers:
            u = layer(u, where)
        return u


class AttentionLayer(nn.Module):
    """Add a positional term, then factorised attention, each to the input."""

    def __init__(self, config: FactformerConfig):
        super().__init__()
        width = config.hidden_channels
        frequencies = torch.randn(config.n_dims, width // 2) * config.frequency
        self.frequencies = nn.Parameter(frequencies, requires_grad=False)
        self.position = nn.Linear(width, width)
        self.attention = FactorisedAttention(
            width, axes=config.n_dims, heads=config.n_heads, head_channels=config.head_channels
        )

    def forward(self, u: Float[Tensor, "n *grid h"], where: list[Float[Tensor, " _"]]) -> Float[Tensor, "n *grid h"]:
        points = torch.stack(torch.meshgrid(*where, indexing="ij"), dim=-1)  # *grid axes
        phase = 2 * math.pi * points @ self.frequencies
        u = u + self.position(torch.cat([phase.sin(), phase.cos()], dim=-1))
        return u + self.attention(u, where)


def positions(grid: Sequence[int], *, like: Tensor) -> list[Tensor]:
    """Coordinates along each axis, from 0 to 2 pi with both ends."""
    return [torch.linspace(0, 2 * math.pi, points, dtype=like.dtype, device=like.device) for points in grid]
