"""SFNO: the spherical Fourier neural operator, for the equiangular grid of a sphere.

    lift (+ position) -> blocks -> project (+ input)

    block:  a = SHT x,   y = MLP norm ISHT(W_l a_lm) + r,      r = x, or ISHT(a) where a block changes the grid

W_l is a complex matrix over channels per degree l < M, the same for all orders m. The first block goes from the data
grid to a Gauss grid `scale_factor` times coarser, the last one back; M is what the coarse grid carries. Without a
position a network cannot know where the axis of rotation is: an isotropic state does not show it, so Coriolis stays
unknown.

Public sizes: `scale_factor=2, embed_dim=32, norm="instance"` is the registry's, 148,160 parameters on 32 x 64, blind;
`scale_factor=3, embed_dim=16, position="harmonics"` the notebook's, 24,800.

Axes: n frame, c field, h channel, l degree, m order. Inside, fields are (lon, lat, n, h).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.base import require_one_of
from ssno.layers.memory import MemoryOptions
from ssno.layers.pointwise import with_coordinates
from ssno.models.config import GridConfig
from ssno.models.operator import MemoryOperator, PrecomputedWeights
from ssno.models.pretrained import Pretrained
from ssno.transforms.sphere import SphereGrid, SphereTransform, legendre

Position = Literal["none", "latitude", "harmonics"]
Norm = Literal["none", "instance"]


@dataclass(frozen=True, kw_only=True)
class SFNOConfig(GridConfig):
    """A spherical Fourier neural operator for one grid; the defaults are those of our experiment."""

    model_name: ClassVar[str] = "sfno"
    origin: ClassVar[str] = "Bonev et al. 2023 (SFNO)"
    geometries: ClassVar[tuple[str, ...]] = ("sphere",)
    smallest: ClassVar[Mapping[str, Any]] = {"grid": (16, 32), "embed_dim": 8, "memory": MemoryOptions(0, d_state=8)}

    n_dims: int = 2
    in_channels: int = 3
    out_channels: int = 3
    grid: tuple[int, int] = (32, 64)
    """Colatitudes, poles included, and longitudes of the data."""
    scale_factor: int = 2
    """How many times coarser the inner grid is."""
    embed_dim: int = 32
    """Width of the network."""
    n_layers: int = 4
    """Number of blocks, half before memory, half after."""
    position: Position = "latitude"
    """Positional encoding: none, a learned vector per latitude, or fixed spherical harmonics."""
    norm: Norm = "none"
    """Standardise every channel of every frame after the filter (instance), which removes amplitudes."""
    residual: bool = True
    """Add the input to the output."""
    coordinates: bool | tuple[int, ...] = False
    memory: MemoryOptions = field(default_factory=lambda: MemoryOptions(window=0))
    """The temporal memory; none by default."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("position", self.position, get_args(Position))
        require_one_of("norm", self.norm, get_args(Norm))
        if self.n_dims != 2:
            raise ValueError(f"`n_dims` on the sphere must be 2 (colatitude, longitude), got {self.n_dims}.")
        self.data_grid.check_degrees(self.degrees)

    @property
    def data_grid(self) -> SphereGrid:
        """The grid of the fields."""
        return SphereGrid(*self.grid)

    @property
    def inner_grid(self) -> SphereGrid:
        """The coarser Gauss grid between the first block and the last."""
        nlat, nlon = self.grid
        return SphereGrid((nlat - 1) // self.scale_factor + 1, nlon // self.scale_factor, "gauss")

    @property
    def degrees(self) -> int:
        """M: degrees that the filters see."""
        return min(self.inner_grid.nlat, self.inner_grid.nlon // 2)

    def for_grid(self, grid: Sequence[int]) -> "SFNOConfig":
        """The same model for another grid of the sphere."""
        return replace(self, grid=(grid[0], grid[1]))

    def build(self) -> "SFNO":
        return SFNO(self)


class SFNO(MemoryOperator, Pretrained):
    """Spherical Fourier neural operator: `SFNO(config)`, or `SFNO(grid=(64, 128))` with its fields."""

    config_type = SFNOConfig
    config: SFNOConfig
    harmonics: Float[Tensor, "lon lat 1 h"]

    def __init__(self, config: SFNOConfig | None = None, **fields: Any):
        super().__init__()
        self.config = config = replace(config or SFNOConfig(), **fields)
        width, lifted, last = config.embed_dim, config.lifted_channels(), config.n_layers - 1
        outer = SphereTransform(config.data_grid, degrees=config.degrees)
        inner = SphereTransform(config.inner_grid, degrees=config.degrees)
        self.lift = linear(lifted, width, variance=1 / lifted)
        if config.position == "latitude":
            self.latitude = nn.Parameter(0.02 * torch.randn(width, config.grid[0]))
        elif config.position == "harmonics":
            self.register_buffer("harmonics", real_harmonics(config.data_grid, width), persistent=False)
        blocks = [
            SphereBlock(width, outer if i == 0 else inner, outer if i == last else inner, norm=config.norm)
            for i in range(config.n_layers)
        ]
        self.blocks_before = nn.ModuleList(blocks[: config.n_layers // 2])
        self.memory = config.memory.build(width)
        self.blocks_after = nn.ModuleList(blocks[config.n_layers // 2 :])
        self.project = linear(width, config.out_channels, variance=1 / width)

    def before(self, frames: Float[Tensor, "n c lat lon"], weights: PrecomputedWeights) -> tuple[Tensor, Tensor]:
        """Lift, add the position, filter. The newest frame skips the memory."""
        if tuple(frames.shape[2:]) != self.config.grid:
            raise ValueError(
                f"`frames` has the grid {tuple(frames.shape[2:])}, but this model was built for {self.config.grid} on "
                "the sphere. Build it with `config.for_grid(grid)`."
            )
        fields = with_coordinates(frames, self.config.coordinate_axes())
        features = self.lift(fields.permute(3, 2, 0, 1))
        if self.config.position == "latitude":
            features = features + self.latitude.t()[:, None]
        elif self.config.position == "harmonics":
            features = features + self.harmonics
        for block in self.blocks_before:
            features = block(features)
        newest = frames[:, -self.config.in_channels :][:, : self.config.out_channels]
        return features.permute(3, 1, 0, 2), newest

    def after(self, features: Tensor, skip: Tensor, weights: PrecomputedWeights) -> Float[Tensor, "n c lat lon"]:
        """Filter and project."""
        features = features.permute(2, 1, 3, 0)
        for block in self.blocks_after:
            features = block(features)
        change = self.project(features).permute(2, 3, 1, 0)
        return skip + change if self.config.residual else change


class SphereBlock(nn.Module):
    """Filter by degree, standardise, a pointwise network, and a residual; from one grid of the sphere to another."""

    def __init__(self, width: int, source: SphereTransform, target: SphereTransform, *, norm: Norm):
        super().__init__()
        self.source, self.target = source, target
        self.same_grid = source is target  # asked here: `torch.export` wraps modules, so there `is` is always false
        self.filter = nn.Parameter(torch.randn(source.degrees, width, width, 2) / math.sqrt(width))
        self.scale = nn.Parameter(torch.ones(width)) if norm == "instance" else None
        self.shift = nn.Parameter(torch.zeros(width)) if norm == "instance" else None
        self.widen = linear(width, 2 * width, variance=2 / width, bias=True)
        self.narrow = linear(2 * width, width, variance=1 / (2 * width))

    def forward(self, field: Float[Tensor, "lon lat n h"]) -> Float[Tensor, "lon2 lat2 n h"]:
        modes = self.source.analyse_leading(field)  # m l n h
        rows = modes.transpose(0, 1).flatten(1, 2)  # l (m n) h
        filtered = torch.bmm(rows, torch.view_as_complex(self.filter))
        filtered = filtered.unflatten(1, (modes.shape[0], -1)).transpose(0, 1)
        y = self.target.synthesise_leading(filtered.contiguous())
        if self.scale is not None and self.shift is not None:
            variance, mean = torch.var_mean(y, dim=(0, 1), correction=0, keepdim=True)
            y = (y - mean) * torch.rsqrt(variance + 1e-6) * self.scale + self.shift
        y = self.narrow(functional.gelu(self.widen(y)))
        return y + (field if self.same_grid else self.target.synthesise_leading(modes))


def linear(inputs: int, outputs: int, *, variance: float, bias: bool = False) -> nn.Linear:
    """A linear map of the last axis, its weights normal with the given variance, its bias zero."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.normal_(layer.weight, std=math.sqrt(variance))
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def real_harmonics(grid: SphereGrid, count: int) -> Float[Tensor, "lon lat 1 h"]:
    """Real harmonics by number l^2 + l + m (sine for m < 0), each with largest value 1."""
    degrees = math.isqrt(count - 1) + 1
    table = legendre(grid.rule[0], degrees=degrees)  # m l lat
    fields = []
    for l in range(degrees):
        for m in range(-l, l + 1):
            around = np.cos(m * grid.longitudes) if m >= 0 else np.sin(-m * grid.longitudes)
            field = np.outer(around, table[abs(m), l])
            fields.append(field / np.abs(field).max())
    return torch.from_numpy(np.stack(fields[:count], axis=-1))[:, :, None].float()
