"""What SS-NO and its variants share.

    lift -> spatial blocks -> temporal memory -> spatial blocks -> project

Models differ in the spatial block alone: `ScanConfig.block` builds it. Memory is a causal state-space block over the
last K frames (`ssno.layers.memory`).

Axes: n frame, c field, h channel. Inside, fields are (h, *grid, n); they are converted once on the way in and out.
"""

import abc
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar, get_args

from jaxtyping import Float
from torch import Tensor, nn

from ssno.layers.modes import ModeOptions, require_one_of
from ssno.layers.pointwise import Head, Pointwise, with_coordinates
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

    @abc.abstractmethod
    def block(self) -> nn.Module:
        """One spatial block: maps (h, *grid, n) to the same shape, given `spacing=` one relative spacing per axis."""

    @classmethod
    def tiny(cls: type[Scanning], **fields: Any) -> Scanning:
        """Small enough for tests and first tries."""
        return replace(cls(hidden_channels=16, n_layers=2, d_state=8, memory_d_state=8, head_channels=32), **fields)


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

    def before(self, frames: Float[Tensor, "n c *grid"], *, spacing: Spacing) -> tuple[Tensor, None]:
        """Lift and sweep."""
        fields = with_coordinates(frames) if self.config.coordinates else frames
        return self._sweep(self.blocks_before, self.lift(fields.movedim(0, -1)), spacing), None

    def after(self, features: Tensor, passed: None, *, spacing: Spacing) -> Float[Tensor, "n c *grid"]:
        """Sweep and project."""
        return self.head(self._sweep(self.blocks_after, features, spacing)).movedim(-1, 0)

    def _sweep(self, blocks: nn.ModuleList, features: Tensor, spacing: Spacing) -> Tensor:
        relative = relative_spacing(spacing, reference=self.config.reference_spacing, n_dims=self.config.n_dims)
        for block in blocks:
            features = block(features, spacing=relative)
        return features


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
