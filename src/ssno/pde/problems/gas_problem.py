"""What the two compressible datasets share: grid, frames, solver and channels.

A concrete problem says what the gas is at t = 0 as a function of (x, y); cells start from averages over 4 x 4 points.
The published grid has `cells` per side. The solver's may be `refine` times finer: its cells are averaged, not skipped,
because cell averages are what the scheme computes. Points of the published grid are then skipped to store `points`.
If quarter turns leave the flow unchanged, one quarter is solved (`ssno.pde.quarter_turns`). The scheme is
`ssno.pde.schemes.euler`, every trajectory on its own clock (`ssno.pde.schemes.marching`). Predicted channels are
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

from ssno.pde.checks import check_at_least, check_batch, check_multiple, check_positive
from ssno.pde.equations.gas import to_primitive
from ssno.pde.problems.problem import Axis, OnProgress, Parameters, Problem, Solution
from ssno.pde.quarter_turns import turned_wrap, unfold
from ssno.pde.schemes.euler import Euler, cell_averages, heun
from ssno.pde.schemes.finite_volume import wrap
from ssno.pde.schemes.marching import march
from ssno.pde.schemes.rollout import one_thread

CACHED_CELLS = 128 * 128
"""Cells of all trajectories worked on together: more would fall out of a core's cache."""


@dataclass(frozen=True)
class GasProblem(Problem):
    """A gas on a periodic unit square; see the top of this module for `points`, `cells` and `refine`."""

    points: int = 64
    cells: int = 128
    refine: int = 1
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
        check_at_least(1, refine=self.refine)
        check_at_least(4, cells=self.cells)
        check_multiple("cells", self.cells, self.points)

    @property
    def axes(self) -> tuple[Axis, ...]:
        offset = self.lower + 0.5 / self.cells
        return Axis("x", 1.0, self.points, offset), Axis("y", 1.0, self.points, offset)

    @property
    def solver_axes(self) -> tuple[Axis, Axis]:
        """The cells that are solved for: all of the square, or its quarter with x, y > 0."""
        cells, length, lower = self.cells * self.refine, 1.0, self.lower
        if self.turns:
            cells, length, lower = cells // 2, 0.5, 0.0
        offset = lower + 0.5 * length / cells
        return Axis("x", length, cells, offset), Axis("y", length, cells, offset)

    @property
    def turns(self) -> bool:
        """Whether quarter turns about the centre leave every trajectory unchanged, so that a quarter is enough."""
        return False

    @property
    def times(self) -> Float[np.ndarray, " t"]:
        return self.frame_interval * np.arange(self.frames)

    @property
    def solver(self) -> str:
        return "hllc-muscl"

    @property
    def solver_options(self) -> dict[str, str | int | float | bool]:
        return {
            "cells": self.cells * self.refine,
            "quarter_turns": self.turns,
            "cfl": self.cfl,
            "limiter": "monotonised-central",
            "time": "ssprk2",
            "gamma": self.gamma,
            "well_balanced_gravity": self.gravity,
        }

    @property
    def lanes(self) -> int:
        """Trajectories worked on together."""
        return max(1, min(16, CACHED_CELLS // self.solver_axes[0].points ** 2))

    @property
    def preferred_batch(self) -> int:
        return self.lanes

    @abc.abstractmethod
    def gas_at(self, parameters: Parameters, x: Tensor, y: Tensor) -> Float[Tensor, "c x y"]:
        """Conserved variables of one trajectory at t = 0 at points (x, y), and the potential if there is gravity."""

    def solve(self, parameters: Sequence[Parameters], *, progress: OnProgress | None = None) -> Solution:
        check_batch(parameters)
        with one_thread():
            square, beyond = self.solver_axes, turned_wrap if self.turns else wrap
            initial = torch.stack([cell_averages(partial(self.gas_at, one), square) for one in parameters])
            scheme = Euler(square, gamma=self.gamma, cfl=self.cfl, gravity=self.gravity, beyond=beyond)
            frames = march(scheme, initial.numpy(), self.times, lanes=self.lanes, advance=heun, progress=progress)
            stored = torch.stack([self._stored(torch.from_numpy(one)) for one in frames])
        return Solution(stored[:, :, :4].numpy(), stored[:, :, 4:].numpy())

    def _stored(self, frames: Float[Tensor, "t c sx sy"]) -> Float[Tensor, "t c x y"]:
        """Primitive variables, and the potential if there is gravity, at the stored points."""
        whole = unfold(frames) if self.turns else frames
        cells = whole.unflatten(-1, (-1, self.refine)).unflatten(-3, (-1, self.refine)).mean(dim=(-3, -1))
        every = self.cells // self.points
        chosen = cells[..., ::every, ::every]
        return torch.cat([to_primitive(chosen[:, :5], gamma=self.gamma), chosen[:, 5:]], dim=1)
