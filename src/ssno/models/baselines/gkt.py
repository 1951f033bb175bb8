"""GKT: the Galerkin transformer on stacked frames. It has no memory block, as in the paper.

    lift -> attention layers over all grid points -> spectral decoder -> project

    layer:    u <- u + Q (norm(K)^T norm(V)) / points,   u <- u + W2 relu(W1 u)           linear in the number of points
    decoder:  append coordinates, map, twice  u <- silu( S u + W u ),   S the spectral convolution of `ssno.layers`

The published count fixes the widths, not every inner detail: the split is inferred (docs/design/baselines.md).

Dropout acts in training only, on K^T V, both residual branches (`DROPOUT`) and inside the feed-forward part
(`INNER_DROPOUT`). The public code of this model drops half of K^T V in evaluation as well, because it calls dropout
with default arguments; that is not done here. `spacing` has no effect.

Axes: n frame, c field, p grid point, h channel, s head, d channel of a head.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.layers.pointwise import ChannelMLP, Pointwise, with_coordinates
from ssno.layers.spectral import SpectralConvolution
from ssno.models.baselines.fno import FourierConfig
from ssno.models.config import ADAMW
from ssno.models.operator import MemoryOperator, PrecomputedWeights
from ssno.models.pretrained import Pretrained

DECODER_LAYERS = 2
DROPOUT, INNER_DROPOUT = 0.05, 0.025


@dataclass(frozen=True, kw_only=True)
class GKTConfig(FourierConfig):
    """Galerkin transformer: softmax-free linear attention over all points, then a spectral decoder."""

    model_name: ClassVar[str] = "gkt"
    training: ClassVar[Mapping[str, Any]] = ADAMW
    origin: ClassVar[str] = "Cao 2021 (Galerkin Transformer); count-exact, internals inferred"
    smallest: ClassVar[Mapping[str, Any]] = {
        "hidden_channels": 16,
        "n_layers": 2,
        "n_heads": 2,
        "n_modes": 6,
        "head_channels": 32,
    }

    frames_as_channels: int = 4
    hidden_channels: int = 32
    """Width of the network."""
    n_layers: int = 4
    """Number of attention layers."""
    n_heads: int = 4
    """Attention heads; they must divide the width."""
    head_channels: int = 128
    """Hidden width of the projection head."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_channels % self.n_heads:
            raise ValueError(
                f"`n_heads` must divide `hidden_channels`, got {self.n_heads} for {self.hidden_channels} channels."
            )

    def build(self) -> "GKT":
        return GKT(self)


class GKT(MemoryOperator, Pretrained):
    """Galerkin transformer: `GKT(config)`, or `GKT(n_dims=2, n_modes=16)` with its fields."""

    config_type = GKTConfig
    config: GKTConfig

    def __init__(self, config: GKTConfig | None = None, **fields: Any):
        super().__init__()
        self.config = config = replace(config or GKTConfig(), **fields)
        width = config.hidden_channels
        self.memory = None
        self.lift = nn.Linear(config.lifted_channels(), width)
        self.layers = nn.ModuleList(GalerkinLayer(config) for _ in range(config.n_layers))
        self.to_decoder = Pointwise(width + len(config.coordinate_axes()), width)
        self.convolutions = nn.ModuleList(
            SpectralConvolution(width, n_modes=config.n_modes, axes=config.n_dims) for _ in range(DECODER_LAYERS)
        )
        self.skips = nn.ModuleList(Pointwise(width, width) for _ in range(DECODER_LAYERS))
        self.head = ChannelMLP(
            width, hidden=config.head_channels, out_channels=config.out_channels, activation=functional.silu
        )

    def before(self, frames: Float[Tensor, "n c *grid"], weights: PrecomputedWeights) -> tuple[Tensor, None]:
        """Lift and attend: grid points are tokens."""
        fields = with_coordinates(frames, self.config.coordinate_axes())
        u = self.lift(fields.flatten(2).transpose(1, 2))  # n p h
        for layer in self.layers:
            u = layer(u)
        return u.transpose(1, 2).unflatten(2, frames.shape[2:]), None

    def after(self, features: Tensor, skip: None, weights: PrecomputedWeights) -> Float[Tensor, "n c *grid"]:
        """Decode and project."""
        fields = with_coordinates(features, self.config.coordinate_axes())
        u = self.to_decoder(fields.movedim(0, -1))  # h *grid n
        for convolution, linear in zip(self.convolutions, self.skips, strict=True):
            u = functional.silu(convolution(u) + linear(u))
        return self.head(u).movedim(-1, 0)


class GalerkinLayer(nn.Module):
    """Galerkin attention and a feed-forward part, each added to its input."""

    def __init__(self, config: GKTConfig):
        super().__init__()
        width = config.hidden_channels
        self.heads = config.n_heads
        self.query, self.key, self.value = (near_identity(width) for _ in range(3))
        # Groups of one point's channels are its heads, so this is a layer norm for each head.
        self.norm_key, self.norm_value = (nn.GroupNorm(config.n_heads, width, eps=1e-7) for _ in range(2))
        self.dropout = nn.Dropout(DROPOUT)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(INNER_DROPOUT), nn.Linear(width, width)
        )

    def forward(self, u: Float[Tensor, "n p h"]) -> Float[Tensor, "n p h"]:
        u = u + self.dropout(self.attention(u))
        return u + self.dropout(self.feed_forward(u))

    def attention(self, u: Float[Tensor, "n p h"]) -> Float[Tensor, "n p h"]:
        """Q (K^T V) / points, per head: first sum over points, then spread."""
        query = self._by_head(self.query(u))
        key, value = (
            self._by_head(norm(linear(u).flatten(0, 1)).view(u.shape))
            for norm, linear in ((self.norm_key, self.key), (self.norm_value, self.value))
        )
        summary = self.dropout(key.transpose(-1, -2) @ value / u.shape[1])  # n s d d
        return (query @ summary).transpose(1, 2).flatten(2)

    def _by_head(self, u: Float[Tensor, "n p h"]) -> Float[Tensor, "n s p d"]:
        return u.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def near_identity(width: int) -> nn.Linear:
    """A linear map that starts as a hundredth of the identity plus small noise."""
    linear = nn.Linear(width, width)
    nn.init.xavier_uniform_(linear.weight, gain=0.01)
    nn.init.zeros_(linear.bias)
    with torch.no_grad():
        linear.weight.add_(torch.eye(width), alpha=0.01)
    return linear
