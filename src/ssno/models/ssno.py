"""The State Space Neural Operator: every spatial block scans each grid axis in turn, forwards and backwards.

    lift -> spatial blocks -> temporal memory -> spatial blocks -> project

New here? `ssno.models.reference` is the whole network in one file. This one is the same, faster and with more options.

    spatial block   x <- x + forward scan + backward scan, along one axis after the other       `ssno.layers.axial`
    scan            GLU( W GELU( kernel * x + skip x ) + bias )                                  `ssno.layers.block`
    kernel          2 Re sum_n C_n B_n exp(-(damping_n + i frequency_n) distance): damped waves  `ssno.layers.modes`
    memory          the same scan over the last K frames, at every grid point                    `ssno.layers.memory`

The same code serves 1D, 2D and 3D. Variants (`ssno.models.variants`) differ in the spatial block alone, which
`ScanConfig.sweep` names. How a model runs over a trajectory, and streams, is in `ssno.models.operator`.

Axes: n frame, c field, h channel. Inside, fields are (h, *grid, n); they are converted once on the way in and out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar, get_args

from jaxtyping import Float
from torch import Tensor, nn

from ssno.base import require_one_of, require_pairs, require_positive
from ssno.layers.axial import AxialScan, GridScan, Residual, SpatialScan, UnidirectionalScan, boundary_per_axis
from ssno.layers.block import scan_weights
from ssno.layers.continuation import continue_onto
from ssno.layers.modes import ModeOptions, fast_start, require_circle, require_fading_images
from ssno.layers.pointwise import ChannelMLP, Film, Pointwise, append, coordinates, modulated, without_means
from ssno.models.config import MemoryConfig
from ssno.models.operator import MemoryOperator, PrecomputedWeights, Spacing
from ssno.models.pretrained import Pretrained
from ssno.models.reference import ReferenceSSNO
from ssno.native.engine import lowered
from ssno.ssm.kernel import PERIODIC, Boundary
from ssno.ssm.resolution import learned_grid, sublattices

Scanning = TypeVar("Scanning", bound="ScanConfig")
Conditioning = Literal["planes", "film"]
BEYOND_WALLS: Boundary = "zero"
"""What the recipe `fast` lets lie beyond walls: the best of those compared by the experiment `walls`."""


@dataclass(frozen=True, kw_only=True)
class ScanConfig(MemoryConfig):
    """A model whose spatial blocks scan the grid with state-space systems."""

    sweep: ClassVar[type[GridScan]]
    """What a spatial block is."""

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
    boundary: Boundary | tuple[Boundary, ...] = "zero"
    """Beyond the grid lies: zero, periodic images (wrapped), one period of the kernel (one-period), a mirror image as
    at a wall, with the same sign (even) or the opposite one (odd), or a constant of every channel (learned). One for
    all axes, or one for each."""
    modes: ModeOptions = field(default_factory=ModeOptions)
    """The state-space modes of the spatial scans."""
    smallest_steps: tuple[float, ...] = ()
    """`modes.dt_min` of each axis by itself; none: the same along all."""
    largest_steps: tuple[float, ...] = ()
    """`modes.dt_max` of each axis by itself; none: the same along all."""
    conditioning: Conditioning = "planes"
    """How parameters of a trajectory enter, known fields that are constant over the grid: as planes of the input, or as
    scale and shift of the features after every block (film). Film takes the mean of every known field; what is left of
    a field that varies stays in the input."""
    reference_spacing: tuple[float, ...] | None = None
    """Grid spacing per axis at which the steps are in grid units; None makes `spacing` itself the step factor."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hidden_channels", "n_layers", "head_channels"):
            require_positive(name, getattr(self, name))
        self.axis_modes()
        for boundary in self.boundaries():
            require_fading_images(boundary, self.modes.damping)
            require_circle(boundary, self.modes.discretisation)
        require_pairs("d_state", self.d_state)
        require_one_of("conditioning", self.conditioning, get_args(Conditioning))
        if self.conditioning == "film" and self.frames_as_channels:
            raise ValueError(
                "`conditioning='film'` takes the known fields of single frames: set `frames_as_channels=0`."
            )
        if self.memory_position is not None and not 0 <= self.memory_position <= self.n_layers:
            raise ValueError(
                f"`memory_position` must lie between 0 and n_layers = {self.n_layers}, got {self.memory_position}."
            )
        if self.reference_spacing is not None:
            relative_spacing(self.reference_spacing, reference=None, n_dims=self.n_dims, name="reference_spacing")

    def recommended(self: Scanning, *, periodic: bool | Sequence[bool]) -> Scanning:
        """Modes start as in `ssno.layers.modes.fast_start`; periodic axes are scanned around the circle.

        Without coordinates, which a circle does not have, a shifted input then gives the shifted forecast. Selective
        scans know only zero beyond walls.
        """
        periodic = [periodic] * self.n_dims if isinstance(periodic, bool) else periodic
        modes = fast_start(self.modes, axes=self.n_dims, periodic=all(periodic))
        if self.modes.damping == "absent":
            return replace(self, modes=modes)
        if all(periodic):
            return replace(self, boundary="periodic", coordinates=False, modes=modes)
        beyond: Boundary = "zero" if self.modes.selective else BEYOND_WALLS
        if not any(periodic):
            return replace(self, boundary=beyond, modes=modes)
        boundary: tuple[Boundary, ...] = tuple("periodic" if circle else beyond for circle in periodic)
        walls = tuple(axis for axis, circle in enumerate(periodic) if not circle)
        return replace(self, boundary=boundary, coordinate_axes=walls, modes=modes)

    def boundaries(self) -> tuple[Boundary, ...]:
        """The boundary of every axis."""
        return boundary_per_axis(self.boundary, self.n_dims)

    def axis_modes(self) -> tuple[ModeOptions, ...]:
        """The modes of every axis."""
        steps = {}
        for name, usual in (("smallest_steps", self.modes.dt_min), ("largest_steps", self.modes.dt_max)):
            given = getattr(self, name)
            if len(given) not in (0, self.n_dims):
                raise ValueError(f"`{name}` must have one number for each of the {self.n_dims} axes, got {given}.")
            steps[name] = given or (usual,) * self.n_dims
        return tuple(
            replace(self.modes, dt_min=smallest, dt_max=largest)
            for smallest, largest in zip(*steps.values(), strict=True)
        )

    def block(self) -> SpatialScan:
        """One spatial block."""
        modes = self.axis_modes()
        return self.sweep(
            self.hidden_channels, axes=self.n_dims, d_state=self.d_state, boundary=self.boundary, options=modes
        )

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
        self.head = ChannelMLP(config.hidden_channels, hidden=config.head_channels, out_channels=config.out_channels)
        self.film: Film | None = None
        if config.conditioning == "film":
            parameters = config.in_channels - config.out_channels
            if parameters < 1:
                raise ValueError(
                    f"`conditioning='film'` needs known fields, but in_channels = {config.in_channels} and "
                    f"out_channels = {config.out_channels} leave none. Use conditioning='planes'."
                )
            self.film = Film(parameters, channels=config.hidden_channels, blocks=config.n_layers)

    @property
    def native_bf16(self) -> bool:  # type: ignore[override]
        """Scans of one axis after the other with kernels; other sweeps and selective modes are left to autocast."""
        sweeps = (*self.blocks_before, *self.blocks_after)
        return not self.config.modes.selective and all(
            isinstance(one, AxialScan | UnidirectionalScan) for one in sweeps
        )

    def grid_weights(self, grid: Sequence[int], *, spacing: Spacing = None) -> PrecomputedWeights:
        """The weights of every scan on a grid, all kernels sampled together."""
        relative = relative_spacing(spacing, reference=self.config.reference_spacing, n_dims=self.config.n_dims)
        axes = self.config.located_axes()
        per_block = [block.scans_on(grid, relative) for block in (*self.blocks_before, *self.blocks_after)]
        found = iter(scan_weights([scan for scans in per_block for scan in scans]))
        return PrecomputedWeights(
            memory=self.memory.weights() if self.memory is not None else None,
            blocks=[[next(found) for _ in scans] for scans in per_block],
            coordinates=coordinates(grid, axes, like=self.lift.weight) if axes else None,
        )

    def working_grid(self, grid: Sequence[int], *, spacing: Spacing = None) -> tuple[int, ...]:
        """Where a periodic axis does not fall into copies of the learned grid: the next finer one that does.

        At least two copies: then also waves that the given grid lacks have room to grow.
        """
        relative = relative_spacing(spacing, reference=self.config.reference_spacing, n_dims=self.config.n_dims)
        return tuple(
            self._working_points(points, step, boundary)
            for points, step, boundary in zip(grid, relative, self.config.boundaries(), strict=True)
        )

    def _working_points(self, points: int, step: float, boundary: Boundary) -> int:
        periodic = boundary in PERIODIC
        if not periodic or self.config.modes.resolution_transfer == "resample" or sublattices(points, step) is not None:
            return points
        learned, _ = learned_grid(points, step)
        return learned * max(2, math.ceil(points / learned))

    def copies(self, grid: Sequence[int], *, spacing: Spacing = None) -> tuple[int, ...]:
        """Into how many interleaved copies of the learned grid each axis falls; they never exchange anything."""
        if self.config.modes.resolution_transfer == "resample":
            return (1,) * self.config.n_dims
        relative = relative_spacing(spacing, reference=self.config.reference_spacing, n_dims=self.config.n_dims)
        working = self.working_grid(grid, spacing=spacing)
        steps = [step * points / finer for step, points, finer in zip(relative, grid, working, strict=True)]
        return tuple(sublattices(points, step) or 1 for points, step in zip(working, steps, strict=True))

    def refer_to(self, grid: Sequence[int], *, spacing: Sequence[float], step: Sequence[float]) -> None:
        """Make a grid the reference of the weights, as it is for training on it (`ssno.layers.continuation`).

        `spacing` is that of the grid; `step` is the same in units of the present reference, one number per axis.
        """
        if any(ratio != 1 for ratio in step):
            for block in (*self.blocks_before, *self.blocks_after):
                for scanned, length, ratio in block.scans_on(grid, step):
                    for one in scanned:
                        continue_onto(one, length, ratio)
        self.config = replace(self.config, reference_spacing=tuple(spacing))

    def before(self, frames: Float[Tensor, "n c *grid"], weights: PrecomputedWeights) -> tuple[Tensor, Tensor | None]:
        """Lift and scan space; with film, scales and shifts of the second half skip the memory block."""
        film: Tensor | None = None
        if self.film is not None:
            frames, parameters = without_means(frames, self.config.out_channels)
            film = self.film(parameters)
        fields = frames if weights.coordinates is None else append(weights.coordinates, frames)
        features = lowered(self.lift(fields.movedim(0, -1)))
        for number, (block, known) in enumerate(zip(self.blocks_before, weights.blocks, strict=False)):
            features = block(features, weights=known)
            if film is not None:
                features = modulated(features, film[:, number])
        return features, None if film is None else film[:, len(self.blocks_before) :]

    def after(self, features: Tensor, passed: Tensor | None, weights: PrecomputedWeights) -> Float[Tensor, "n c *grid"]:
        """Sweep and project."""
        features = lowered(features)
        remaining = weights.blocks[len(self.blocks_before) :]
        for number, (block, known) in enumerate(zip(self.blocks_after, remaining, strict=True)):
            features = block(features, weights=known)
            if passed is not None:
                features = modulated(features, passed[:, number])
        return self.head(features).movedim(-1, 0)


