"""SS-NO on a sphere: rings scanned around and meridians over the poles, or all great circles at once.

    push -> lift -> sweeps -> memory -> sweeps -> project -> cut to the data's degrees -> pull

With `scans="axes"` the block is `ssno.layers.sphere.SphereScan`, on the grid of the data, optionally in learned
coordinates (`ssno.layers.sphere.SphereMap`). With `scans="great-circles"` it is
`ssno.layers.sphere.GreatCircleScan`, which filters by degree, on the smallest Gauss grid whose products do not
alias: 16 x 32 for data on 32 x 64, so a step costs what SFNO's costs. The network around them is that of SS-NO.

Coordinates are cos(theta) and sin(theta): they tell the latitude, which Coriolis depends on, and leave the model free
of the choice of a prime meridian. Data of a pseudospectral solver have L = ceil(nlat / 3) degrees; what
a network writes beyond them never occurs in training and grows in a rollout, so answers are cut to L (`band_limited`).
The last layer starts at zero: the first steps of training would otherwise be spent on undoing it. Gates start at a
tenth of their usual size: eight scans that each add as much as they are given do not learn at all in short training.

The paper's own reading, a rectangle with coordinates as channels, is plain `ssno`: 370,307 parameters for three fields.

Axes: n frame, c field, h channel, lat, lon.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.base import require_one_of
from ssno.layers.axial import SpatialScan
from ssno.layers.block import GatedBlock
from ssno.layers.modes import STEPS
from ssno.layers.sphere import Colatitude, GreatCircleScan, SphereMap, SphereScan
from ssno.models.operator import PrecomputedWeights, Spacing
from ssno.models.ssno import ScanOperator, SSNOConfig
from ssno.ssm.kernel import Boundary
from ssno.transforms.sphere import SphereGrid, transform_of

Scans = Literal["axes", "great-circles"]
STARTING_GATE = 0.1
"""Size of the gates' weights at the start, in units of PyTorch's."""


@dataclass(frozen=True, kw_only=True)
class SphereSSNOConfig(SSNOConfig):
    """SS-NO whose scans know that the grid is a sphere's: 370,307 parameters for three fields in the paper's size."""

    name: ClassVar[str] = "ssno-sphere"
    origin: ClassVar[str] = "this project, after the SS-NO paper"
    grid_types: ClassVar[tuple[str, ...]] = ("sphere",)

    in_channels: int = 3
    out_channels: int = 3
    n_dims: int = 2
    boundary: Boundary | tuple[Boundary, ...] = "periodic"
    """Of longitude."""
    colatitude: Colatitude = "pole"
    """Beyond a pole lies the opposite meridian (pole), or nothing (zero)."""
    scans: Scans = "axes"
    """Scan meridians, then rings (axes), or all great circles at once (great-circles), on a Gauss grid half as fine."""
    learned_map: bool = False
    """Work in learned coordinates: 17 more parameters."""
    band_limited: bool = True
    """Cut answers to the degrees that data on this grid have, L = ceil(nlat / 3)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("colatitude", self.colatitude, get_args(Colatitude))
        require_one_of("scans", self.scans, get_args(Scans))
        if self.scans == "great-circles" and (self.learned_map or self.colatitude != "pole" or not self.band_limited):
            raise ValueError(
                "`scans='great-circles'` has neither poles nor a map to learn, and its answers are band-limited: leave "
                "`colatitude`, `learned_map` and `band_limited` as they are."
            )
        if self.modes.selective:
            raise ValueError("`modes.selective` on the sphere must be False: states are not carried around a circle.")
        if self.smallest_steps or self.largest_steps:
            raise ValueError("Meridians and rings of a sphere start alike: set `modes.dt_min`, `dt_max`.")
        if self.conditioning != "planes":
            raise ValueError(f"`conditioning` on the sphere must be 'planes', got {self.conditioning!r}.")
        if self.n_dims != 2:
            raise ValueError(f"`n_dims` on the sphere must be 2 (colatitude, longitude), got {self.n_dims}.")
        if self.boundary != "periodic":
            raise ValueError(f"`boundary` of longitude on the sphere must be 'periodic', got {self.boundary!r}.")

    def recommended(self, *, periodic: bool | Sequence[bool]) -> "SphereSSNOConfig":
        """Modes start with the waves and decay lengths of a grid."""
        smallest, largest = STEPS
        modes = replace(self.modes, initialisation="grid", dt_min=smallest, dt_max=largest)
        return replace(self, modes=modes)

    def block(self) -> SpatialScan:  # type: ignore[override]
        """Two-way scans along meridians, then rings; or along great circles."""
        if self.scans == "great-circles":
            return GreatCircleScan(
                self.hidden_channels, d_state=self.d_state, residual=self.residual, options=self.modes
            )
        return SphereScan(
            self.hidden_channels,
            d_state=self.d_state,
            residual=self.residual,
            colatitude=self.colatitude,
            options=self.modes,
        )

    def build(self) -> "SphereSSNO":  # type: ignore[override]
        return SphereSSNO(self)


