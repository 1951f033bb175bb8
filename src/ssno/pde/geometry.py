"""Geometries and axes: what the space axes of fields are, and everything that follows from it.

| object       | `grid_type` in files | axes                                                            |
|--------------|----------------------|-----------------------------------------------------------------|
| `Cartesian`  | cartesian            | a box with a uniform grid; each axis is periodic or has walls   |
| `Sphere`     | sphere               | colatitude from pole to pole, then longitude                    |
| `PointCloud` | points               | one axis that numbers points; their positions are context fields |

The rest of the library asks `trajectories.geometry` instead of comparing names. Only models list the geometries that
they take by `name` (`OperatorConfig.geometries`), because they are in a package that does not import this one.
"""

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from jaxtyping import Float

from ssno.transforms.sphere import SphereGrid

Transform = Literal["fourier", "cosine", "none"]
SHORTEST, LONGEST = 1e-100, 1e100
"""Lengths of an axis, whose squares and inverses are still numbers."""


@dataclass(frozen=True)
class Axis:
    """One axis of a uniform grid: point i sits at `offset + i * spacing`, and `length = points * spacing`.

    `offset` is 0 for grid nodes and half a spacing for cell centres. A periodic axis repeats after `length`.
    """

    name: str
    length: float
    points: int
    offset: float = 0.0
    periodic: bool = True

    def __post_init__(self) -> None:
        if not SHORTEST <= self.length <= LONGEST:
            raise ValueError(
                f"`length` of axis {self.name!r} must be a positive number between {SHORTEST:g} and {LONGEST:g}, got "
                f"{self.length}."
            )
        if self.points < 1:
            raise ValueError(f"`points` of axis {self.name!r} must be at least 1, got {self.points}.")
        if not math.isfinite(self.offset):
            raise ValueError(f"`offset` of axis {self.name!r} must be a finite number, got {self.offset}.")

    @property
    def spacing(self) -> float:
        """Distance between neighbouring points."""
        return self.length / self.points

    def coordinates(self) -> Float[np.ndarray, " l"]:
        """Positions of the points, float64."""
        return self.offset + self.spacing * np.arange(self.points, dtype=np.float64)


class Geometry(abc.ABC):
    """The interface; `Cartesian`, `Sphere` and `PointCloud` are the three geometries."""

    name: ClassVar[str]
    """The attribute `grid_type` of files, and what models list in `geometries`."""
    map_axes: ClassVar[tuple[str, ...]] = ()
    """Labels of the axes where pictures are maps."""
    is_box: ClassVar[bool] = False
    """Fields can be reflected and resampled to other grids."""
    can_coarsen: ClassVar[bool] = True
    """Every second point is a grid, too."""
    is_steady: ClassVar[bool] = False
    """A trajectory is a case: the inlet flow, which is no state and counts in no statistics, and the steady flow."""
    has_wall: ClassVar[bool] = False
    """Context fields `normal_x` and `normal_y` mark points on the wall of a body; pictures show the flow past it."""

    def __str__(self) -> str:
        return self.name

    @abc.abstractmethod
    def transforms(self, periodic: Sequence[bool]) -> tuple[Transform, ...]:
        """Which transform takes each axis apart into waves."""

    def quadrature_weights(self, grid: Sequence[int]) -> Float[np.ndarray, "lat 1"] | None:
        """Share of the domain per point, to broadcast over the grid; None where all points weigh the same."""
        return None

    def picture(
        self, frames: Float[np.ndarray, "t *grid"], lengths: Sequence[float]
    ) -> tuple[np.ndarray, Sequence[float], Sequence[float] | None]:
        """Frames as they are drawn, horizontal axis first, and the lengths and first coordinates of their axes."""
        return frames, lengths, None

    def no_spectrum(self, periodic: Sequence[bool]) -> str:
        """Why there is no energy spectrum of such fields; empty if there is one."""
        return "No energy spectra: they need a box with a regular grid."

    def require_box(self, option: str, dataset: str) -> None:
        """Refuse an option for data whose geometry is no box."""
        if not self.is_box:
            raise ValueError(
                f"`{option}` needs data on a regular grid of a box, but {dataset!r} has the geometry {self.name!r}. "
                f"Leave `{option}` out."
            )


@final
@dataclass(frozen=True)
class Cartesian(Geometry):
    """A box with a uniform grid."""

    name: ClassVar[str] = "cartesian"
    is_box: ClassVar[bool] = True

    def transforms(self, periodic: Sequence[bool]) -> tuple[Transform, ...]:
        """Fourier along periodic axes, cosine between walls."""
        return tuple("fourier" if circle else "cosine" for circle in periodic)

    def no_spectrum(self, periodic: Sequence[bool]) -> str:
        """Spectra are taken along periodic axes."""
        return "" if any(periodic) else "No energy spectra: no axis is periodic."


@final
@dataclass(frozen=True)
class Sphere(Geometry):
    """Rings of equally spaced points, poles included; waves run along circles of latitude."""

    name: ClassVar[str] = "sphere"
    map_axes: ClassVar[tuple[str, ...]] = ("longitude (°)", "latitude (°)")

    def transforms(self, periodic: Sequence[bool]) -> tuple[Transform, ...]:
        """Fourier along longitude."""
        if len(periodic) != 2:  # a file may call anything a sphere
            return Cartesian().transforms(periodic)
        return tuple("fourier" if circle else "none" for circle in periodic)

    def picture(
        self, frames: Float[np.ndarray, "t *grid"], lengths: Sequence[float]
    ) -> tuple[np.ndarray, Sequence[float], Sequence[float] | None]:
        """A map in degrees, north up."""
        return frames[:, ::-1].swapaxes(1, 2), (360.0, 180.0), (0.0, -90.0)

    def quadrature_weights(self, grid: Sequence[int]) -> Float[np.ndarray, "lat 1"] | None:
        """The weights of the rings, summing to 1 over all points."""
        return SphereGrid(grid[0], grid[1]).area[:, None] if len(grid) == 2 else None


@final
@dataclass(frozen=True)
class PointCloud(Geometry):
    """Points in no order around a body."""

    name: ClassVar[str] = "points"
    can_coarsen: ClassVar[bool] = False
    is_steady: ClassVar[bool] = True
    has_wall: ClassVar[bool] = True

    def transforms(self, periodic: Sequence[bool]) -> tuple[Transform, ...]:
        """None: neighbours in the list are not neighbours in space."""
        return tuple("none" for _ in periodic)


CARTESIAN, SPHERE, POINT_CLOUD = Cartesian(), Sphere(), PointCloud()
"""The three kinds of grids."""
GEOMETRIES: dict[str, Geometry] = {one.name: one for one in (CARTESIAN, SPHERE, POINT_CLOUD)}
"""By the name in files."""
