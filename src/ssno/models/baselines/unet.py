"""U-Net: convolutions at five resolutions, as PDEBench has it, with memory at the second.

    encoder level:  block, then halve        widths w, 2w, 4w, 8w; bottleneck block of width 16w; w = 32
    decoder level:  double by a transposed convolution, put the encoder's features beside, block
    block:          twice (convolution over 3 points, batch norm, tanh)

Memory has 64 channels, so it sits after the second encoder level, at half resolution; what it returns feeds both the
next level and the skip. Convolutions pad with zeros. Four halvings need grids divisible by 16. `spacing` has no effect.

Axes: n frame, c field, h channel. Inside, fields are (n, h, *grid), the layout of torch's convolutions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.layers.memory import MemoryOptions
from ssno.layers.pointwise import with_coordinates
from ssno.models.config import GridConfig
from ssno.models.operator import MemoryOperator, PrecomputedWeights
from ssno.models.pretrained import Pretrained

CONVOLUTION: dict[int, type[nn.Module]] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED: dict[int, type[nn.Module]] = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
BATCH_NORM: dict[int, type[nn.Module]] = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
MAX_POOL: dict[int, type[nn.Module]] = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
HALVINGS = 4


@dataclass(frozen=True, kw_only=True)
class UNetConfig(GridConfig):
    """U-Net: convolutions down to a sixteenth of the resolution and back, with skips."""

    model_name: ClassVar[str] = "unet"
    origin: ClassVar[str] = "Ronneberger et al. 2015 (U-Net), as in PDEBench; memory as in the SS-NO paper"
    smallest: ClassVar[Mapping[str, Any]] = {"hidden_channels": 8, "memory": MemoryOptions(d_state=8)}

    hidden_channels: int = 32
    """Width of the first level; each further level doubles it. Memory has twice this width."""
    memory: MemoryOptions = field(default_factory=MemoryOptions)
    """The temporal memory."""

    def approximate_size(self) -> int:
        """Convolutions of three points per axis at five widths, the widest sixteen times the first."""
        return 3**self.n_dims * 800 * self.hidden_channels**2

    def build(self) -> "UNet":
        return UNet(self)


class UNet(MemoryOperator, Pretrained):
    """U-Net: `UNet(config)`, or `UNet(n_dims=2, in_channels=3)` with its fields."""

    config_type = UNetConfig
    config: UNetConfig

    def __init__(self, config: UNetConfig | None = None, **fields: Any):
        super().__init__()
        self.config = config = replace(config or UNetConfig(), **fields)
        axes = config.n_dims
        widths = [config.hidden_channels * 2**level for level in range(HALVINGS + 1)]
        self.pool = MAX_POOL[axes](2)
        self.encoder = nn.ModuleList(
            block(narrow, wide, axes)
            for narrow, wide in zip([config.lifted_channels(), *widths[:-1]], widths, strict=True)
        )
        self.memory = config.memory.build(widths[1])
        self.doubling = nn.ModuleList(
            TRANSPOSED[axes](2 * width, width, kernel_size=2, stride=2) for width in reversed(widths[:-1])
        )
        self.decoder = nn.ModuleList(block(2 * width, width, axes) for width in reversed(widths[:-1]))
        self.project = CONVOLUTION[axes](widths[0], config.out_channels, kernel_size=1)

    def check_grid(self, grid: tuple[int, ...]) -> None:
        """Refuse grids that cannot be halved."""
        check_halvings(grid, "U-Net")

    def before(self, frames: Float[Tensor, "n c *grid"], weights: PrecomputedWeights) -> tuple[Tensor, Tensor]:
        """The first two encoder levels; the first one's features skip the memory block."""
        grid = tuple(frames.shape[2:])
        self.check_grid(grid)
        if self.training and frames.shape[0] == 1 and all(points == 2**HALVINGS for points in grid):
            raise ValueError(
                f"`frames` holds one input on a grid of {' x '.join(map(str, grid))}, which leaves batch norm a single "
                "number per channel at the bottleneck: it cannot train on that. Give it a larger batch or grid."
            )
        first = self.encoder[0](with_coordinates(frames, self.config.coordinate_axes()))
        return self.encoder[1](self.pool(first)).movedim(0, -1), first

    def after(self, features: Tensor, skip: Tensor, weights: PrecomputedWeights) -> Float[Tensor, "n c *grid"]:
        """The remaining encoder levels, then the decoder."""
        levels = [skip, features.movedim(-1, 0)]
        for encode in self.encoder[2:]:
            levels.append(encode(self.pool(levels[-1])))
        x = levels.pop()
        for double, decode in zip(self.doubling, self.decoder, strict=True):
            x = decode(torch.cat([double(x), levels.pop()], dim=1))
        return self.project(x)


def block(channels_in: int, channels_out: int, axes: int) -> nn.Sequential:
    """Twice: convolution over 3 points per axis without bias, batch norm, tanh."""
    layers: list[nn.Module] = []
    for channels in (channels_in, channels_out):
        layers.append(CONVOLUTION[axes](channels, channels_out, kernel_size=3, padding=1, bias=False))
        layers += [BATCH_NORM[axes](channels_out), nn.Tanh()]
    return nn.Sequential(*layers)


def check_halvings(grid: tuple[int, ...], name: str) -> None:
    """Refuse a grid that cannot be halved, with one in proportion that can."""
    multiple = 2**HALVINGS
    if not any(points % multiple for points in grid):
        return
    advice = "Use another model: --model ssno takes any grid."
    for first in range(grid[0] - grid[0] % multiple, 0, -multiple):  # in proportion, as --data.resolution coarsens
        if all(points * first % (grid[0] * multiple) == 0 for points in grid):
            coarser = " x ".join(str(points * first // grid[0]) for points in grid)
            advice = (
                f"Read the data on {coarser} points (ssno train ... --data.resolution {first} --data.reduction "
                "spectral), or use another model (--model ssno takes any grid)."
            )
            break
    raise ValueError(
        f"`frames` has a grid of {' x '.join(map(str, grid))} points, but the {name} halves it {HALVINGS} "
        f"times: every axis must be divisible by {multiple}. {advice}"
    )