class SphereSSNO(ScanOperator):
    """State Space Neural Operator on a sphere: `SphereSSNO(config)`, or with its fields."""

    config_type = SphereSSNOConfig
    config: SphereSSNOConfig

    def __init__(self, config: SphereSSNOConfig | None = None, **fields: Any):
        super().__init__(config, **fields)
        self.map = SphereMap() if self.config.learned_map else None
        nn.init.zeros_(self.head.narrow.weight)  # a forecaster of changes starts as persistence
        nn.init.zeros_(self.head.narrow.bias)
        with torch.no_grad():
            for block in (*self.blocks_before, *self.blocks_after):
                for scan in block.modules():
                    if isinstance(scan, GatedBlock):
                        scan.mix.weight.mul_(STARTING_GATE)
                        scan.mix.bias.mul_(STARTING_GATE)

    def grid_weights(self, grid: Sequence[int], *, spacing: Spacing = None) -> PrecomputedWeights:
        """As for SS-NO, with the coordinates of a sphere."""
        inner = self.inner_grid(grid)
        weights = super().grid_weights((inner.nlat, inner.nlon), spacing=spacing)
        if weights.coordinates is None:
            return weights
        theta = torch.as_tensor(inner.colatitudes, dtype=self.lift.weight.dtype, device=self.lift.weight.device)
        height = torch.stack([torch.cos(theta), torch.sin(theta)])[..., None]
        return weights._replace(coordinates=height.expand(-1, -1, inner.nlon))

    def inner_grid(self, grid: Sequence[int]) -> SphereGrid:
        """Where the scans are done: on the data's grid, or on the Gauss grid that products of its degrees need."""
        nlat, nlon = grid
        if self.config.scans == "axes":
            return SphereGrid(nlat, nlon)
        needed = 3 * (degrees_of(nlat) - 1) + 1
        rings = 2 * -(-needed // 4)  # half of what is needed, even
        return SphereGrid(rings, 2 * rings, "gauss")

    def refer_to(self, grid: Sequence[int], *, spacing: Sequence[float], step: Sequence[float]) -> None:
        """As for SS-NO, on the grid where the scans are done."""
        inner = self.inner_grid(grid)
        super().refer_to((inner.nlat, inner.nlon), spacing=spacing, step=step)

    def working_grid(self, grid: Sequence[int], *, spacing: Spacing = None) -> tuple[int, ...]:
        """The given one: a meridian is no circle that waves could be resampled on."""
        return tuple(grid)

    def before(self, frames: Float[Tensor, "n c lat lon"], weights: PrecomputedWeights) -> tuple[Tensor, Any]:
        """Lift and sweep, in learned coordinates if there are any, or on the inner grid; the data's grid passes by."""
        grid = SphereGrid(frames.shape[2], frames.shape[3])
        if self.config.scans == "great-circles":
            inside = resampled(frames, grid, self.inner_grid(frames.shape[2:]))
        else:
            inside = frames if self.map is None else self.map.push(frames)
        return super().before(inside, weights)[0], frames[:, :0]

    def after(self, features: Tensor, passed: Any, weights: PrecomputedWeights) -> Float[Tensor, "n c lat lon"]:
        """Sweep and project, back in colatitude and longitude, cut to the degrees of the data."""
        answer = super().after(features, None, weights)
        if self.config.scans == "great-circles":
            grid = SphereGrid(passed.shape[2], passed.shape[3])
            return resampled(answer, self.inner_grid(passed.shape[2:]), grid)
        if self.map is not None:
            answer = self.map.pull(answer)
        return low_passed(answer) if self.config.band_limited else answer


def degrees_of(nlat: int) -> int:
    """How many degrees data of a pseudospectral solver have on `nlat` rings: L = ceil(nlat / 3)."""
    return -(-nlat // 3)


def resampled(
    fields: Float[Tensor, "n c lat lon"], source: SphereGrid, target: SphereGrid
) -> Float[Tensor, "n c lat2 lon2"]:
    """Fields on another grid, cut to the degrees that data on the equiangular one of the two have."""
    degrees = degrees_of(source.nlat if source.kind == "equiangular" else target.nlat)
    there, here = (
        transform_of(one.nlat, one.nlon, degrees, fields.dtype, one.kind).to(fields.device) for one in (source, target)
    )
    return here.synthesise(there.analyse(fields))


def low_passed(fields: Float[Tensor, "*batch lat lon"]) -> Float[Tensor, "*batch lat lon"]:
    """Fields on the equiangular grid cut to their lowest L = ceil(nlat / 3) degrees."""
    nlat, nlon = fields.shape[-2:]
    transform = transform_of(nlat, nlon, degrees_of(nlat), fields.dtype).to(fields.device)
    return transform.synthesise(transform.analyse(fields))
