"""CNextU-Net: a U-Net of ConvNeXt blocks, the strongest baseline of The Well (`UNetConvNext` there).

    lift -> 4 x (blocks, halve) -> blocks -> 4 x (blocks, double) -> project      widths w, 2w, 4w, 8w, 16w; w = 42

    block:   x <- x + gamma W2 gelu(W1 norm(D x)),   D a depthwise convolution over 7 points per axis, W1 widens 4 times
    halve:   weight x / |x| over channels, then a convolution over 2 points with stride 2; double: its transpose

Before its blocks, every decoder level but the first puts the encoder's features of its resolution beside its own and
narrows both to its width; features of the full resolution are not among them, as in the public class. With stacked
frames (the default, as in The Well's benchmark) and without coordinates, the parameters have the names and shapes of
the public class, so that its weights load with `load_state_dict`. Memory, which the public class does not have, sits
after the first encoder level, at half resolution: everything passes through it. Convolutions pad with zeros. Four
halvings need grids divisible by 16. `spacing` has no effect.

Axes: n frame, c field, h channel. Inside, fields are (n, h, *grid), the layout of torch's convolutions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.layers.memory import MemoryOptions
from ssno.layers.pointwise import with_coordinates
from ssno.models.baselines.unet import CONVOLUTION, HALVINGS, TRANSPOSED, check_halvings
from ssno.models.config import GridConfig
from ssno.models.operator import MemoryOperator, PrecomputedWeights
from ssno.models.pretrained import Pretrained

EPSILON = 1e-6
"""Of both norms, and the layer scale of a fresh block."""


@dataclass(frozen=True, kw_only=True)
class CNextUNetConfig(GridConfig):
    """CNextU-Net: ConvNeXt blocks down to a sixteenth of the resolution and back, with skips; four frames stacked."""

    model_name: ClassVar[str] = "cnext-unet"
    origin: ClassVar[str] = "Ohana et al. 2024 (The Well), after Liu et al. 2022 (ConvNeXt) and U-Net"
    smallest: ClassVar[Mapping[str, Any]] = {
        "hidden_channels": 8,
        "blocks_per_level": 1,
        "memory": MemoryOptions(window=0, d_state=8),
    }

    hidden_channels: int = 42
    """Width of the first level; each further level doubles it. Memory has twice this width."""
    blocks_per_level: int = 2
    """ConvNeXt blocks at each level of the encoder and of the decoder; the bottleneck has one."""
    memory: MemoryOptions = field(default_factory=lambda: MemoryOptions(window=0))
    """The temporal memory; needs `frames_as_channels=0`."""
    frames_as_channels: int = 4
    coordinates: bool | tuple[int, ...] = False

    def approximate_size(self) -> int:
        """Networks of eight square matrices per block, depthwise convolutions, maps between levels and of skips."""
        squares = 8 * (425 * self.blocks_per_level + 256) + 340 * 2**self.n_dims + 168
        depthwise = 7**self.n_dims * (45 * self.blocks_per_level + 16)
        return self.hidden_channels * (self.hidden_channels * squares + depthwise)

    def build(self) -> "CNextUNet":
        return CNextUNet(self)


class CNextUNet(MemoryOperator, Pretrained):
    """CNextU-Net: `CNextUNet(config)`, or `CNextUNet(n_dims=2, in_channels=3)` with its fields."""

    config_type = CNextUNetConfig
    config: CNextUNetConfig

    def __init__(self, config: CNextUNetConfig | None = None, **fields: Any):
        super().__init__()
        self.config = config = replace(config or CNextUNetConfig(), **fields)
        axes, depth = config.n_dims, config.blocks_per_level
        widths = [config.hidden_channels * 2**level for level in range(HALVINGS + 1)]
        self.in_proj = CONVOLUTION[axes](config.lifted_channels(), widths[0], kernel_size=3, padding=1)
        self.out_proj = CONVOLUTION[axes](widths[0], config.out_channels, kernel_size=3, padding=1)
        self.encoder = nn.ModuleList(
            Level(
                width,
                axes,
                depth=depth,
                resample=Resample(width, axes, CONVOLUTION[axes](width, 2 * width, 2, stride=2)),
            )
            for width in widths[:-1]
        )
        self.memory = config.memory.build(widths[1])
        self.neck = Level(widths[-1], axes, depth=1, resample=nn.Identity())
        self.decoder = nn.ModuleList(
            Level(
                2 * width,
                axes,
                depth=depth,
                resample=Resample(2 * width, axes, TRANSPOSED[axes](2 * width, width, 2, stride=2)),
                takes_skip=width != widths[-2],
            )
            for width in reversed(widths[:-1])
        )

    def check_grid(self, grid: tuple[int, ...]) -> None:
        """Refuse grids that cannot be halved."""
        check_halvings(grid, "CNextU-Net")

    def idle_parameters(self) -> list[str]:
        """The bias of the norms between levels, which the public class has and does not use."""
        return [name for name, _ in self.named_parameters() if name.endswith("resample.block.0.bias")]

    def before(self, frames: Float[Tensor, "n c *grid"], weights: PrecomputedWeights) -> tuple[Tensor, None]:
        """Lift, and the first encoder level."""
        self.check_grid(tuple(frames.shape[2:]))
        lifted = self.in_proj(with_coordinates(frames, self.config.coordinate_axes()))
        return self.encoder[0](lifted).movedim(0, -1), None

    def after(self, features: Tensor, skip: None, weights: PrecomputedWeights) -> Float[Tensor, "n c *grid"]:
        """The remaining encoder levels, the bottleneck, the decoder."""
        levels = [features.movedim(-1, 0)]
        for encode in self.encoder[1:]:
            levels.append(encode(levels[-1]))
        first, *rest = self.decoder
        x = first(self.neck(levels.pop()))
        for decode in rest:
            x = decode(torch.cat([x, levels.pop()], dim=1))
        return self.out_proj(x)


class Level(nn.Module):
    """ConvNeXt blocks of one resolution, then the change to the next; a decoder's first narrows itself and the skip."""

    def __init__(self, width: int, axes: int, *, depth: int, resample: nn.Module, takes_skip: bool = False):
        super().__init__()
        self.skip_proj = CONVOLUTION[axes](2 * width, width, kernel_size=1) if takes_skip else nn.Identity()
        self.resample = resample
        self.blocks = nn.ModuleList(ConvNeXtBlock(width, axes) for _ in range(depth))

    def forward(self, x: Float[Tensor, "n h *grid"]) -> Float[Tensor, "n k *other"]:
        x = self.skip_proj(x)
        for block in self.blocks:
            x = block(x)
        return self.resample(x)


