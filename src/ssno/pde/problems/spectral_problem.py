"""Problems solved in Fourier space: everything except the equation and its initial conditions.

`SpectralProblem` takes equal steps of ETDRK4, `Flow` steps that follow the speed.

A concrete problem is a frozen dataclass. Its fields are the options of the dataset; `length`, `points`, `frames` and
`end_time` must be among them (or be constants of the class), `step` and `solver_points` may be. It defines `draw`,
`initial_condition` and `equation`:

    @dataclass(frozen=True)
    class Diffusion(SpectralProblem):
        length: float = 1.0
        points: int = 128
        frames: int = 21
        end_time: float = 1.0
        name, fields = "diffusion", ("u",)

        def draw(self, rng):
            return {"phase": rng.uniform(0, 2 * np.pi, size=1)}

        def initial_condition(self, parameters, *axes):
            return np.sin(2 * np.pi * axes[0].coordinates() / self.length + parameters["phase"])

        def equation(self, grid, parameters):
            return SpectralEquation(grid, 0.01 * grid.laplacian())

Batches are solved in blocks of one fixed size on one thread (`ssno.pde.stepping`), so a trajectory is bitwise the same
for any batch size, order and number of worker processes. `ssno.data.register_problem` makes a dataset of the problem.
"""

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from ssno.base.checks import in_units
from ssno.pde.grids import SpectralGrid, check_at_least, check_multiple, check_positive
from ssno.pde.integrators import etdrk4
from ssno.pde.problems.problem import Axis, OnProgress, Parameters, Problem, Solution
from ssno.pde.spectral import SpectralEquation, Wall, box_axis, crop, extend, unfolded
from ssno.pde.stepping import COURANT, FrameDone, in_blocks, spectral_frames, steps_between

AXIS_NAMES = "xyz"


