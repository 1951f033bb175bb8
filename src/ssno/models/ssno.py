"""The State Space Neural Operator.

    lift -> spatial blocks -> temporal memory -> spatial blocks -> project

A spatial block scans each grid axis in turn, forwards and backwards (`ssno.layers.scan`); memory is a causal S4D over
the last K frames (`ssno.layers.memory`). The same code serves 1D, 2D and 3D.

Axes: n frame, c field, h channel. Inside, fields are (h, *grid, n); they are converted once on the way in and out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, get_args

from jaxtyping import Float
from torch import Tensor, nn

from ssno.layers.modes import ModeOptions, require_one_of
from ssno.layers.pointwise import Head, Pointwise, with_coordinates
from ssno.layers.scan import AxisSweep, Residual
from ssno.models.config import require_positive
from ssno.models.history import MemoryConfig, require_state_size
from ssno.models.operator import MemoryOperator, Spacing
from ssno.models.pretrained import Pretrained
from ssno.ssm.kernel import Boundary


@dataclass(frozen=True, kw_only=True)
class SSNOConfig(MemoryConfig):
    """A State Space Neural Operator. The defaults are the paper's model: 203,713 parameters in 1D, 369,665 in 2D."""

    name: ClassVar[str] = "ssno"

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
    residual: Residual = "sum"
    """Where residuals go: around the sum of both directions, in each path, or none."""
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
        require_one_of("residual", self.residual, get_args(Residual))
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

    def build(self) -> "SSNO":
        return SSNO(self)

    @classmethod
    def tiny(cls, **fields: Any) -> "SSNOConfig":
        """Small enough for tests and first tries."""
        return replace(cls(hidden_channels=16, n_layers=2, d_state=8, memory_d_state=8, head_channels=32), **fields)


class SSNO(MemoryOperator, Pretrained):
    """State Space Neural Operator: `SSNO(config)`, or `SSNO(in_channels=1, n_dims=2, d_state=32)` with its fields.

    Trajectories are (batch, time, channel, *grid); slot t of the output predicts frame t + 1.
    """

    config_type = SSNOConfig
    config: SSNOConfig

    def __init__(self, config: SSNOConfig | None = None, **fields: Any):
        super().__init__()
        config = replace(config or SSNOConfig(), **fields)
        self.config = config
        position = config.n_layers // 2 if config.memory_position is None else config.memory_position
        self.lift = Pointwise(config.lifted_channels(), config.hidden_channels)
        self.blocks_before = self._blocks(position)
        self.memory = config.memory(config.hidden_channels)
        self.blocks_after = self._blocks(config.n_layers - position)
        self.head = Head(config.hidden_channels, hidden=config.head_channels, out_channels=config.out_channels)

    def _blocks(self, count: int) -> nn.ModuleList:
        config = self.config
        return nn.ModuleList(
            AxisSweep(
                config.hidden_channels,
                axes=config.n_dims,
                d_state=config.d_state,
                residual=config.residual,
                boundary=config.boundary,
                options=config.modes,
            )
            for _ in range(count)
        )

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