class ConvNeXtBlock(nn.Module):
    """A depthwise convolution, layer norm over channels, a pointwise network, layer scale, and a residual."""

    def __init__(self, width: int, axes: int):
        super().__init__()
        self.dwconv = CONVOLUTION[axes](width, width, kernel_size=7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=EPSILON)
        self.pwconv1 = nn.Linear(width, 4 * width)
        self.pwconv2 = nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(torch.full((width,), EPSILON))

    def forward(self, x: Float[Tensor, "n h *grid"]) -> Float[Tensor, "n h *grid"]:
        features = self.norm(self.dwconv(x).movedim(1, -1))
        branch = self.gamma * self.pwconv2(functional.gelu(self.pwconv1(features)))
        return x + branch.movedim(-1, 1)


class Resample(nn.Module):
    """Unit length over the channels of every point, a weight per channel, and the convolution that is given."""

    def __init__(self, width: int, axes: int, convolution: nn.Module):
        super().__init__()
        self.block = nn.Sequential(UnitLength(width, axes), convolution)

    def forward(self, x: Float[Tensor, "n h *grid"]) -> Float[Tensor, "n k *other"]:
        return self.block(x)


class UnitLength(nn.Module):
    """weight x / |x|, |x| over channels. The public class calls it a layer norm and gives it a bias without effect."""

    def __init__(self, width: int, axes: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, *(1,) * axes))
        self.bias = nn.Parameter(torch.zeros(width, *(1,) * axes))

    def forward(self, x: Float[Tensor, "n h *grid"]) -> Float[Tensor, "n h *grid"]:
        return functional.normalize(x, dim=1, eps=EPSILON) * self.weight
