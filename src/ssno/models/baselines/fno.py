"""FNO and FNO-R: Fourier neural operators with memory, after the widely used 2D-in-space script.

    lift -> blocks -> memory -> blocks -> project

    block:  x <- gelu( MLP norm S norm x + skip x ),   S the spectral convolution over all axes; no gelu in the last

`norm` standardises every channel of every frame over the grid (no learnable part). FNO-R differs in one point: S gives
each channel its own kernel instead of mixing channels, as a state-space scan does. The paper runs it on four stacked
frames without memory, the default here. Layers work in units of the period, so `spacing` has no effect.

Because `norm` removes the mean before S, the weights of wavenumber zero stay as they start.

Axes: n frame, c field, h channel. Inside, fields are (h, *grid, n), as in `ssno.models.ssno`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.layers.axial import along
from ssno.layers.memory import MemoryOptions
from ssno.layers.pointwise import ChannelMLP, Pointwise, with_coordinates
from ssno.layers.spectral import SpectralConvolution, most_modes, xavier_normal
from ssno.models.config import ADAMW, GridConfig, ModelVariant
from ssno.models.operator import MemoryOperator, PrecomputedWeights
from ssno.models.pretrained import Pretrained

Fourier = TypeVar("Fourier", bound="FourierConfig")


@dataclass(frozen=True, kw_only=True)
class FourierConfig(GridConfig):
    """The interface of models with Fourier modes. Grids need at least `2 n_modes` points per axis."""

    n_modes: int = 32
    """Wavenumbers kept along each axis."""

    def spectral_size(self, width: int) -> int:
        """Numbers in one layer's weights: a matrix over channels for each kept mode in each corner of the spectrum."""
        return 2**self.n_dims * self.n_modes**self.n_dims * width**2

    def approximate_size(self) -> int:
        width, layers = getattr(self, "hidden_channels", 1), getattr(self, "n_layers", 1)
        return super().approximate_size() + layers * self.spectral_size(width)

    def for_grid(self: Fourier, grid: Sequence[int]) -> Fourier:
        return replace(self, n_modes=min(self.n_modes, most_modes(grid)))


# FNO and FNO-R.


@dataclass(frozen=True, kw_only=True)
class FNOConfig(FourierConfig):
    """Fourier neural operator: all axes transformed at once, one matrix over channels per mode."""

    model_name: ClassVar[str] = "fno"
    training: ClassVar[Mapping[str, Any]] = ADAMW
    variants: ClassVar[Mapping[str, ModelVariant]] = {
        "fno-r": ModelVariant(
            "FNO with a reduced kernel: each channel has its own spectrum; four frames as channels.",
            {"mix_channels": False, "frames_as_channels": 4, "memory": MemoryOptions(window=0)},
            smallest={"memory": MemoryOptions(window=0, d_state=8)},
            origin="the SS-NO paper",
        )
    }
    origin: ClassVar[str] = "Li et al. 2021 (FNO); with memory, Buitrago et al. 2025 (MemNO)"
    smallest: ClassVar[Mapping[str, Any]] = {
        "hidden_channels": 16,
        "n_layers": 2,
        "n_modes": 6,
        "memory": MemoryOptions(d_state=8),
        "head_channels": 32,
    }

    hidden_channels: int = 64
    """Width of the network."""
    n_layers: int = 4
    """Number of Fourier blocks, half before memory, half after."""
    head_channels: int = 256
    """Hidden width of the projection head."""
    mix_channels: bool = True
    """Whether spectral weights are matrices over channels, or one number per channel (FNO-R)."""
    memory: MemoryOptions = field(default_factory=MemoryOptions)
    """The temporal memory."""

    @property
    def name(self) -> str:
        return "fno" if self.mix_channels else "fno-r"

    def spectral_size(self, width: int) -> int:
        """A matrix over channels, or a number per channel, for each mode in each corner of the spectrum."""
        return super().spectral_size(width) // (1 if self.mix_channels else width)

    def build(self) -> "FNO":
        return FNO(self)


