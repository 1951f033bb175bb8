"""SS-NO on a sphere: rings scanned around, meridians over the poles, and optionally a learned map.

    push -> lift -> sweeps -> memory -> sweeps -> project -> cut to the data's degrees -> pull

The block is `ssno.layers.sphere_sweep.SphereSweep`, the map `ssno.layers.sphere_map.SphereMap`, the network around them
that of SS-NO. Coordinates are cos(theta) and sin(theta): they tell the latitude, which Coriolis depends on, and leave
the model free of the choice of a prime meridian. Data of a pseudospectral solver have L = ceil(nlat / 3) degrees; what
a network writes beyond them never occurs in training and grows in a rollout, so answers are cut to L (`band_limited`).
The last layer starts at zero: the first steps of training would otherwise be spent on undoing it.

The paper's own reading, a rectangle with coordinates as channels, is plain `ssno`: 370,307 parameters for three fields.

Axes: n frame, c field, h channel, lat, lon.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.base import require_one_of
from ssno.layers.sphere_map import SphereMap
from ssno.layers.sphere_sweep import Colatitude, SphereSweep
from ssno.models.operator import GridWeights, Spacing
from ssno.models.ssno import ScanOperator, SSNOConfig
from ssno.ssm.kernel import Boundary
from ssno.transforms.sphere import SphereTransform
from ssno.transforms.sphere_grid import SphereGrid


@dataclass(frozen=True, kw_only=True)
class SphereSSNOConfig(SSNOConfig):
    """SS-NO whose scans know that the grid is a sphere's: 370,307 parameters for three fields in the paper's size."""

    name: ClassVar[str] = "ssno-sphere"
    origin: ClassVar[str] = "this project, after the SS-NO paper"
    grid_types: ClassVar[tuple[str, ...]] = ("sphere",)

    in_channels: int = 3
    out_channels: int = 3
    n_dims: int = 2
    boundary: Boundary | tuple[Boundary, ...] = "wrapped"
    """Of longitude."""
    colatitude: Colatitude = "pole"
    """Beyond a pole lies the opposite meridian (pole), or nothing (zero)."""
    learned_map: bool = False
    """Work in learned coordinates: 17 more parameters."""
    band_limited: bool = True
    """Cut answers to the degrees that data on this grid have, L = ceil(nlat / 3)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("colatitude", self.colatitude, get_args(Colatitude))
        if self.n_dims != 2:
            raise ValueError(f"`n_dims` on the sphere must be 2 (colatitude, longitude), got {self.n_dims}.")
        if self.boundary != "wrapped":
            raise ValueError(f"`boundary` of longitude on the sphere must be 'wrapped', got {self.boundary!r}.")

    def recommended(self, *, periodic: bool | Sequence[bool]) -> "SphereSSNOConfig":
        """Modes start with the waves and decay lengths of a grid."""
        return replace(self, modes=replace(self.modes, initialisation="grid", smallest_step=0.3, largest_step=3.0))

    def block(self) -> SphereSweep:  # type: ignore[override]
        """Two-way scans along meridians, then rings."""
        return SphereSweep(
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

    def grid_weights(self, grid: Sequence[int], *, spacing: Spacing = None) -> GridWeights:
        """As for SS-NO, with the coordinates of a sphere."""
        weights = super().grid_weights(grid, spacing=spacing)
        if weights.coordinates is None:
            return weights
        theta = torch.linspace(0, torch.pi, grid[0], dtype=self.lift.weight.dtype, device=self.lift.weight.device)
        height = torch.stack([torch.cos(theta), torch.sin(theta)])[..., None]
        return weights._replace(coordinates=height.expand(-1, -1, grid[1]))

    def working_grid(self, grid: Sequence[int], *, spacing: Spacing = None) -> tuple[int, ...]:
        """The given one: a meridian is no circle that waves could be resampled on."""
        return tuple(grid)

    def before(self, frames: Float[Tensor, "n c lat lon"], weights: GridWeights) -> tuple[Tensor, None]:
        """Lift and sweep, in learned coordinates if there are any."""
        return super().before(frames if self.map is None else self.map.push(frames), weights)

    def after(self, features: Tensor, passed: None, weights: GridWeights) -> Float[Tensor, "n c lat lon"]:
        """Sweep and project, back in colatitude and longitude, cut to the degrees of the data."""
        answer = super().after(features, passed, weights)
        if self.map is not None:
            answer = self.map.pull(answer)
        return low_passed(answer) if self.config.band_limited else answer


def low_passed(
    fields: Float[Tensor, "*batch lat lon"], *, degrees: int | None = None
) -> Float[Tensor, "*batch lat lon"]:
    """Fields on the equiangular grid cut to their lowest degrees, by default L = ceil(nlat / 3)."""
    nlat, nlon = fields.shape[-2:]
    transform = transform_of(nlat, nlon, degrees or -(-nlat // 3), fields.dtype).to(fields.device)
    return transform.synthesise(transform.analyse(fields))


@lru_cache(maxsize=8)
def transform_of(nlat: int, nlon: int, degrees: int, dtype: torch.dtype) -> SphereTransform:
    """The transform of a grid, made once, with tables that gradients may pass whoever asked for it first."""
    with torch.inference_mode(False):
        return SphereTransform(SphereGrid(nlat, nlon), degrees=degrees, dtype=dtype)
