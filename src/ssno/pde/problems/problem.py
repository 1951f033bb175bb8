"""What every solvable problem promises: how to make trajectories, and nothing about learning or files.

A `Problem` names an equation, a domain, a grid, a distribution of initial conditions and a solver. `draw`
samples the parameters of one trajectory; `solve` turns parameters into frames. The parameters are enough to solve
the same trajectory again on any grid: initial conditions are functions of them, not lists of grid values.

    problem = KuramotoSivashinsky(viscosity=0.075)
    rng = np.random.Generator(np.random.Philox(7))
    solution = problem.solve([problem.draw(rng) for _ in range(8)])      # solution.state: (8, 26, 1, 512)

Concrete problems are frozen dataclasses whose fields are the named options of the dataset.
Axes: n trajectory, t stored frame, c field (channel), then the space axes in the order of `Problem.axes`.
"""

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from ssno.pde.geometry import CARTESIAN, Axis, Geometry

Parameters = Mapping[str, np.ndarray]
"""What `Problem.draw` samples for one trajectory, by name."""
OnProgress = Callable[[int, int], None]
"""Called with the work that is done, and all of it."""


@dataclass(frozen=True)
class Solution:
    """Frames of a batch of trajectories, float64, and the context fields with them (one frame if constant)."""

    state: Float[np.ndarray, "n t c *grid"]
    context: Float[np.ndarray, "n t_or_1 k *grid"] | None = None


class SolverDiverged(RuntimeError):
    """A trajectory stopped being finite: `trajectory` in the batch, at `step` of the solver, at `time`."""

    def __init__(self, trajectory: int, step: int, time: float):
        super().__init__(trajectory, step, time)  # the arguments, so that the exception survives pickling
        self.trajectory, self.step, self.time = trajectory, step, time

    def __str__(self) -> str:
        return (
            f"Trajectory {self.trajectory} of the batch is no longer finite at solver step {self.step}, "
            f"time {self.time:.6g}. Use a smaller time step, a finer grid or more viscosity."
        )


class Problem(abc.ABC):
    """How to make trajectories of one equation. See the top of this module."""

    name: ClassVar[str]
    formula: ClassVar[str] = ""
    """The equation in LaTeX, for pages about the dataset."""
    fields: ClassVar[tuple[str, ...]]
    context_fields: ClassVar[tuple[str, ...]] = ()
    geometry: ClassVar[Geometry] = CARTESIAN
    stationary: ClassVar[bool] = False
    """Whether statistics are the same at all times; they then stand in the manifest."""

    @property
    @abc.abstractmethod
    def axes(self) -> tuple[Axis, ...]:
        """The grid of the stored frames."""

    @property
    @abc.abstractmethod
    def times(self) -> Float[np.ndarray, " t"]:
        """Times of the stored frames; the first is the initial condition unless the problem says otherwise."""

    @property
    @abc.abstractmethod
    def solver(self) -> str:
        """Short name of the numerical method."""

    @property
    @abc.abstractmethod
    def solver_options(self) -> dict[str, str | int | float | bool]:
        """Everything that fixes the numbers besides the parameters: step sizes, inner grid, dealiasing."""

    @property
    @abc.abstractmethod
    def preferred_batch(self) -> int:
        """How many trajectories to hand to `solve` at once so that the work stays in cache."""

    @property
    def train_share(self) -> float:
        """Share of a preset's training trajectories that the problem asks for."""
        return 1.0

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Sample the parameters of one trajectory: float64 or int64 arrays, independent of the grid."""

    def draw_for(self, split: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Sample a trajectory of a split; the same as `draw` unless the task is to extrapolate."""
        return self.draw(rng)

    @abc.abstractmethod
    def solve(self, parameters: Sequence[Parameters], *, progress: OnProgress | None = None) -> Solution:
        """Solve a batch. Trajectory n is bitwise the same for any batch size and order.

        `progress(done, total)` is called as the work proceeds. Raises `SolverDiverged` instead of returning
        values that are not finite.
        """
