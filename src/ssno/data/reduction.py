"""Fewer grid points: strided, averaged or spectral.

From N to M points along an axis of length L:

    stride    v_i = u_{i N/M}                                what benchmarks call uniform subsampling; aliases
    mean      v_i = (M/N) sum_{j < N/M} u_{i N/M + j}        cell averages of a coarser finite-volume grid
    spectral  v_i = sum_{|k| <= M/2} u_k exp(2 pi i k x_i/L) the band-limited part; periodic axes only

Stride and mean need N to be a multiple of M; spectral takes any M <= N. Stride and spectral keep point 0
where it is; an average belongs to the middle of its points, so `mean` moves the offset by (N/M - 1)/2
spacings. Spectral is `ssno.transforms.periodic.resample`, which forecasts go through too.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float

from ssno.pde.problems.problem import Axis
from ssno.transforms.periodic import resample

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
        if self.how not in ("stride", "mean", "spectral"):
            raise ValueError(f"`reduction` must be 'stride', 'mean' or 'spectral', got {self.how!r}.")
        return tuple(self._reduced(axis, points) for axis, points in zip(axes, self.points, strict=True))

    def _reduced(self, axis: Axis, points: int) -> Axis:
        if not 1 <= points <= axis.points:
            raise ValueError(f"`points` along {axis.name} must be between 1 and {axis.points}, got {points}.")
        if self.how == "spectral":
            if not axis.periodic:
                raise ValueError(f"Spectral reduction needs a periodic axis, {axis.name} is not. Use 'mean'.")
            return replace(axis, points=points)
        if axis.points % points:
            raise ValueError(
                f"`points` along {axis.name} must divide {axis.points} for reduction {self.how!r}, "
                f"got {points}. Use reduction='spectral' for other sizes of a periodic grid."
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
            raise ValueError(f"`points` must have one number per axis ({len(axes)}), got {points}.")
        return points
    sizes = [points * axis.points / axes[0].points for axis in axes]
    if any(size != int(size) for size in sizes):
        grid = tuple(axis.points for axis in axes)
        raise ValueError(f"`points` = {points} does not scale the grid {grid} evenly. Give one number per axis.")
    return tuple(int(size) for size in sizes)


def _stride(field: np.ndarray, points: int, dim: int) -> np.ndarray:
    return np.take(field, np.arange(0, field.shape[dim], field.shape[dim] // points), axis=dim)


def _mean(field: np.ndarray, points: int, dim: int) -> np.ndarray:
    lines = np.moveaxis(field, dim, -1)
    cells = lines.reshape(*lines.shape[:-1], points, lines.shape[-1] // points)
    return np.moveaxis(cells.mean(axis=-1, dtype=np.float64), -1, dim)


_REDUCERS = {"stride": _stride, "mean": _mean}
