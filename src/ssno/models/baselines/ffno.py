"""F-FNO: the factorised Fourier neural operator.

    lift -> layers -> memory -> layers -> project the last layer's output

    layer:  x <- x + b,   b = W2 relu(W1 z),   z = sum over axes of a spectral convolution along that axis

As in the reference, the head has no activation between its two maps and sees only b of the last layer, not x + b.
Layers work in units of the period, so `spacing` has no effect.

Axes: n frame, c field, h channel. Inside, fields are (h, *grid, n), as in `ssno.models.ssno`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.base import require_positive
from ssno.layers.head import ChannelMLP
from ssno.layers.pointwise import Pointwise, with_coordinates
from ssno.layers.spectral import SpectralConvolution, xavier_normal
from ssno.layers.sweeps import along
from ssno.models.baselines.fourier import FourierConfig
from ssno.models.history import MemoryConfig
from ssno.models.operator import MemoryOperator, PrecomputedWeights
from ssno.models.pretrained import Pretrained


@dataclass(frozen=True, kw_only=True)
class FFNOConfig(FourierConfig, MemoryConfig):
    """Factorised Fourier neural operator: a Fourier layer along each axis in turn, summed."""

    name: ClassVar[str] = "ffno"
    origin: ClassVar[str] = "Tran et al. 2023 (F-FNO); with memory, Buitrago et al. 2025 (MemNO)"

    hidden_channels: int = 64
    """Width of the network."""
    n_layers: int = 4
    """Number of Fourier layers, half before memory, half after."""
    expansion: int = 2
    """Hidden width of each layer's feed-forward part, in units of the width."""
    head_channels: int = 128
    """Hidden width of the projection head."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hidden_channels", "n_layers", "expansion", "head_channels"):
            require_positive(name, getattr(self, name))

    def spectral_size(self, width: int) -> int:
        """Axis by axis."""
        return 2 * self.n_dims * self.n_modes * width**2

    def recommended(self, *, periodic: bool | Sequence[bool]) -> "FFNOConfig":
        """On a circle without coordinates: a shifted input then gives the shifted forecast."""
        everywhere = periodic if isinstance(periodic, bool) else all(periodic)
        return replace(self, coordinates=False) if everywhere else self

    def build(self) -> "FFNO":
        return FFNO(self)

    @classmethod
    def tiny(cls, **fields: Any) -> "FFNOConfig":
        """Small enough for tests and first tries."""
        small = cls(hidden_channels=16, n_layers=2, n_modes=6, memory_d_state=8, head_channels=16)
        return replace(small, **fields)


class FFNO(MemoryOperator, Pretrained):
    """Factorised Fourier neural operator: `FFNO(config)`, or `FFNO(n_dims=2, n_modes=16)` with its fields."""

    config_type = FFNOConfig
    config: FFNOConfig

    def __init__(self, config: FFNOConfig | None = None, **fields: Any):
        super().__init__()
        self.config = config = replace(config or FFNOConfig(), **fields)
        self.lift = Pointwise(config.lifted_channels(), config.hidden_channels)
        self.layers_before = nn.ModuleList(FactorisedLayer(config) for _ in range(config.n_layers // 2))
        self.memory = config.memory(config.hidden_channels)
        self.layers_after = nn.ModuleList(
            FactorisedLayer(config) for _ in range(config.n_layers - config.n_layers // 2)
        )
        self.head = ChannelMLP(
            config.hidden_channels,
            hidden=config.head_channels,
            out_channels=config.out_channels,
            activation=nn.Identity(),
        )

    def before(self, frames: Float[Tensor, "n c *grid"], weights: PrecomputedWeights) -> tuple[Tensor, None]:
        """Lift and filter."""
        fields = with_coordinates(frames, self.config.located_axes())
        features = self.lift(fields.movedim(0, -1))
        for layer in self.layers_before:
            features = features + layer(features)
        return features, None

    def after(self, features: Tensor, passed: None, weights: PrecomputedWeights) -> Float[Tensor, "n c *grid"]:
        """Filter and project."""
        *layers, last = self.layers_after
        for layer in layers:
            features = features + layer(features)
        return self.head(last(features)).movedim(-1, 0)


class FactorisedLayer(nn.Module):
    """Spectral convolutions along each axis, summed, then a feed-forward part. The caller adds the residual."""

    def __init__(self, config: FFNOConfig):
        super().__init__()
        width = config.hidden_channels
        self.convolutions = nn.ModuleList(
            SpectralConvolution(width, n_modes=config.n_modes, axes=1, initialise=xavier_normal)
            for _ in range(config.n_dims)
        )
        self.feed_forward = ChannelMLP(
            width, hidden=config.expansion * width, out_channels=width, activation=functional.relu
        )

    def forward(self, field: Float[Tensor, "h *grid b"]) -> Float[Tensor, "h *grid b"]:
        filtered = [along(convolution, field, axis=axis) for axis, convolution in enumerate(self.convolutions)]
        return self.feed_forward(sum(filtered[1:], start=filtered[0]))