class SpectralProblem(Problem):
    """An equation on a box of side `length` with the same number of points along every axis."""

    length: float
    points: int
    """Stored points per axis."""
    frames: int
    end_time: float
    """Time of the last frame."""
    step: float = math.inf
    """Longest time step. Infinite: one step per frame, for linear equations, whose steps are exact."""
    solver_points: int = 0
    """Points per axis of the solver's grid, a multiple of `points`; 0: the stored points."""
    warm_up: float = 0.0
    """Time before the first stored frame, a multiple of the frame interval."""

    dealias: ClassVar[bool] = True
    """Drop the upper third of all modes, so that products of two fields have no aliasing error."""
    values_per_block: ClassVar[int] = 2**15
    """Grid values of one field that are solved together, in blocks of 2 to 64 trajectories: what stays in cache."""

    def __post_init__(self) -> None:
        check_at_least(2, frames=self.frames)
        timing = "end_time" if hasattr(self, "end_time") else "frame_interval"
        check_positive(**{"length": self.length, timing: getattr(self, timing)})
        if self.step != math.inf:
            check_positive(step=self.step)
        check_multiple("solver_points", self.solver_points or self.points, self.points)
        if not 0 <= self.warm_up < math.inf or not in_units(self.warm_up, self.frame_interval).is_integer():
            raise ValueError(
                f"`warm_up` must be a multiple of `frame_interval`, got {self.warm_up} and {self.frame_interval}."
            )

    @abc.abstractmethod
    def initial_condition(self, parameters: Parameters, *axes: Axis) -> Float[np.ndarray, "*c_and_grid"]:
        """Fields of one trajectory at t = 0 on any grid: (c, *grid), or (*grid) for a single field."""

    @abc.abstractmethod
    def equation(self, grid: SpectralGrid, parameters: Sequence[Parameters]) -> SpectralEquation:
        """The equation of a block of trajectories; called once for each block."""

    @property
    def walls(self) -> tuple[Wall, ...]:
        """The boundary along every axis; its length is the number of dimensions."""
        return ("periodic",)

    @property
    def solver_axes(self) -> tuple[Axis, ...]:
        """The solver's grid: nodes of a periodic box, cell centres of a box with walls."""
        points = self.solver_points or self.points
        if set(self.walls) == {"periodic"}:
            return tuple(Axis(name, self.length, points) for name in AXIS_NAMES[: len(self.walls)])
        sides = zip(AXIS_NAMES, self.walls, strict=False)
        return tuple(box_axis(name, self.length, points, wall) for name, wall in sides)

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(replace(axis, points=self.points) for axis in self.solver_axes)

    @property
    def times(self) -> Float[np.ndarray, " t"]:
        return np.linspace(0, self.end_time, self.frames)

    @property
    def frame_interval(self) -> float:
        return self.end_time / (self.frames - 1)

    @property
    def steps_per_frame(self) -> int:
        return steps_between(self.frame_interval, self.step)

    @property
    def dt(self) -> float:
        """The step taken: the frame interval divided evenly."""
        return self.frame_interval / self.steps_per_frame

    @property
    def solver(self) -> str:
        return "etdrk4"

    @property
    def solver_options(self) -> dict[str, str | int | float | bool]:
        points, block = self.solver_axes[0].points, self.preferred_batch
        return {"points": points, "dt": self.dt, "dealias": self.dealias, "block": block}

    @property
    def preferred_batch(self) -> int:
        values = math.prod(axis.points for axis in unfolded(self.solver_axes))
        return min(64, max(2, self.values_per_block // values))

    def context(self, parameters: Sequence[Parameters]) -> Float[np.ndarray, "n t_or_1 k *grid"] | None:
        """Context fields on the stored grid; none here."""
        return None

    def solve(self, parameters: Sequence[Parameters], *, progress: OnProgress | None = None) -> Solution:
        axes = self.solver_axes
        grid = SpectralGrid(unfolded(axes), dealias=self.dealias)
        waited = int(in_units(self.warm_up, self.frame_interval))
        shape = (-1, len(self.fields), *grid.shape)

        def solve_block(block: list[Parameters], frame_done: FrameDone) -> np.ndarray:
            initial = [extend(self.initial_condition(one, *axes), self.walls) for one in block]
            frames = spectral_frames(
                etdrk4(self.equation(grid, block), self.dt),
                grid,
                np.stack(initial).reshape(shape),
                dt=self.dt,
                frames=waited + self.frames,
                steps_per_frame=self.steps_per_frame,
                stride=axes[0].points // self.points,
                frame_done=lambda done: frame_done(max(0, done - waited)),
            )
            return crop(frames[:, waited:], self.axes)

        size = self.preferred_batch
        state = in_blocks(solve_block, parameters, size=size, frames=self.frames, progress=progress)
        return Solution(state, self.context(parameters))


@dataclass(frozen=True)
class Flow(Problem):
    """What flows in periodic boxes share, whose time steps follow the speed (`ssno.pde.stepping.courant_frames`).

    `step` is the longest time step; fast trajectories take halves or quarters of it. `first_time=0` stores the initial
    condition as frame 0.
    """

    points: int = 64  # stored grid points per side
    solver_points: int = 256  # grid points of the solver per side
    frames: int = 20  # stored frames of a trajectory
    first_time: float = 1.0  # time of the first frame; 0 stores the initial state
    frame_interval: float = 1.0  # time between frames, in units of the equation
    step: float = 0.01  # longest time step of the solver, in units of the equation

    courant: ClassVar[float] = COURANT
    cached_points: ClassVar[int]
    """Grid points of all trajectories of a block together: what a core's cache holds."""

    def __post_init__(self) -> None:
        check_positive(frame_interval=self.frame_interval, step=self.step)
        check_at_least(1, frames=self.frames)
        check_at_least(8, solver_points=self.solver_points)
        if not 0 <= self.first_time < np.inf:
            raise ValueError(f"`first_time` must be 0 or a positive finite number, got {self.first_time}.")

    @property
    def times(self) -> Float[np.ndarray, " t"]:
        return self.first_time + self.frame_interval * np.arange(self.frames)

    @property
    def solver(self) -> str:
        return "ifrk4"

    @property
    def solver_options(self) -> dict[str, str | int | float | bool]:
        return {
            "points": self.solver_points,
            "longest_step": self.step,
            "courant": self.courant,
            "dealias": True,
            "block": self.preferred_batch,
        }

    @property
    def preferred_batch(self) -> int:
        return max(1, min(16, self.cached_points // self.solver_points ** len(self.axes)))
