"""What SS-NO and its variants share.

    lift -> spatial blocks -> temporal memory -> spatial blocks -> project

Models differ in the spatial block alone: `ScanConfig.block` builds it. Memory is a causal state-space block over the
last K frames (`ssno.layers.memory`).

Axes: n frame, c field, h channel. Inside, fields are (h, *grid, n); they are converted once on the way in and out.
"""

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, TypeVar, get_args

from jaxtyping import Float
from torch import Tensor, nn

from ssno.layers.bank import sample
from ssno.layers.gated import ScanWeights
from ssno.layers.head import Head
from ssno.layers.modes import ModeOptions, require_one_of
from ssno.layers.pointwise import Pointwise, append, coordinates
from ssno.models.config import require_positive
from ssno.models.history import MemoryConfig, require_state_size
from ssno.models.operator import MemoryOperator, Spacing
from ssno.models.pretrained import Pretrained
from ssno.ssm.kernel import Boundary

Scanning = TypeVar("Scanning", bound="ScanConfig")


@dataclass(frozen=True, kw_only=True)
class ScanConfig(MemoryConfig):
    """A model whose spatial blocks scan the grid with state-space systems."""

    hidden_channels: int = 64
    """Width of the network."""
    n_layers: int = 4
    """Number of spatial blocks."""
    d_state: int = 64
    """States per channel of the spatial scans; even."""
    memory_position: int | None = None
    """Memory comes after this many blocks; None for the middle."""
    head_channels: int = 256
    """Hidden width of the projection head."""
    boundary: Boundary = "zero"
    """Beyond the grid lies: zero, periodic images (wrapped), or one circular period of the kernel (one-period)."""
    modes: ModeOptions = field(default_factory=ModeOptions)
    """The state-space modes of the spatial scans."""
    reference_spacing: tuple[float, ...] | None = None
    """Grid spacing per axis at which the steps are in grid units; None makes `spacing` itself the step factor."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hidden_channels", "n_layers", "head_channels"):
            require_positive(name, getattr(self, name))
        require_one_of("boundary", self.boundary, get_args(Boundary))
        require_state_size("d_state", self.d_state)
        if self.memory_position is not None and not 0 <= self.memory_position <= self.n_layers:
            raise ValueError(
                f"`memory_position` must lie between 0 and n_layers = {self.n_layers}, got {self.memory_position}."
            )
        if self.boundary == "wrapped" and self.modes.damping == "absent":
            raise ValueError(
                "`boundary='wrapped'` needs damping > 0, but modes.damping is 'absent'. "
                "Use boundary='one-period', or modes.damping='learnable' or 'fixed'."
            )
        if self.reference_spacing is not None:
            relative_spacing(self.reference_spacing, reference=None, n_dims=self.n_dims, name="reference_spacing")

    def suited(self: Scanning, *, periodic: bool) -> Scanning:
        """Modes start with the waves and decay lengths of a grid; periodic data are scanned around the circle.

        Without coordinates, which a circle does not have, a shifted input then gives the shifted forecast.
        """
        modes = replace(self.modes, initialisation="grid", smallest_step=0.3, largest_step=3.0)
        if not periodic or self.modes.damping == "absent":
            return replace(self, modes=modes)
        return replace(self, boundary="wrapped", coordinates=False, modes=modes)

    @abc.abstractmethod
    def block(self) -> nn.Module:
        """One spatial block: maps (h, *grid, n) to the same shape, given `spacing=` one relative spacing per axis.

        Its `requests` say which scans it makes on a grid, so that all kernels of a model can be sampled together.
        """

    @classmethod
    def tiny(cls: type[Scanning], **fields: Any) -> Scanning:
        """Small enough for tests and first tries."""
        return replace(cls(hidden_channels=16, n_layers=2, d_state=8, memory_d_state=8, head_channels=32), **fields)


class ScanSetting(NamedTuple):
    """What a model makes of its weights on one grid: for every block the weights of its scans, and the coordinates."""

    spacing: tuple[float, ...]
    blocks: list[list[ScanWeights]]
    coordinates: Float[Tensor, "axes *grid"] | None

    def prepared(self, frames: int, grid: Sequence[int]) -> "ScanSetting":
        """The same, ready for scans of so many frames again and again."""
        points = frames * math.prod(grid)
        blocks = [
            [w.prepared(points // w.kernels.taps.shape[-1]) if w.kernels is not None else w for w in weights]
            for weights in self.blocks
        ]
        return self._replace(blocks=blocks)


class ScanOperator(MemoryOperator, Pretrained):
    """The network of SS-NO and its variants; the final classes say which."""

    config_type: ClassVar[type[ScanConfig]]
    config: ScanConfig

    def __init__(self, config: ScanConfig | None = None, **fields: Any):
        super().__init__()
        self.config = config = replace(config or self.config_type(), **fields)
        position = config.n_layers // 2 if config.memory_position is None else config.memory_position
        self.lift = Pointwise(config.lifted_channels(), config.hidden_channels)
        self.blocks_before = nn.ModuleList(config.block() for _ in range(position))
        self.memory = config.memory(config.hidden_channels)
        self.blocks_after = nn.ModuleList(config.block() for _ in range(config.n_layers - position))
        self.head = Head(config.hidden_channels, hidden=config.head_channels, out_channels=config.out_channels)

    def sampled(self, grid: Sequence[int], *, spacing: Spacing = None) -> ScanSetting:
        """The weights of every block's scans on a grid, all kernels sampled together."""
        relative = relative_spacing(spacing, reference=self.config.reference_spacing, n_dims=self.config.n_dims)
        per_block = [block.requests(grid, relative) for block in (*self.blocks_before, *self.blocks_after)]
        found = iter(sample([request for requests in per_block for request in requests]))
        where = coordinates(grid, like=self.lift.weight) if self.config.coordinates else None
        return ScanSetting(relative, [[next(found) for _ in requests] for requests in per_block], where)

    def before(self, frames: Float[Tensor, "n c *grid"], sampled: ScanSetting) -> tuple[Tensor, None]:
        """Lift and sweep."""
        fields = frames if sampled.coordinates is None else append(sampled.coordinates, frames)
        features = self.lift(fields.movedim(0, -1))
        for block, weights in zip(self.blocks_before, sampled.blocks, strict=False):
            features = block(features, spacing=sampled.spacing, weights=weights)
        return features, None

    def after(self, features: Tensor, passed: None, sampled: ScanSetting) -> Float[Tensor, "n c *grid"]:
        """Sweep and project."""
        for block, weights in zip(self.blocks_after, sampled.blocks[len(self.blocks_before) :], strict=True):
            features = block(features, spacing=sampled.spacing, weights=weights)
        return self.head(features).movedim(-1, 0)


def relative_spacing(
    spacing: Spacing, *, reference: Sequence[float] | None, n_dims: int, name: str = "spacing"
) -> tuple[float, ...]:
    """Grid spacing per axis in units of the reference one; None stands for the reference itself."""
    if spacing is None:
        return (1.0,) * n_dims
    per_axis = tuple(spacing) if isinstance(spacing, Sequence) else (spacing,) * n_dims
    if len(per_axis) != n_dims or not all(step > 0 for step in per_axis):
        raise ValueError(
            f"`{name}` must be one positive distance, or {n_dims} of them (one per grid axis), got {spacing!r}."
        )
    return tuple(step / unit for step, unit in zip(per_axis, reference or (1.0,) * n_dims, strict=True))
