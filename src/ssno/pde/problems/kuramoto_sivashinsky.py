"""Kuramoto-Sivashinsky trajectories as in the public LPSDA-fork data: the growth from long waves into chaos.

    u_t + u u_x + u_xx + viscosity u_xxxx = 0,     x in [0, 64) periodic, 512 nodes, 26 frames to t = 2.5
    u(x, 0) = sum of 10 waves, amplitudes U[-1/2, 1/2), phases U[0, 2 pi), wavenumbers 1 ... 8

What to expect: rms 0.65 at the start; the waves at k^2 = 1 / (2 viscosity) grow fastest, at rate 1 / (4 viscosity),
about a factor 4000 over the window for viscosity 0.075, until steepening balances them at |u| up to 11. Rounding
errors grow as well, hence float64 throughout.

Numbers: ETDRK4 with h = 0.005 on 512 points ends within 4e-5 (relative, largest of 64 trajectories; median 6e-6) of
the exact solution at viscosity 0.075, within 1e-6 at 0.125. 256 points are not enough (4e-2): a coarser stored grid
is cut out of a solve on 512.

These data end on the way up (standard deviation 1.5 at t = 2.5, viscosity 0.1; 3.8 on the attractor): a model of them
cannot know what comes later. `KuramotoSivashinskyAttractor` begins to store when the waves have become stationary
chaos.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid, check_at_least, check_positive
from ssno.pde.initial_conditions import draw_waves, sine_waves
from ssno.pde.problems.problem import Parameters
from ssno.pde.problems.spectral_problem import SpectralProblem
from ssno.pde.spectral import SpectralEquation, engine, kuramoto_sivashinsky


@dataclass(frozen=True)
class KuramotoSivashinsky(SpectralProblem):
    """The problem; see the top of this module for the equation.

    Wavenumbers are drawn from [1, lmax): `lmax=9` gives 1 ... 8. The published text says 21 waves, the code that
    made the data draws 10; `waves=21` gives the text.
    """

    viscosity: float = 0.075  # coefficient of u_xxxx
    length: float = 64.0  # length of each axis, in units of the equation
    points: int = 512  # stored grid points along each axis
    frames: int = 26  # stored frames of a trajectory
    end_time: float = 2.5  # time of the last frame, in units of the equation
    waves: int = 10  # sine waves in the initial state
    lmax: int = 9  # wavenumbers of the initial waves are 1 to lmax - 1
    step: float = 0.005  # longest time step of the solver, in units of the equation
    solver_points: int = 512  # grid points of the solver along each axis, a multiple of the stored ones

    name: ClassVar[str] = "ks"
    formula: ClassVar[str] = r"u_t + u\,u_x + u_{xx} + \nu\,u_{xxxx} = 0, \qquad \nu = \text{viscosity}"
    fields: ClassVar[tuple[str, ...]] = ("u",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(viscosity=self.viscosity)
        check_at_least(1, waves=self.waves)
        check_at_least(2, lmax=self.lmax)
        if 3 * (self.lmax - 1) >= self.solver_points:
            raise ValueError(
                f"`solver_points` must exceed 3 (lmax - 1) to carry all waves, got {self.solver_points} and "
                f"lmax={self.lmax}."
            )

    @property
    def solver_options(self) -> dict[str, str | int | float | bool]:
        return {**super().solver_options, "engine": engine(self.solver_points)}

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Amplitude, phase and wavenumber of every wave."""
        drawn = draw_waves(rng, waves=self.waves, low=1, high=self.lmax, dimensions=1)
        return {**drawn, "wavenumber": drawn["wavenumber"][:, 0]}

    def initial_condition(self, parameters: Parameters, *axes: Axis) -> Float[np.ndarray, " l"]:
        return sine_waves(
            [axis.coordinates() for axis in axes],
            [axis.length for axis in axes],
            amplitude=parameters["amplitude"],
            wavenumber=parameters["wavenumber"][:, None],
            phase=parameters["phase"],
        )

    def equation(self, grid: SpectralGrid, parameters: Sequence[Parameters]) -> SpectralEquation:
        return kuramoto_sivashinsky(grid, viscosity=self.viscosity)


@dataclass(frozen=True)
class KuramotoSivashinskyAttractor(KuramotoSivashinsky):
    """Stationary chaos: the same trajectories from `warm_up` to `end_time`. Train on segments (`--data.segment 26`)."""

    viscosity: float = 0.1
    points: int = 64
    frames: int = 161
    end_time: float = 22.0
    warm_up: float = 6.0  # time before the first frame, in units of the equation

    name: ClassVar[str] = "ks-attractor"
    stationary: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.warm_up < self.end_time:
            raise ValueError(f"`end_time` must be later than `warm_up` {self.warm_up:g}, got {self.end_time:g}.")
        super().__post_init__()

    @property
    def frame_interval(self) -> float:
        return (self.end_time - self.warm_up) / (self.frames - 1)

    @property
    def times(self) -> Float[np.ndarray, " t"]:
        return np.linspace(self.warm_up, self.end_time, self.frames)
