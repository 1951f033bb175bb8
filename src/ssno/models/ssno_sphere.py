"""SS-NO on a sphere: rings scanned around and meridians over the poles, or all great circles at once.

    push -> lift -> scans -> memory -> scans -> project -> cut to the data's degrees -> pull

With `scans="axes"` the block is `ssno.layers.sphere.SphereScan`, on the grid of the data, optionally in learned
coordinates (`ssno.layers.sphere.SphereMap`). With `scans="great-circles"` it is
`ssno.layers.sphere.GreatCircleScan`, which filters by degree, on the smallest Gauss grid whose products do not
alias: 16 x 32 for data on 32 x 64, so a step costs what SFNO's costs. With `scans="products"` (ssno-sphere-product)
the block is `ssno.layers.sphere.GreatCircleProduct` on the same grid. The network around them is that of SS-NO.

Coordinates are cos(theta) and sin(theta): Coriolis depends on the latitude, and the model does not depend on the choice
of a prime meridian. Data of a pseudospectral solver have L = ceil(nlat / 3) degrees; what
a network predicts above them never occurs in training and grows in a rollout, so predictions are cut to L degrees.
The last layer starts at zero: the first steps of training would otherwise be spent on undoing it. Gates start at a
tenth of their usual size: eight scans that each add as much as their input do not learn at all in short training.

The paper's own reading, a rectangle with coordinates as channels, is plain `ssno`: 370,307 parameters for three fields.

Axes: n frame, c field, h channel, lat, lon.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.base import require_one_of, require_pairs
from ssno.layers.axial import SpatialScan
from ssno.layers.block import GatedBlock
from ssno.layers.memory import MemoryOptions
from ssno.layers.modes import STEPS, ModeOptions, require_circle, require_fading_images
from ssno.layers.pointwise import ChannelMLP, Pointwise, append
from ssno.layers.sphere import GreatCircleProduct, GreatCircleScan, SphereMap, SphereScan
from ssno.models.config import GridConfig, ModelVariant
from ssno.models.operator import MemoryOperator, PrecomputedWeights, Spacing
from ssno.models.pretrained import Pretrained
from ssno.models.ssno import SSNOConfig, block_weights, continue_blocks, relative_spacing
from ssno.ssm.resolution import sublattices
from ssno.transforms.sphere import SphereGrid, transform_of

Scans = Literal["axes", "great-circles", "products"]
STARTING_GATE = 0.1
"""Size of the gates' weights at the start, in units of PyTorch's."""


@dataclass(frozen=True, kw_only=True)
class SphereSSNOConfig(GridConfig):
    """SS-NO whose scans know that the grid is a sphere's: 370,307 parameters for three fields in the paper's size."""

    model_name: ClassVar[str] = "ssno-sphere"
    origin: ClassVar[str] = "this project, after the SS-NO paper"
    geometries: ClassVar[tuple[str, ...]] = ("sphere",)
    smallest: ClassVar[Mapping[str, Any]] = SSNOConfig.smallest
    variants: ClassVar[Mapping[str, ModelVariant]] = {
        "ssno-sphere-product": ModelVariant(
            "SS-NO on the sphere with products of scans along great circles: 534,659 parameters for three fields.",
            {"scans": "products"},
            origin="this project",
        ),
    }

    in_channels: int = 3
    out_channels: int = 3
    n_dims: int = 2
    coordinates: bool = True
    """Append cos(theta) and sin(theta) of the colatitude to the input."""
    hidden_channels: int = 64
    """Width of the network."""
    n_layers: int = 4
    """Number of spatial blocks, half before memory, half after."""
    d_state: int = 64
    """States per channel of the spatial scans; even."""
    head_channels: int = 256
    """Hidden width of the projection head."""
    modes: ModeOptions = field(default_factory=ModeOptions)
    """The state-space modes of the spatial scans."""
    memory: MemoryOptions = field(default_factory=MemoryOptions)
    """The temporal memory."""
    reference_spacing: tuple[float, ...] | None = None
    """Grid spacing per axis at which the steps are in grid units; None makes `spacing` itself the step factor."""
    scans: Scans = "axes"
    """Scan meridians, then rings (axes); or all great circles at once (great-circles), on a Gauss grid half as fine; or
    multiply two maps of such scans (products)."""
    learned_map: bool = False
    """Work in learned coordinates: 17 more parameters."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_pairs("d_state", self.d_state)
        require_one_of("scans", self.scans, get_args(Scans))
        require_fading_images("periodic", self.modes.damping)
        require_circle("periodic", self.modes.discretisation)
        if self.scans != "axes" and self.learned_map:
            raise ValueError(f"`learned_map=True` needs scans='axes', got scans={self.scans!r}.")
        if self.modes.selective:
            raise ValueError("`modes.selective` on the sphere must be False: states are not carried around a circle.")
        if self.n_dims != 2:
            raise ValueError(f"`n_dims` on the sphere must be 2 (colatitude, longitude), got {self.n_dims}.")
        if self.reference_spacing is not None:
            relative_spacing(self.reference_spacing, reference=None, n_dims=2, name="reference_spacing")

    @property
    def name(self) -> str:
        return "ssno-sphere-product" if self.scans == "products" else self.model_name

    def recommended(self, *, periodic: bool | Sequence[bool]) -> "SphereSSNOConfig":
        """Modes start with the waves and decay lengths of a grid."""
        smallest, largest = STEPS
        modes = replace(self.modes, initialisation="grid", dt_min=smallest, dt_max=largest)
        return replace(self, modes=modes)

    def build_block(self) -> SpatialScan:
        """Two-way scans along meridians, then rings; or along great circles; or products of the latter."""
        if self.scans == "products":
            return GreatCircleProduct(self.hidden_channels, d_state=self.d_state, options=self.modes)
        if self.scans == "great-circles":
            return GreatCircleScan(self.hidden_channels, d_state=self.d_state, options=self.modes)
        return SphereScan(self.hidden_channels, d_state=self.d_state, options=self.modes)

    def build(self) -> "SphereSSNO":
        return SphereSSNO(self)


