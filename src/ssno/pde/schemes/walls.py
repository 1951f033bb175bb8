"""Walls for Fourier solvers: a box with walls is half of a periodic one.

With cell centres x_i = (i + 1/2) dx, i < N, a field continued beyond the wall x = N dx by its mirror image,

    neumann     u(2 L - x) =  u(x)      no flux through the walls: du/dx = 0 there
    dirichlet   u(2 L - x) = -u(x)      held at 0 by the walls

is periodic with length 2 L. An equation that keeps the symmetry keeps the walls, so any periodic solver serves: extend,
solve on 2 N points, crop. Axes: any leading ones, then the space axes.
"""

from collections.abc import Sequence
from dataclasses import replace
from types import EllipsisType
from typing import Literal

import numpy as np

from ssno.pde.problems.problem import Axis

Wall = Literal["periodic", "neumann", "dirichlet"]


def box_axis(name: str, length: float, points: int, wall: Wall) -> Axis:
    """An axis of cell centres with this boundary."""
    return Axis(name, length, points, offset=0.5 * length / points, periodic=wall == "periodic")


def unfolded(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The periodic axes that the solver works on: twice as long where there are walls."""
    return tuple(a if a.periodic else replace(a, length=2 * a.length, points=2 * a.points, periodic=True) for a in axes)


def extend(field: np.ndarray, walls: Sequence[Wall]) -> np.ndarray:
    """The field on the unfolded grid."""
    for dim, wall in zip(range(-len(walls), 0), walls, strict=True):
        if wall != "periodic":
            image = np.flip(field, dim)
            field = np.concatenate([field, image if wall == "neumann" else -image], axis=dim)
    return field


def crop(field: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    """The part of an unfolded field that lies in the box."""
    inside: tuple[EllipsisType | slice, ...] = (..., *(slice(axis.points) for axis in axes))
    return field[inside]
