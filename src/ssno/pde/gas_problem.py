"""What the two compressible datasets share: grid, frames, solver and channels.

A concrete problem says what the gas is at t = 0 as a function of (x, y); cells start from averages over 4 x 4 points.
The scheme is `ssno.pde.euler`, every trajectory on its own clock (`ssno.pde.marching`). Predicted channels are
primitive; the dye, and the potential if there is gravity, are known fields.

Axes: n trajectory, t frame, c channel, x, y cells.
"""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ssno.pde.euler import Euler, cell_averages, heun
from ssno.pde.gas import to_primitive
from ssno.pde.marching import march
from ssno.pde.problem import (
    Axis,
    Parameters,
    Problem,
    Progress,
    Solution,
    check_at_least,
    check_batch,
    check_multiple,
    check_positive,
)
from ssno.pde.rollout import one_thread

CACHED_CELLS = 128 * 128
"""Cells of all trajectories worked on together: more would fall out of a core's cache."""


@dataclass(frozen=True)
class GasProblem(Problem):
    """A gas on a periodic unit square with `cells` per side, of which every (cells / points)-th is stored."""

    points: int = 64
    cells: int = 128
    frames: int = 11
    frame_interval: float = 0.2
    cfl: float = 0.4

    fields: ClassVar[tuple[str, ...]] = ("density", "velocity_x", "velocity_y", "pressure")
    context_fields: ClassVar[tuple[str, ...]] = ("tracer",)
    gamma: ClassVar[float] = 1.4
    lower: ClassVar[float] = 0.0
    gravity: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive(frame_interval=self.frame_interval, cfl=self.cfl)
        check_at_least(2, frames=self.frames)
        check_at_least(4, cells=self.cells)
        check_multiple("cells", self.cells, self.points)

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self._square(self.points)

    @property
    def times(self) -> Float[np.ndarray, " t"]:
        return self.frame_interval * np.arange(self.frames)

    @property
    def solver(self) -> str:
        return "hllc-muscl"

    @property
    def solver_options(self) -> dict[str, str | int | float | bool]:
        return {
            "cells": self.cells,
            "cfl": self.cfl,
            "limiter": "monotonised-central",
            "time": "ssprk2",
            "gamma": self.gamma,
            "well_balanced_gravity": self.gravity,
        }

    @property
    def lanes(self) -> int:
        """Trajectories worked on together."""
        return max(1, min(16, CACHED_CELLS // self.cells**2))

    @property
    def preferred_batch(self) -> int:
        return self.lanes

    @abc.abstractmethod
    def gas_at(self, parameters: Parameters, x: Tensor, y: Tensor) -> Float[Tensor, "c x y"]:
        """Conserved variables of one trajectory at t = 0 at points (x, y), and the potential if there is gravity."""

    def solve(self, parameters: Sequence[Parameters], *, progress: Progress | None = None) -> Solution:
        check_batch(parameters)
        square = self._square(self.cells)
        with one_thread():
            initial = torch.stack([cell_averages(partial(self.gas_at, one), square) for one in parameters])
            scheme = Euler(square, gamma=self.gamma, cfl=self.cfl, gravity=self.gravity)
            cells = march(scheme, initial.numpy(), self.times, lanes=self.lanes, advance=heun, progress=progress)
            every = self.cells // self.points
            stored = torch.from_numpy(cells[..., ::every, ::every])
            primitive = to_primitive(stored[:, :, :5].flatten(0, 1), gamma=self.gamma).unflatten(0, stored.shape[:2])
        known = torch.cat([primitive[:, :, 4:], stored[:, :, 5:]], dim=2)
        return Solution(primitive[:, :, :4].numpy(), known.numpy())

    def _square(self, points: int) -> tuple[Axis, Axis]:
        offset = self.lower + 0.5 / self.cells
        return Axis("x", 1.0, points, offset), Axis("y", 1.0, points, offset)