class SphereSSNO(MemoryOperator, Pretrained):
    """State Space Neural Operator on a sphere: `SphereSSNO(config)`, or with its fields."""

    config_type = SphereSSNOConfig
    config: SphereSSNOConfig

    def __init__(self, config: SphereSSNOConfig | None = None, **fields: Any):
        super().__init__()
        self.config = config = replace(config or SphereSSNOConfig(), **fields)
        early = config.n_layers // 2
        self.lift = Pointwise(config.lifted_channels(), config.hidden_channels)
        self.blocks_before = nn.ModuleList(config.build_block() for _ in range(early))
        self.memory = config.memory.build(config.hidden_channels)
        self.blocks_after = nn.ModuleList(config.build_block() for _ in range(config.n_layers - early))
        self.head = ChannelMLP(config.hidden_channels, hidden=config.head_channels, out_channels=config.out_channels)
        self.map = SphereMap() if config.learned_map else None
        nn.init.zeros_(self.head.narrow.weight)  # a forecaster of changes starts as persistence
        nn.init.zeros_(self.head.narrow.bias)
        with torch.no_grad():
            for scan in (
                self.blocks.modules() if config.scans != "products" else ()
            ):  # products start small by themselves
                if isinstance(scan, GatedBlock) and scan.mix is not None:
                    scan.mix.weight.mul_(STARTING_GATE)
                    scan.mix.bias.mul_(STARTING_GATE)

    @property
    def blocks(self) -> nn.ModuleList:
        """All spatial blocks."""
        return nn.ModuleList((*self.blocks_before, *self.blocks_after))

    def before(self, frames: Float[Tensor, "n c lat lon"], weights: PrecomputedWeights) -> tuple[Tensor, Tensor]:
        """Lift and scan, on the inner grid or in learned coordinates; an empty tensor carries the data's grid along."""
        grid = SphereGrid(frames.shape[2], frames.shape[3])
        if self.config.scans != "axes":
            inside = resampled(frames, grid, self.inner_grid(frames.shape[2:]))
        else:
            inside = frames if self.map is None else self.map.push(frames)
        fields = inside if weights.coordinates is None else append(weights.coordinates, inside)
        features = self.lift(fields.movedim(0, -1))
        for block, known in zip(self.blocks_before, weights.blocks, strict=False):
            features = block(features, weights=known)
        return features, frames[:, :0]

    def after(self, features: Tensor, skip: Tensor, weights: PrecomputedWeights) -> Float[Tensor, "n c lat lon"]:
        """Scan and project, back in colatitude and longitude, cut to the degrees of the data."""
        for block, known in zip(self.blocks_after, weights.blocks[len(self.blocks_before) :], strict=True):
            features = block(features, weights=known)
        answer = self.head(features).movedim(-1, 0)
        if self.config.scans != "axes":
            grid = SphereGrid(skip.shape[2], skip.shape[3])
            return resampled(answer, self.inner_grid(skip.shape[2:]), grid)
        return low_passed(answer if self.map is None else self.map.pull(answer))

    def grid_weights(self, grid: Sequence[int], *, spacing: Spacing = None) -> PrecomputedWeights:
        """The kernels of every scan on a grid, and the coordinates of its latitudes."""
        inner = self.inner_grid(grid)
        theta = torch.as_tensor(inner.colatitudes, dtype=self.lift.weight.dtype, device=self.lift.weight.device)
        height = torch.stack([torch.cos(theta), torch.sin(theta)])[..., None]
        return PrecomputedWeights(
            memory=self.memory.weights() if self.memory is not None else None,
            blocks=block_weights(list(self.blocks), (inner.nlat, inner.nlon), self._relative(spacing)),
            coordinates=height.expand(-1, -1, inner.nlon) if self.config.coordinates else None,
        )

    def copies(self, grid: Sequence[int], *, spacing: Spacing = None) -> tuple[int, ...]:
        """Of how many interleaved copies of the learned grid each axis consists; they never exchange anything."""
        if self.config.modes.resolution_transfer == "resample":
            return (1, 1)
        return tuple(sublattices(n, step) or 1 for n, step in zip(grid, self._relative(spacing), strict=True))

    def refer_to(self, grid: Sequence[int], *, spacing: Sequence[float], step: Sequence[float]) -> None:
        """As for SS-NO, on the grid where the scans are done."""
        inner = self.inner_grid(grid)
        continue_blocks(list(self.blocks), (inner.nlat, inner.nlon), step)
        self.config = replace(self.config, reference_spacing=tuple(spacing))

    def _relative(self, spacing: Spacing) -> tuple[float, ...]:
        return relative_spacing(spacing, reference=self.config.reference_spacing, n_dims=2)

    def inner_grid(self, grid: Sequence[int]) -> SphereGrid:
        """Where the scans are done: on the data's grid, or on the Gauss grid that products of its degrees need."""
        nlat, nlon = grid
        if self.config.scans == "axes":
            return SphereGrid(nlat, nlon)
        needed = 3 * (degrees_of(nlat) - 1) + 1
        rings = 2 * -(-needed // 4)  # half of what is needed, even
        return SphereGrid(rings, 2 * rings, "gauss")


def degrees_of(nlat: int) -> int:
    """How many degrees data of a pseudospectral solver have on `nlat` rings: L = ceil(nlat / 3)."""
    return -(-nlat // 3)


def resampled(
    fields: Float[Tensor, "n c lat lon"], source: SphereGrid, target: SphereGrid
) -> Float[Tensor, "n c lat2 lon2"]:
    """Fields on another grid, cut to the degrees that data on the equiangular one of the two have."""
    degrees = degrees_of(source.nlat if source.kind == "equiangular" else target.nlat)
    there, here = (
        transform_of(one.nlat, one.nlon, degrees, fields.dtype, kind=one.kind, device=fields.device)
        for one in (source, target)
    )
    return here.synthesise(there.analyse(fields))


def low_passed(fields: Float[Tensor, "*batch lat lon"]) -> Float[Tensor, "*batch lat lon"]:
    """Fields on the equiangular grid cut to their lowest L = ceil(nlat / 3) degrees."""
    nlat, nlon = fields.shape[-2:]
    transform = transform_of(nlat, nlon, degrees_of(nlat), fields.dtype, device=fields.device)
    return transform.synthesise(transform.analyse(fields))
