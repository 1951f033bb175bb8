"""The State Space Neural Operator: every spatial block scans each grid axis in turn, forwards and backwards.

    lift -> spatial blocks -> temporal memory -> spatial blocks -> project

New here? `ssno.models.reference` is SS-NO in one file. This is the same network, faster and with more options.

    spatial block   x <- x + forward scan + backward scan, along one axis after the other       `ssno.layers.axial`
    scan            GLU( W GELU( kernel * x + skip x ) + bias )                                  `ssno.layers.block`
    kernel          2 Re sum_n C_n B_n exp(-(damping_n + i frequency_n) distance): damped waves  `ssno.layers.modes`
    memory          the same scan over the last K frames, at every grid point                    `ssno.layers.memory`

The same code serves 1D, 2D and 3D. Its variants are the same class with another block, or other modes:

    ssno-uni        forward scans only: the ablation that lacks a full field of view. Twice as many blocks with half as
                    many scans each, so that the number of parameters is SS-NO's. With zero boundaries no point depends
                    on points after it, along any axis, however deep the model (`ssno.theory.field_of_view`).
    ssno-vm         the grid flattened to one line and scanned both ways, once per axis order (Vision Mamba style). The
                    order is ours where the paper's listing leaves it open: row-major first, then column-major.
    ssno-ff         all axes scanned in parallel and summed, then a feed-forward network (F-FNO style). The published
                    503,297 parameters contain a second feed-forward network per block that the paper's listing never
                    calls. It is there, idle, to reproduce the number; `block.idle_forecast=False` leaves it out.
    ssno-product    products of scans over all axes instead of gates, and a residual memory. Ours, not the paper's:
                    quadratic terms are products of two linear maps (docs/design/operator.md).
    ssno-selective  modes that follow the input at every point, as Mamba's do; the paper's outlook. There is no kernel:
                    states are carried from point to point, which costs far more than a convolution.

Axes: n frame, c field, h channel. Inside, fields are (h, *grid, n); they are converted once on the way in and out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ssno.base import require_one_of, require_pairs
from ssno.layers.axial import BlockOptions, SpatialScan, boundary_per_axis
from ssno.layers.block import DiscretisedKernels, scan_weights
from ssno.layers.continuation import continue_onto
from ssno.layers.memory import MemoryOptions, TemporalMemory
from ssno.layers.modes import ModeOptions, fast_start, require_circle, require_fading_images
from ssno.layers.pointwise import ChannelMLP, Film, Pointwise, append, coordinates, modulated, without_means
from ssno.layers.space import AxisScan, SpaceMesh
from ssno.models.config import GridConfig, ModelVariant
from ssno.models.operator import MemoryOperator, PrecomputedWeights, Spacing
from ssno.models.pretrained import Pretrained
from ssno.models.reference import ReferenceSSNO
from ssno.native.engine import to_activation_dtype
from ssno.ssm.kernel import PERIODIC, Boundary
from ssno.ssm.resolution import learned_grid, sublattices

Conditioning = Literal["planes", "film"]
REFERENCE_SIZES = (
    *("in_channels", "out_channels", "n_dims", "hidden_channels", "n_layers", "d_state", "head_channels"),
    "reference_spacing",
)
"""Fields in which a model that `ssno.models.reference` covers may differ from the defaults."""
WALL_BOUNDARY: Boundary = "zero"
"""The boundary that the recipe `fast` sets at walls: the best of those compared by the experiment `walls`."""


@dataclass(frozen=True, kw_only=True)
class SSNOConfig(GridConfig):
    """A State Space Neural Operator. The defaults are the paper's model: 203,713 parameters in 1D, 369,665 in 2D."""

    model_name: ClassVar[str] = "ssno"
    origin: ClassVar[str] = "the SS-NO paper"
    variants: ClassVar[Mapping[str, ModelVariant]] = {
        "ssno-uni": ModelVariant(
            "SS-NO with forward scans only: 203,713 parameters in 1D and 369,665 in 2D, as many as SS-NO has.",
            {"block": BlockOptions("unidirectional"), "n_layers": 8},
            smallest={"n_layers": 2},
        ),
        "ssno-vm": ModelVariant(
            "SS-NO that scans the grid as one line, row by row, then column by column: 402,945 parameters in 2D.",
            {"block": BlockOptions("raster")},
        ),
        "ssno-ff": ModelVariant(
            "SS-NO with parallel axes and feed-forward networks: 503,297 parameters in 2D, 436,481 of them in use.",
            {"block": BlockOptions("parallel")},
        ),
        "ssno-product": ModelVariant(
            "SS-NO with products of scans: 170,433 parameters in 1D, 269,825 in 2D.",
            {"block": BlockOptions("product")},
            origin="this project",
        ),
        "ssno-warp": ModelVariant(
            "Products of scans, and features carried along learned displacements: 204,497 parameters in 1D, "
            "304,929 in 2D.",
            {"block": BlockOptions("product", warp_heads=4)},
            origin="this project",
        ),
        "ssno-selective": ModelVariant(
            "SS-NO whose modes follow the input: 273,345 parameters in 1D, 508,929 in 2D.",
            {"modes": ModeOptions(selective=True)},
            origin="the outlook of the SS-NO paper",
        ),
    }
    smallest: ClassVar[Mapping[str, Any]] = {
        "hidden_channels": 16,
        "n_layers": 2,
        "d_state": 8,
        "memory": MemoryOptions(d_state=8),
        "head_channels": 32,
    }

    hidden_channels: int = 64
    """Width of the network."""
    n_layers: int = 4
    """Number of spatial blocks, half before memory, half after."""
    d_state: int = 64
    """States per channel of the spatial scans; even."""
    head_channels: int = 256
    """Hidden width of the projection head."""
    block: BlockOptions = field(default_factory=BlockOptions)
    """The spatial block."""
    modes: ModeOptions = field(default_factory=ModeOptions)
    """The state-space modes of the spatial scans."""
    memory: MemoryOptions = field(default_factory=MemoryOptions)
    """The temporal memory."""
    boundary: Boundary | tuple[Boundary, ...] = "zero"
    """What a scan assumes outside the grid: zeros (zero), periodic images (periodic), a kernel cut to one period
    (periodic-truncated), a mirror image as at a wall, of the same sign (neumann) or the opposite one (dirichlet), or
    a constant per channel (learned). One for all axes, or one for each."""
    conditioning: Conditioning = "planes"
    """How parameters of a trajectory (context fields that are constant over the grid) enter: as constant input channels
    (planes), or as scale and shift of the features after every block (film). Film takes the mean of every context
    field; what is left of a field that varies stays in the input."""
    reference_spacing: tuple[float, ...] | None = None
    """Grid spacing per axis at which the steps dt were learned; None: 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_pairs("d_state", self.d_state)
        require_one_of("conditioning", self.conditioning, get_args(Conditioning))
        for boundary in self.boundaries():
            require_fading_images(boundary, self.modes.damping)
            require_circle(boundary, self.modes.discretisation)
        if self.block.kind == "product" and self.modes.selective:
            raise ValueError("`modes.selective` must be False: products of scans need kernels. Use 'ssno-selective'.")
        if self.conditioning == "film" and self.frames_as_channels:
            raise ValueError(
                "`conditioning='film'` takes the context fields of single frames: set `frames_as_channels=0`."
            )
        if self.reference_spacing is not None:
            relative_spacing(self.reference_spacing, reference=None, n_dims=self.n_dims, name="reference_spacing")

    @property
    def name(self) -> str:
        """The variant that has this block, or these modes."""
        if self.block.kind == "axial":
            return "ssno-selective" if self.modes.selective else "ssno"
        return next(
            name
            for name, variant in self.variants.items()
            if "block" in variant.fields and variant.fields["block"].family == self.block.family
        )

    def recommended(self, *, periodic: bool | Sequence[bool]) -> "SSNOConfig":
        """Modes start as in `ssno.layers.modes.fast_start`; periodic axes have periodic scans and no coordinates.

        A shifted input then gives the shifted forecast. Selective scans support only zero boundaries at walls.
        """
        periodic = [periodic] * self.n_dims if isinstance(periodic, bool) else periodic
        modes = fast_start(self.modes, axes=self.n_dims, periodic=all(periodic))
        if self.modes.damping == "absent":
            return replace(self, modes=modes)
        if all(periodic):
            return replace(self, boundary="periodic", coordinates=False, modes=modes)
        wall: Boundary = "zero" if self.modes.selective else WALL_BOUNDARY
        if not any(periodic):
            return replace(self, boundary=wall, modes=modes)
        boundary: tuple[Boundary, ...] = tuple("periodic" if circle else wall for circle in periodic)
        walls = tuple(axis for axis, circle in enumerate(periodic) if not circle)
        return replace(self, boundary=boundary, coordinates=walls if self.coordinates else False, modes=modes)

    def boundaries(self) -> tuple[Boundary, ...]:
        """The boundary of every axis."""
        return boundary_per_axis(self.boundary, self.n_dims)

    def build_block(self) -> SpatialScan:
        """One spatial block."""
        return self.block.build(
            self.hidden_channels, axes=self.n_dims, d_state=self.d_state, boundary=self.boundary, modes=self.modes
        )

    def build_memory(self) -> TemporalMemory | None:
        """The temporal memory; None without."""
        return self.memory.build(self.hidden_channels, residual=self.block.kind == "product")

    def build(self) -> "SSNO":
        return SSNO(self)


class SSNO(MemoryOperator, Pretrained):
    """State Space Neural Operator: `SSNO(config)`, or `SSNO(in_channels=1, n_dims=2, d_state=32)` with its fields.

    Trajectories are (batch, time, channel, *grid); time step t of the output predicts frame t + 1.
    """

    config_type = SSNOConfig
    config: SSNOConfig

    def __init__(self, config: SSNOConfig | None = None, **fields: Any):
        super().__init__()
        self.config = config = replace(config or SSNOConfig(), **fields)
        early = config.n_layers // 2
        self.lift = Pointwise(config.lifted_channels(), config.hidden_channels)
        self.blocks_before = nn.ModuleList(config.build_block() for _ in range(early))
        self.memory = config.build_memory()
        self.blocks_after = nn.ModuleList(config.build_block() for _ in range(config.n_layers - early))
        self.head = ChannelMLP(config.hidden_channels, hidden=config.head_channels, out_channels=config.out_channels)
        self.film: Film | None = None
        if config.conditioning == "film":
            parameters = config.in_channels - config.out_channels
            if parameters < 1:
                raise ValueError(
                    f"`conditioning='film'` needs context fields, but in_channels = {config.in_channels} and "
                    f"out_channels = {config.out_channels} leave none. Use conditioning='planes'."
                )
            self.film = Film(parameters, channels=config.hidden_channels, blocks=config.n_layers)

    def forward(self, frames: Tensor, *, spacing: Spacing = None) -> Tensor:
        """Predict the frame after each time step of (b, t, c_in, *grid); only one step if frames are channels."""
        frames = self.time_steps(frames)
        weights = self.weights_for(len(frames) * frames.shape[1], frames.shape[3:], spacing=spacing)
        features, film = self.before(frames.flatten(0, 1), weights)  # lift, scan space
        features = self.remember(features, frames.shape[1], weights)  # memory over time
        return self.after(features, film, weights).unflatten(0, frames.shape[:2])  # scan space, project

    def before(self, frames: Float[Tensor, "n c *grid"], weights: PrecomputedWeights) -> tuple[Tensor, Tensor | None]:
        """Lift and scan space; with film, scales and shifts of the second half skip the memory block."""
        film: Tensor | None = None
        if self.film is not None:
            over_pieces = None if self.space is None else self.space.mean
            frames, parameters = without_means(frames, self.config.out_channels, over_pieces=over_pieces)
            film = self.film(parameters)
        fields = frames if weights.coordinates is None else append(weights.coordinates, frames)
        features = to_activation_dtype(self.lift(fields.movedim(0, -1)))
        for number, block in enumerate(self.blocks_before):
            features = self.through(block, features, number, weights)
            if film is not None:
                features = modulated(features, film[:, number])
        return features, None if film is None else film[:, len(self.blocks_before) :]

    def after(self, features: Tensor, skip: Tensor | None, weights: PrecomputedWeights) -> Float[Tensor, "n c *grid"]:
        """Scan space and project."""
        features = to_activation_dtype(features)
        for number, block in enumerate(self.blocks_after):
            features = self.through(block, features, len(self.blocks_before) + number, weights)
            if skip is not None:
                features = modulated(features, skip[:, number])
        return self.head(features).movedim(-1, 0)

    def through(self, block: nn.Module, features: Tensor, number: int, weights: PrecomputedWeights) -> Tensor:
        """One spatial block of all."""
        known: dict[str, Any] = {"spacing": weights.relative, "space": self.space}
        known = known if self.sharded else {"weights": weights.blocks[number]}
        if self.gradient_checkpointing and torch.is_grad_enabled():
            return checkpoint(block, features, use_reentrant=False, **known)
        return block(features, **known)

    def grid_weights(self, grid: Sequence[int], *, spacing: Spacing = None) -> PrecomputedWeights:
        """The kernels of every scan on a grid, and the coordinates of its points; on a mesh, of a piece of a grid."""
        axes, space = self.config.coordinate_axes(), self.space
        whole = grid if space is None else space.whole_grid(grid)
        fields = coordinates(whole, axes, like=self.lift.weight) if axes else None
        relative = self._relative(spacing)
        return PrecomputedWeights(
            memory=self.memory.weights() if self.memory is not None else None,
            blocks=() if self.sharded else block_weights(self.spatial_blocks(), whole, relative, space),
            coordinates=fields if fields is None or space is None else space.cut(fields),
            relative=relative,
        )

    def spatial_blocks(self) -> list[nn.Module]:
        """All of them, in order."""
        return [*self.blocks_before, *self.blocks_after]

    def axis_scans(self, grid: Sequence[int]) -> list[AxisScan]:
        """What is scanned along each axis, by which a mesh of processes is laid out (`ssno.layers.space`)."""
        config = self.config
        if config.block.kind == "raster" or config.block.warp_heads:
            return super().axis_scans(grid)
        directions = 1 if config.block.kind == "unidirectional" else 2
        carries = not config.modes.selective and config.modes.discretisation != "exact"
        return [
            AxisScan(points, boundary, config.d_state // 2, directions, carries)
            for points, boundary in zip(grid, config.boundaries(), strict=True)
        ]

    @property
    def native_bf16(self) -> bool:
        """Scans of one axis after the other with kernels; other blocks and selective modes are left to autocast."""
        return not self.config.modes.selective and self.config.block.kind in ("axial", "unidirectional", "product")

    def idle_parameters(self) -> list[str]:
        """Parameters of the unused networks of 'ssno-ff', on which no output depends."""
        return [name for name, _ in self.named_parameters() if ".forecast." in name]

    def working_grid(self, grid: Sequence[int], *, spacing: Spacing = None) -> tuple[int, ...]:
        """Where a periodic axis is not a union of copies of the learned grid: the next finer one that is.

        At least two copies: then also waves that the given grid lacks have room to grow. A line through the flattened
        grid consists of no such copies.
        """
        if self.config.block.kind == "raster" or self.config.modes.resolution_transfer == "resample":
            return tuple(grid)
        each = zip(grid, self._relative(spacing), self.config.boundaries(), strict=True)
        return tuple(
            working_points(points, step) if boundary in PERIODIC else points for points, step, boundary in each
        )

    def copies(self, grid: Sequence[int], *, spacing: Spacing = None) -> tuple[int, ...]:
        """Of how many interleaved copies of the learned grid each axis consists; they never exchange anything."""
        if self.config.modes.resolution_transfer == "resample":
            return (1,) * self.config.n_dims
        working = self.working_grid(grid, spacing=spacing)
        each = zip(self._relative(spacing), grid, working, strict=True)
        return tuple(sublattices(finer, step * points / finer) or 1 for step, points, finer in each)

    def refer_to(self, grid: Sequence[int], *, spacing: Sequence[float], step: Sequence[float]) -> None:
        """Make a grid the reference of the weights, as it is for training on it (`ssno.layers.continuation`).

        `spacing` is that of the grid; `step` is the same in units of the present reference, one number per axis.
        """
        continue_blocks(self.spatial_blocks(), grid, step)
        self.config = replace(self.config, reference_spacing=tuple(spacing))

    def _relative(self, spacing: Spacing) -> tuple[float, ...]:
        return relative_spacing(spacing, reference=self.config.reference_spacing, n_dims=self.config.n_dims)

    def reference(self) -> ReferenceSSNO:
        """The same network and weights as in `ssno.models.reference`, against which every fast path is tested."""
        config = self.config
        covered = SSNOConfig(
            boundary="zero" if config.boundary == "zero" else "periodic",
            coordinates=bool(config.coordinates),
            memory=replace(config.memory, window=max(1, config.memory.window), kernel="s4d"),
            modes=replace(
                config.modes, damping="learnable", frequency="learnable", discretisation="zoh", selective=False
            ),
            **{name: getattr(config, name) for name in REFERENCE_SIZES},
        )
        if config != covered:
            raise ValueError(
                "The reference has boundary='zero' or 'periodic' along all axes, coordinates of all axes or none, "
                "discretisation='zoh', learnable modes, an S4D memory, residual='sum', and no frames as channels; got "
                f"{config}."
            )
        reference = ReferenceSSNO(
            in_channels=config.in_channels,
            out_channels=config.out_channels,
            n_dims=config.n_dims,
            hidden_channels=config.hidden_channels,
            n_layers=config.n_layers,
            d_state=config.d_state,
            memory_window=config.memory.window,
            memory_d_state=config.memory.d_state,
            head_channels=config.head_channels,
            boundary="zero" if config.boundary == "zero" else "periodic",
            coordinates=bool(config.coordinates),
        )
        reference.load_state_dict(self.state_dict())
        return reference.to(self.lift.weight)


def block_weights(
    blocks: Sequence[Any], grid: Sequence[int], relative: Sequence[float], space: SpaceMesh | None = None
) -> list[Sequence[DiscretisedKernels]]:
    """The kernels of every scan of every block, all sampled together; on a mesh, those of pieces."""
    scans = [block.scans_on(grid, relative) for block in blocks]
    found = iter(scan_weights([scan for each in scans for scan in each]))
    weights = [[next(found) for _ in each] for each in scans]
    if space is not None:
        weights = [space.over_pieces(each) for each in weights]
    return [block.combined(each) for block, each in zip(blocks, weights, strict=True)]


def continue_blocks(blocks: Sequence[Any], grid: Sequence[int], step: Sequence[float]) -> None:
    """Continue the kernels of every block onto a grid whose spacing is `step` times the one they refer to."""
    if all(ratio == 1 for ratio in step):
        return
    for block in blocks:
        for scanned, length, ratio in block.scans_on(grid, step):
            for one in scanned:
                continue_onto(one, length, ratio)


def working_points(points: int, step: float) -> int:
    """The points of a periodic axis that consist of copies of the learned grid, at least `points` unless they do."""
    if sublattices(points, step) is not None:
        return points
    learned, _ = learned_grid(points, step)
    return learned * max(2, math.ceil(points / learned))


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