@dataclass(frozen=True, kw_only=True)
class SSNOConfig(ScanConfig):
    """A State Space Neural Operator. The defaults are the paper's model: 203,713 parameters in 1D, 369,665 in 2D."""

    name: ClassVar[str] = "ssno"
    sweep: ClassVar[type[GridScan]] = AxialScan

    residual: Residual = "sum"
    """Where residuals go: around the sum of both directions, in each path, or none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("residual", self.residual, get_args(Residual))

    def block(self) -> AxialScan:
        """Two-way scans along one axis after the other."""
        return AxialScan(
            self.hidden_channels,
            axes=self.n_dims,
            d_state=self.d_state,
            residual=self.residual,
            boundary=self.boundary,
            options=self.axis_modes(),
        )

    def build(self) -> "SSNO":
        return SSNO(self)


class SSNO(ScanOperator):
    """State Space Neural Operator: `SSNO(config)`, or `SSNO(in_channels=1, n_dims=2, d_state=32)` with its fields.

    Trajectories are (batch, time, channel, *grid); slot t of the output predicts frame t + 1.
    """

    config_type = SSNOConfig
    config: SSNOConfig

    def reference(self) -> ReferenceSSNO:
        """The same network and weights as one reads them in `ssno.models.reference`: the oracle of every fast path."""
        config, modes = self.config, self.config.modes
        covered = (
            config.boundary in ("zero", "periodic")
            and modes.discretisation == "zoh"
            and not (modes.selective or config.frames_as_channels or config.memory_position is not None)
            and (modes.damping, modes.frequency) == ("learnable", "learnable")
            and config.coordinate_axes is None
            and (config.conditioning, config.residual) == ("planes", "sum")
            and config.memory_window > 0
            and config.memory_kernel == "s4d"
        )
        if not covered:
            raise ValueError(
                "The reference knows boundary='zero' or 'periodic' along all axes, discretisation='zoh', learnable "
                f"modes, an S4D memory, residual='sum', and no frames as channels; got {config}."
            )
        reference = ReferenceSSNO(
            in_channels=config.in_channels,
            out_channels=config.out_channels,
            n_dims=config.n_dims,
            hidden_channels=config.hidden_channels,
            n_layers=config.n_layers,
            d_state=config.d_state,
            memory_window=config.memory_window,
            memory_d_state=config.memory_d_state,
            head_channels=config.head_channels,
            boundary="zero" if config.boundary == "zero" else "periodic",
            coordinates=config.coordinates,
        )
        reference.load_state_dict(self.state_dict())
        return reference.to(self.lift.weight)


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