class FNO(MemoryOperator, Pretrained):
    """Fourier neural operator: `FNO(config)`, or `FNO(n_dims=2, n_modes=8)` with its fields."""

    config_type = FNOConfig
    config: FNOConfig

    def __init__(self, config: FNOConfig | None = None, **fields: Any):
        super().__init__()
        self.config = config = replace(config or FNOConfig(), **fields)
        self.lift = Pointwise(config.lifted_channels(), config.hidden_channels)
        self.blocks_before = nn.ModuleList(FourierBlock(config) for _ in range(config.n_layers // 2))
        self.memory = config.memory.build(config.hidden_channels)
        self.blocks_after = nn.ModuleList(FourierBlock(config) for _ in range(config.n_layers - config.n_layers // 2))
        self.head = ChannelMLP(config.hidden_channels, hidden=config.head_channels, out_channels=config.out_channels)

    def before(self, frames: Float[Tensor, "n c *grid"], weights: PrecomputedWeights) -> tuple[Tensor, None]:
        """Lift and filter."""
        fields = with_coordinates(frames, self.config.coordinate_axes())
        features = self.lift(fields.movedim(0, -1))
        for block in self.blocks_before:
            features = functional.gelu(block(features))
        return features, None

    def after(self, features: Tensor, skip: None, weights: PrecomputedWeights) -> Float[Tensor, "n c *grid"]:
        """Filter and project."""
        *blocks, last = self.blocks_after
        for block in blocks:
            features = functional.gelu(block(features))
        return self.head(last(features)).movedim(-1, 0)


class FourierBlock(nn.Module):
    """Spectral convolution between two standardisations, a pointwise network, and a pointwise skip."""

    def __init__(self, config: FNOConfig):
        super().__init__()
        width = config.hidden_channels
        self.convolution = SpectralConvolution(
            width, n_modes=config.n_modes, axes=config.n_dims, mix=config.mix_channels
        )
        self.network = ChannelMLP(width, hidden=width, out_channels=width)
        self.skip = Pointwise(width, width)

    def forward(self, field: Float[Tensor, "h *grid n"]) -> Float[Tensor, "h *grid n"]:
        filtered = standardised(self.convolution(standardised(field)))
        return self.network(filtered) + self.skip(field)


def standardised(field: Float[Tensor, "h *grid n"]) -> Float[Tensor, "h *grid n"]:
    """Zero mean and unit variance over the grid, for every channel of every frame (instance normalisation)."""
    variance, mean = torch.var_mean(field, dim=tuple(range(1, field.ndim - 1)), correction=0, keepdim=True)
    return (field - mean) * torch.rsqrt(variance + 1e-5)


# F-FNO: the factorised Fourier neural operator.
#
#     lift -> layers -> memory -> layers -> project the last layer's output
#
#     layer:  x <- x + b,   b = W2 relu(W1 z),   z = sum over axes of a spectral convolution along that axis
#
# As in the reference, the head has no activation between its two maps and sees only b of the last layer, not x + b.
# Layers work in units of the period, so `spacing` has no effect.
#
# Axes: n frame, c field, h channel. Inside, fields are (h, *grid, n), as in `ssno.models.ssno`.


@dataclass(frozen=True, kw_only=True)
class FFNOConfig(FourierConfig):
    """Factorised Fourier neural operator: a Fourier layer along each axis in turn, summed."""

    model_name: ClassVar[str] = "ffno"
    origin: ClassVar[str] = "Tran et al. 2023 (F-FNO); with memory, Buitrago et al. 2025 (MemNO)"
    smallest: ClassVar[Mapping[str, Any]] = {
        "hidden_channels": 16,
        "n_layers": 2,
        "n_modes": 6,
        "memory": MemoryOptions(d_state=8),
        "head_channels": 16,
    }

    hidden_channels: int = 64
    """Width of the network."""
    n_layers: int = 4
    """Number of Fourier layers, half before memory, half after."""
    head_channels: int = 128
    """Hidden width of the projection head."""
    memory: MemoryOptions = field(default_factory=MemoryOptions)
    """The temporal memory."""

    def spectral_size(self, width: int) -> int:
        """Axis by axis."""
        return 2 * self.n_dims * self.n_modes * width**2

    def recommended(self, *, periodic: bool | Sequence[bool]) -> "FFNOConfig":
        """On a circle without coordinates: a shifted input then gives the shifted forecast."""
        everywhere = periodic if isinstance(periodic, bool) else all(periodic)
        return replace(self, coordinates=False) if everywhere else self

    def build(self) -> "FFNO":
        return FFNO(self)


class FFNO(MemoryOperator, Pretrained):
    """Factorised Fourier neural operator: `FFNO(config)`, or `FFNO(n_dims=2, n_modes=16)` with its fields."""

    config_type = FFNOConfig
    config: FFNOConfig

    def __init__(self, config: FFNOConfig | None = None, **fields: Any):
        super().__init__()
        self.config = config = replace(config or FFNOConfig(), **fields)
        self.lift = Pointwise(config.lifted_channels(), config.hidden_channels)
        self.layers_before = nn.ModuleList(FactorisedLayer(config) for _ in range(config.n_layers // 2))
        self.memory = config.memory.build(config.hidden_channels)
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
        fields = with_coordinates(frames, self.config.coordinate_axes())
        features = self.lift(fields.movedim(0, -1))
        for layer in self.layers_before:
            features = features + layer(features)
        return features, None

    def after(self, features: Tensor, skip: None, weights: PrecomputedWeights) -> Float[Tensor, "n c *grid"]:
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
        self.feed_forward = ChannelMLP(width, hidden=2 * width, out_channels=width, activation=functional.relu)

    def forward(self, field: Float[Tensor, "h *grid b"]) -> Float[Tensor, "h *grid b"]:
        filtered = [along(convolution, field, axis=axis) for axis, convolution in enumerate(self.convolutions)]
        return self.feed_forward(sum(filtered[1:], start=filtered[0]))
