"""Bring fields of a solver to the grid of the data, so that both can be scored alike.

    spectral   the waves that the new grid holds (`ssno.transforms.periodic`): as data are read by spectral reduction
    stride     the trigonometric polynomial through the points at the new points, nothing cut: as strided data
    linear     straight lines between neighbouring points; fields with shocks

`stride` and `linear` return a field unchanged at points that it has.

Axes: any leading ones, then the grid.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float

from ssno.pde.problems.problem import Axis
from ssno.transforms.periodic import resample

Interpolation = Literal["spectral", "stride", "linear"]


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
            field = np.moveaxis(_along(np.moveaxis(field, dim, -1), before, after, how), -1, dim)
    return field


def _along(lines: Float[np.ndarray, "... l"], old: Axis, new: Axis, how: Interpolation) -> Float[np.ndarray, "... m"]:
    if how == "linear":
        return lines @ straight_lines(old, new).T
    fine = 1 if how == "spectral" else -(-old.points // new.points)  # a multiple of the new grid holds all old waves
    shift = (new.offset - old.offset) / old.length
    found = resample(torch.from_numpy(lines.astype(np.float64)), (fine * new.points,), shift=(shift,))
    return found[..., ::fine].numpy()


def straight_lines(old: Axis, new: Axis) -> Float[np.ndarray, "m l"]:
    """The matrix that takes values at the points of `old` to those at the points of `new`."""
    distance = (new.coordinates()[:, None] - old.coordinates()[None]) / old.spacing  # in spacings
    wrapped = np.abs((distance + old.points / 2) % old.points - old.points / 2)
    return np.clip(1 - wrapped, 0, None)
