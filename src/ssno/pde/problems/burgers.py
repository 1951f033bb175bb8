"""Burgers trajectories as in the public PDEBench data (file `1D_Burgers_Sols_Nu0.001`).

    u_t + (u^2 / 2)_x = (viscosity / pi) u_xx,     x in [0, 1] periodic, 1024 cells, frames every 0.01

The coefficient is viscosity / pi, 3.18e-4 by default: shocks are about 4 (viscosity / pi) / jump = 6e-4 wide, less
than a cell. Waves steepen into shocks within t = 0.1 or so, shocks merge and decay.

Initial condition: four waves with amplitudes U[0, 1) and phases U[0, 2 pi). Two draws with replacement choose which
of them oscillate: wave j has wavenumber j m_j with m_j the times it was drawn (0, 1 or 2), so the others add a
constant. One in ten is replaced by its absolute value, the sign is random, one in ten is cut to a window
½ [tanh((x - x_L) / 0.01) - tanh((x - x_R) / 0.01)].

Two solvers. `fv` is the scheme class of the public data (second-order finite volumes, 1024 cells), whose numerical
dissipation is part of the data. `exact` resolves the shocks (ETDRK4, 4096 points, h <= 5e-4): typically within 1e-6
of the closed solution, 4e-4 for the strongest shocks just after they form; twice the points bring that to 3e-6.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from jaxtyping import Float

from ssno.base.checks import require_one_of
from ssno.pde.finite_volume import BurgersLaw, FiniteVolume
from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid, check_at_least, check_batch, check_multiple, check_positive
from ssno.pde.initial_conditions import sine_waves
from ssno.pde.integrators import etdrk4
from ssno.pde.problems.problem import OnProgress, Parameters, Problem, Solution
from ssno.pde.spectral import burgers, engine
from ssno.pde.stepping import FrameDone, in_blocks, march, one_thread, spectral_frames, steps_between

WAVES = 4
CHOICES = 2
ABSOLUTE_PROBABILITY = 0.1
WINDOW_PROBABILITY = 0.1
WINDOW_STEEPNESS = 0.01
LEFT_EDGE, RIGHT_EDGE, EDGE_RANGE = 0.1, 0.55, 0.35
PUBLIC_PERIOD = 1 - 1 / 1024
"""The public generator measures wavelengths from the first to the last cell centre of its 1024 cells."""

STEP_LIMIT = 2.2
"""Largest dt max|u|^2 / diffusivity of `exact`: less than half of 4.9, where ETDRK4 starts to amplify waves of
u_t + speed u_x = diffusivity u_xx (computed), because a moving shock should take a few steps to cross its width."""

LANES = 32
SPECTRAL_BLOCK = 8

Solver = Literal["fv", "exact"]
InitialStates = Literal["correlated", "independent"]


@dataclass(frozen=True)
class Burgers(Problem):
    """The problem; see the top of this module for equation, initial condition and solvers.

    Frames sit on the centres of every (cells / points)-th of `cells` cells, for both solvers. `cfl` belongs to `fv`;
    `spectral_points` and `step`, the longest step allowed, to `exact`: trajectories with max |u| > 1.18 take halves
    or quarters of it.
    `window="correlated"` copies the public generator, which uses one random number U for the coin and both edges: a
    window appears if U < 0.1 and then x_L = 0.1 + 0.35 U, x_R = x_L + 0.45. `"independent"` draws them separately.
    `initial_period` is the length in which a wave with wavenumber 1 fits; None takes 1 - 1/1024 for `fv`, as in the
    public data (a small jump at the seam), and 1 for `exact`, which needs periodic data.
    """

    viscosity: float = 1e-3  # coefficient of u_xx, in length^2 per time
    solver: Solver = "fv"  # finite volumes, as the public data, or exact (spectral)
    points: int = 1024  # stored grid points along each axis
    frames: int = 141  # stored frames of a trajectory
    frame_interval: float = 0.01  # time between frames, in units of the equation
    window: InitialStates = "correlated"  # edges of the initial windows: as in the public data, or independent
    initial_period: float | None = None  # length of a wave with wavenumber 1
    cells: int = 1024  # cells of the finite-volume grid, a multiple of the stored points
    cfl: float = 0.25  # Courant number of the finite-volume solver
    spectral_points: int = 4096  # grid points of the exact solver, a multiple of the stored ones
    step: float = 5e-4  # longest time step of the exact solver, in units of the equation

    name: ClassVar[str] = "burgers"
    formula: ClassVar[str] = r"u_t + \tfrac{1}{2} (u^2)_x = \frac{\nu}{\pi} u_{xx}, \qquad \nu = \text{viscosity}"
    fields: ClassVar[tuple[str, ...]] = ("u",)

    def __post_init__(self) -> None:
        check_positive(
            viscosity=self.viscosity,
            frame_interval=self.frame_interval,
            cfl=self.cfl,
            step=self.step,
            initial_period=self.period,
        )
        check_at_least(2, frames=self.frames)
        require_one_of("solver", self.solver, get_args(Solver))
        require_one_of("window", self.window, get_args(InitialStates))
        if self.solver == "exact" and self.period != 1:
            raise ValueError(
                f"`initial_period` must be 1 for the exact solver, got {self.period}: the initial condition would "
                f"jump at the seam. Use solver='fv'."
            )
        check_multiple("cells", self.cells, self.points)
        check_multiple("spectral_points", self.spectral_points, self.points)

    @property
    def diffusivity(self) -> float:
        """The coefficient of u_xx."""
        return self.viscosity / np.pi

    @property
    def period(self) -> float:
        if self.initial_period is not None:
            return self.initial_period
        return PUBLIC_PERIOD if self.solver == "fv" else 1.0

    @property
    def axes(self) -> tuple[Axis, ...]:
        return (Axis("x", 1.0, self.points, offset=0.5 / self.cells),)

    @property
    def times(self) -> Float[np.ndarray, " t"]:
        return self.frame_interval * np.arange(self.frames)

    @property
    def steps_per_frame(self) -> int:
        return steps_between(self.frame_interval, self.step)

    @property
    def solver_options(self) -> dict[str, str | int | float | bool]:
        if self.solver == "fv":
            return {"cells": self.cells, "cfl": self.cfl, "limiter": "monotonised-central", "time": "midpoint"}
        points, longest = self.spectral_points, self.frame_interval / self.steps_per_frame
        return {"points": points, "dt": longest, "dealias": True, "block": SPECTRAL_BLOCK, "engine": engine(points)}

    @property
    def preferred_batch(self) -> int:
        return 2 * LANES if self.solver == "fv" else SPECTRAL_BLOCK

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Numbers that fix the initial condition; `window_edges` are drawn even where `window` is 0."""
        multiplicity = np.bincount(rng.integers(0, WAVES, size=CHOICES), minlength=WAVES)
        amplitude = rng.uniform(0, 1, size=WAVES)
        phase = rng.uniform(0, 2 * np.pi, size=WAVES)
        absolute = rng.uniform() < ABSOLUTE_PROBABILITY
        sign = 2 * rng.integers(0, 2) - 1
        coin = rng.uniform()
        left, right = (coin, coin) if self.window == "correlated" else rng.uniform(size=2)
        return {
            "wavenumber": (multiplicity * np.arange(1, WAVES + 1)).astype(np.int64),
            "amplitude": amplitude,
            "phase": phase,
            "absolute": np.array(absolute, dtype=np.int64),
            "sign": np.array(sign, dtype=np.int64),
            "window": np.array(coin < WINDOW_PROBABILITY, dtype=np.int64),
            "window_edges": np.array([LEFT_EDGE + EDGE_RANGE * left, RIGHT_EDGE + EDGE_RANGE * right]),
        }

    def initial_condition(self, parameters: Parameters, axis: Axis) -> Float[np.ndarray, " l"]:
        """u(x, 0) of one trajectory on any grid."""
        x = axis.coordinates()
        u = sine_waves(
            [x],
            [self.period],
            amplitude=parameters["amplitude"],
            wavenumber=parameters["wavenumber"][:, None],
            phase=parameters["phase"],
        )
        if parameters["absolute"]:
            u = np.abs(u)
        u *= parameters["sign"]
        if parameters["window"]:
            left, right = parameters["window_edges"]
            u *= 0.5 * (np.tanh((x - left) / WINDOW_STEEPNESS) - np.tanh((x - right) / WINDOW_STEEPNESS))
        return u

    def solve(self, parameters: Sequence[Parameters], *, progress: OnProgress | None = None) -> Solution:
        check_batch(parameters)
        if self.solver == "fv":
            return Solution(self._finite_volume(parameters, progress))
        return Solution(self._spectral(parameters, progress))

    def _finite_volume(self, parameters: Sequence[Parameters], progress: OnProgress | None) -> np.ndarray:
        axis = Axis("x", 1.0, self.cells, offset=0.5 / self.cells)
        scheme = FiniteVolume(BurgersLaw(), (axis,), diffusivity=self.diffusivity, cfl=self.cfl)
        initial = self._initial(parameters, axis)
        with one_thread():
            cells = march(scheme, initial, self.times, lanes=LANES, progress=progress)
        return cells[..., :: self.cells // self.points]

    def _spectral(self, parameters: Sequence[Parameters], progress: OnProgress | None) -> np.ndarray:
        # The equation does not know where x = 0 is, so the solver's first node sits on the first stored point.
        axis = Axis("x", 1.0, self.spectral_points, offset=0.5 / self.cells)
        grid = SpectralGrid([axis], dealias=True)
        equation = burgers(grid, diffusivity=self.diffusivity)

        def steps(one: Parameters) -> int:
            return self.steps_per_frame * 2 ** self._halvings(np.abs(self.initial_condition(one, axis)).max())

        def solve_block(block: list[Parameters], frame_done: FrameDone) -> np.ndarray:
            steps_per_frame = steps(block[0])
            dt = self.frame_interval / steps_per_frame
            return spectral_frames(
                etdrk4(equation, dt),
                grid,
                self._initial(block, axis),
                dt=dt,
                frames=self.frames,
                steps_per_frame=steps_per_frame,
                stride=self.spectral_points // self.points,
                frame_done=frame_done,
            )

        size = SPECTRAL_BLOCK
        return in_blocks(solve_block, parameters, size=size, frames=self.frames, group=steps, progress=progress)

    def _halvings(self, speed: float) -> int:
        """How often to halve the step for stability and accuracy: dt speed^2 <= STEP_LIMIT diffusivity.

        `speed` = max |u(x, 0)| bounds |u| at all times, so one step serves a whole trajectory.
        """
        longest = self.frame_interval / self.steps_per_frame
        excess = speed * np.sqrt(longest / (STEP_LIMIT * self.diffusivity))
        if not 1 < excess < np.inf:  # not finite: the solver will say which trajectory
            return 0
        return int(np.ceil(2 * np.log2(excess)))

    def _initial(self, parameters: Sequence[Parameters], axis: Axis) -> np.ndarray:
        return np.stack([self.initial_condition(one, axis) for one in parameters])[:, None]
