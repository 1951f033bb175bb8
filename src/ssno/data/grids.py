"""Axes of a grid from what users and files give: lengths, or a list of coordinates.

Files store coordinates; we store (length, points, offset), so a coordinate array must be uniform. A periodic
axis of N points spaced dx has length N dx, whether the points are nodes (offset 0) or cell centres (offset
dx/2).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float

from ssno.base.checks import did_you_mean, require_one_of
from ssno.data.errors import DataError
from ssno.pde.geometry import Axis
from ssno.transforms.periodic import resample

Periodic = bool | tuple[str, ...] | tuple[bool, ...]
"""Which axes repeat: all or none, their names, or a flag for each."""
UNIFORM = 1e-3  # of a spacing: coordinates stored in float32, or as rounded decimals, still count as uniform


def box(
    names: Sequence[str],
    points: Sequence[int],
    *,
    lengths: Sequence[float | int] | None = None,
    offsets: Sequence[float | int] | None = None,
    periodic: Periodic | Sequence[bool] | str = True,
) -> tuple[Axis, ...]:
    """Axes of a box with the given lengths, 1 each if not given."""
    for label, values in (("lengths", lengths), ("offsets", offsets)):
        if values is not None and len(values) != len(names):
            raise DataError(f"`{label}` must have one number per space axis {tuple(names)}, got {tuple(values)}.")
    ones, zeros = [1.0] * len(names), [0.0] * len(names)
    columns = zip(names, points, lengths or ones, offsets or zeros, periodic_flags(periodic, names), strict=True)
    return tuple(Axis(name, float(length), count, float(offset), flag) for name, count, length, offset, flag in columns)


def periodic_flags(periodic: Periodic | Sequence[bool] | str, names: Sequence[str]) -> tuple[bool, ...]:
    """Whether each of the axes called `names` repeats."""
    if isinstance(periodic, bool):
        return (periodic,) * len(names)
    chosen = (periodic,) if isinstance(periodic, str) else tuple(periodic)
    if chosen in (("all",), ("none",)):
        return (chosen == ("all",),) * len(names)
    if all(isinstance(flag, bool) for flag in chosen) and len(chosen) == len(names):
        return chosen  # type: ignore[return-value]
    if unknown := [name for name in chosen if name not in names]:
        raise DataError(
            f"`periodic` must be axis names ({', '.join(names)}), 'all', 'none', or a flag for each axis; "
            f"got {chosen}.{did_you_mean(str(unknown[0]), names)}"
        )
    return tuple(name in chosen for name in names)


def uniform_step(values: Float[np.ndarray, " l"], *, what: str) -> float:
    """The constant difference of an increasing array, or an error that names `what`."""
    if not np.isfinite(values).all():
        raise DataError(f"{what} contains values that are not finite.")
    if len(values) < 2:
        raise DataError(f"{what} has {len(values)} value, at least 2 are needed for a spacing.")
    step = float(values[-1] - values[0]) / (len(values) - 1)
    if step <= 0:
        raise DataError(f"{what} must increase, got {values[0]:.6g} ... {values[-1]:.6g}.")
    worst = float(np.abs(values - values[0] - step * np.arange(len(values))).max())
    # Single-precision coordinates far from zero carry an error that does not shrink with the spacing.
    if worst > UNIFORM * step + 4 * float(np.finfo(np.float32).eps) * float(np.abs(values).max()):
        raise DataError(f"{what} is not uniform: it departs from equal spacing {step:.6g} by {worst:.3g}.")
    return step


def axis_from_coordinates(
    name: str, coordinates: Float[np.ndarray, " l"], *, periodic: bool = True, what: str | None = None
) -> Axis:
    """An axis through stored coordinates, taken as nodes or cell centres as they come."""
    step = uniform_step(coordinates, what=what or f"coordinate {name!r}")
    points = len(coordinates)
    return Axis(name, length=_round(step * points), points=points, offset=_round(coordinates[0]), periodic=periodic)


def _round(value: float) -> float:
    """Seven digits are all that a float32 coordinate carries; 0.99999994 was meant to be 1."""
    return float(f"{value:.7g}")


# Fewer grid points: strided, averaged or spectral.
#
# From N to M points along an axis of length L:
#
#     stride    v_i = u_{i N/M}                                what benchmarks call uniform subsampling; aliases
#     mean      v_i = (M/N) sum_{j < N/M} u_{i N/M + j}        cell averages of a coarser finite-volume grid
#     spectral  v_i = sum_{|k| <= M/2} u_k exp(2 pi i k x_i/L) the band-limited part; periodic axes only
#
# Stride and mean need N to be a multiple of M; spectral takes any M <= N. Stride and spectral keep point 0
# where it is; an average belongs to the middle of its points, so `mean` moves the offset by (N/M - 1)/2
# spacings. Spectral is `ssno.transforms.periodic.resample`, which forecasts go through too.

How = Literal["stride", "mean", "spectral"]
Points = int | tuple[int, ...]
"""Of a grid: along the first axis, others in proportion; or one number per axis."""


@dataclass(frozen=True)
class Reduction:
    """Bring a grid to `points` along each axis. `applied_to` gives the new axes."""

    points: tuple[int, ...]
    how: How

    def applied_to(self, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        """The axes of the reduced grid. Raises if the grid cannot be reduced this way."""
        require_one_of("reduction", self.how, get_args(How))
        return tuple(self._reduced(axis, points) for axis, points in zip(axes, self.points, strict=True))

    def _reduced(self, axis: Axis, points: int) -> Axis:
        if not 1 <= points <= axis.points:
            raise ValueError(f"`resolution` along {axis.name} must be between 1 and {axis.points}, got {points}.")
        if self.how == "spectral":
            if not axis.periodic:
                raise ValueError(f"Spectral reduction needs a periodic axis, {axis.name} is not. Use 'mean'.")
            return replace(axis, points=points)
        if axis.points % points:
            raise ValueError(
                f"`resolution` along {axis.name} must divide {axis.points} for reduction {self.how!r}, "
                f"got {points}. Periodic grids can have other sizes with the reduction 'spectral'."
            )
        shift = (axis.points // points - 1) / 2 * axis.spacing if self.how == "mean" else 0.0
        return replace(axis, points=points, offset=axis.offset + shift)

    def __call__(self, field: Float[np.ndarray, "n t c *grid"]) -> Float[np.ndarray, "n t c *coarse"]:
        """Reduce every field of an array whose last axes are the grid."""
        if self.how == "spectral":
            return resample(torch.from_numpy(field.astype(np.float64)), self.points).numpy()
        for dim, points in zip(range(-len(self.points), 0), self.points, strict=True):
            if field.shape[dim] != points:
                field = _REDUCERS[self.how](field, points, dim)
        return field


def strides(axes: tuple[Axis, ...], points: tuple[int, ...]) -> tuple[int, ...]:
    """The step along each axis that takes its points to `points`."""
    return tuple(axis.points // new for axis, new in zip(axes, points, strict=True))


def fitting(axes: tuple[Axis, ...], points: Points) -> How:
    """How to get to any coarser grid: every n-th point where that fits on all axes, else the band-limited part."""
    wanted = coarse_points(axes, points)
    return "stride" if all(axis.points % max(1, n) == 0 for axis, n in zip(axes, wanted, strict=True)) else "spectral"


def coarse_points(axes: tuple[Axis, ...], points: Points) -> tuple[int, ...]:
    """`points` per axis. One number means the first axis; the others shrink by the same factor."""
    if isinstance(points, tuple) and len(points) == 1:
        points = points[0]
    if isinstance(points, tuple):
        if len(points) != len(axes):
            raise ValueError(f"`resolution` must have one number per axis ({len(axes)}), got {points}.")
        return points
    sizes = [points * axis.points / axes[0].points for axis in axes]
    if any(size != int(size) for size in sizes):
        grid = tuple(axis.points for axis in axes)
        raise ValueError(f"`resolution` {points} does not scale the grid {grid} evenly. Give one number per axis.")
    return tuple(int(size) for size in sizes)


def _stride(field: np.ndarray, points: int, dim: int) -> np.ndarray:
    return np.take(field, np.arange(0, field.shape[dim], field.shape[dim] // points), axis=dim)


def _mean(field: np.ndarray, points: int, dim: int) -> np.ndarray:
    lines = np.moveaxis(field, dim, -1)
    cells = lines.reshape(*lines.shape[:-1], points, lines.shape[-1] // points)
    return np.moveaxis(cells.mean(axis=-1, dtype=np.float64), -1, dim)


_REDUCERS = {"stride": _stride, "mean": _mean}
