"""Problems with a closed solution in one, two or three dimensions: heat, and heat carried by a constant wind.

    u_t + velocity . grad u = diffusivity laplace u,      periodic box
    u(x, t) = sum_i amplitude_i exp(-diffusivity |k_i|^2 t) sin(k_i . (x - velocity t) + phase_i)

The solver multiplies Fourier coefficients by exp(symbol t), which is exact up to rounding; the closed solution above
is `exact_solution`. Good first data: linear, smooth, any number of dimensions, made in no time.
"""

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from ssno.pde.grids import SpectralGrid, check_at_least, check_positive
from ssno.pde.initial_conditions import draw_waves, sine_waves
from ssno.pde.integrators import etdrk4
from ssno.pde.problems.problem import Axis, OnProgress, Parameters, Problem, Solution
from ssno.pde.spectral import advection_diffusion
from ssno.pde.stepping import FrameDone, in_blocks, spectral_frames

AXIS_NAMES = "xyz"
VALUES_PER_BLOCK = 2**15


@dataclass(frozen=True)
class LinearProblem(Problem):
    """What heat and advection-diffusion share; not built itself.

    Waves have amplitudes U[-1/2, 1/2), phases U[0, 2 pi) and wavenumbers from (-lmax, lmax) along every axis, ends
    excluded.
    """

    diffusivity: float = 0.01
    length: float = 1.0
    points: int = 128
    frames: int = 21
    end_time: float = 1.0
    waves: int = 8
    lmax: int = 5

    fields: ClassVar[tuple[str, ...]] = ("u",)

    def __post_init__(self) -> None:
        if not 1 <= len(self.wind) <= 3:
            raise ValueError(f"A box has 1, 2 or 3 dimensions, got {len(self.wind)}.")
        if not self.diffusivity >= 0:
            raise ValueError(f"`diffusivity` must not be negative, got {self.diffusivity}: waves would blow up.")
        check_positive(length=self.length, end_time=self.end_time)
        check_at_least(2, frames=self.frames)
        check_at_least(1, waves=self.waves, lmax=self.lmax)
        if self.points < 2 * self.lmax:
            raise ValueError(
                f"`points` must be at least 2 lmax to carry wavenumbers below lmax, got {self.points} and "
                f"lmax={self.lmax}."
            )

    @property
    @abc.abstractmethod
    def wind(self) -> tuple[float, ...]:
        """Velocity, one component per dimension."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(Axis(AXIS_NAMES[i], self.length, self.points) for i in range(len(self.wind)))

    @property
    def times(self) -> Float[np.ndarray, " t"]:
        return np.linspace(0, self.end_time, self.frames)

    @property
    def solver(self) -> str:
        return "fourier"

    @property
    def solver_options(self) -> dict[str, str | int | float | bool]:
        return {"points": self.points, "block": self.preferred_batch}

    @property
    def preferred_batch(self) -> int:
        return min(64, max(2, VALUES_PER_BLOCK // math.prod(axis.points for axis in self.axes)))

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Amplitude, phase and wave vector of every wave."""
        low = 1 - self.lmax
        return draw_waves(rng, waves=self.waves, low=low, high=self.lmax, dimensions=len(self.wind))

    def exact_solution(self, parameters: Parameters, time: float) -> Float[np.ndarray, "*grid"]:
        """The closed solution of one trajectory on the stored grid."""
        k = 2 * np.pi / self.length * parameters["wavenumber"]
        drift = (k * np.array(self.wind)).sum(axis=1)
        return sine_waves(
            [axis.coordinates() for axis in self.axes],
            [axis.length for axis in self.axes],
            amplitude=parameters["amplitude"] * np.exp(-self.diffusivity * (k**2).sum(axis=1) * time),
            wavenumber=parameters["wavenumber"],
            phase=parameters["phase"] - drift * time,
        )

    def solve(self, parameters: Sequence[Parameters], *, progress: OnProgress | None = None) -> Solution:
        grid = SpectralGrid(self.axes, dealias=False)
        interval = self.end_time / (self.frames - 1)
        equation = advection_diffusion(grid, diffusivity=self.diffusivity, velocity=self.wind)
        step = etdrk4(equation, interval)

        def solve_block(block: list[Parameters], frame_done: FrameDone) -> np.ndarray:
            return spectral_frames(
                step,
                grid,
                np.stack([self.exact_solution(one, 0.0) for one in block])[:, None],
                dt=interval,
                frames=self.frames,
                steps_per_frame=1,
                frame_done=frame_done,
            )

        size = self.preferred_batch
        return Solution(in_blocks(solve_block, parameters, size=size, frames=self.frames, progress=progress))


@dataclass(frozen=True)
class AdvectionDiffusion(LinearProblem):
    """Waves that travel with `velocity` (one component per dimension) and decay."""

    velocity: tuple[float, ...] = (1.0,)

    name: ClassVar[str] = "advection-diffusion"

    @property
    def wind(self) -> tuple[float, ...]:
        return self.velocity


@dataclass(frozen=True)
class Heat(LinearProblem):
    """Waves that decay in place, in 1, 2 or 3 `dimensions`."""

    dimensions: int = 1

    name: ClassVar[str] = "heat"

    @property
    def wind(self) -> tuple[float, ...]:
        return (0.0,) * self.dimensions
