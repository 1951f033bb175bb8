"""Bring fields from one periodic grid to another, so that forecasts made on different grids can be scored alike.

    spectral   the trigonometric polynomial through the points, exact for what the grid resolves; smooth fields
    linear     straight lines between neighbouring points; fields with shocks

Both are matrices that act along one axis after the other, and both return a field unchanged at points that it has.

Axes: any leading ones, then the grid.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float

from ssno.pde.problems.problem import Axis

Interpolation = Literal["spectral", "linear"]


def interpolate(
    field: Float[np.ndarray, "..."], old: Sequence[Axis], new: Sequence[Axis], how: Interpolation
) -> Float[np.ndarray, "..."]:
    """The field on the points of other axes of the same box."""
    for dim, (before, after) in zip(range(-len(old), 0), zip(old, new, strict=True), strict=True):
        if not before.periodic or before.length != after.length:
            raise ValueError(
                f"Axis {before.name!r} must be periodic and keep its length, got {before.length} and {after.length}."
            )
        if (before.points, before.offset) != (after.points, after.offset):
            along = np.moveaxis(field, dim, -1) @ interpolation(before, after, how).T
            field = np.moveaxis(along, -1, dim)
    return field


def interpolation(old: Axis, new: Axis, how: Interpolation) -> Float[np.ndarray, "m l"]:
    """The matrix that takes values at the points of `old` to those at the points of `new`."""
    distance = (new.coordinates()[:, None] - old.coordinates()[None]) / old.spacing  # in spacings
    if how == "linear":
        wrapped = np.abs((distance + old.points / 2) % old.points - old.points / 2)
        return np.clip(1 - wrapped, 0, None)
    count = old.points
    modes = np.arange(-((count - 1) // 2), (count - 1) // 2 + 1)
    angle = 2 * np.pi * distance / count
    kernel = np.cos(angle[..., None] * modes).sum(-1)
    if count % 2 == 0:  # the Nyquist mode is shared by both signs
        kernel += np.cos(angle * count / 2)
    return kernel / count
