"""Problems with a closed solution in one, two or three dimensions: heat, heat carried by a wind, heat between walls.

    u_t + velocity . grad u = diffusivity laplace u,      periodic box
    u(x, t) = sum_i amplitude_i exp(-diffusivity |k_i|^2 t) sin(k_i . (x - velocity t) + phase_i)

and in a box [0, length]^d with walls, u = 0 at Dirichlet walls and no flux through Neumann walls,

    u(x, t) = sum_i amplitude_i exp(-diffusivity |k_i|^2 t) prod_j f_j(k_ij x_j),      k = pi m / length

with f = sin and m = 1, 2, ... between Dirichlet walls, f = cos and m = 0, 1, ... between Neumann walls.

The solver multiplies Fourier coefficients by exp(symbol t), which is exact up to rounding; walls by unfolding the box
(`ssno.pde.spectral`). The closed solutions above are `exact_solution`. Good first data: linear, smooth, any number of
dimensions, made in no time; the box with walls shows what a model learns about walls, and nothing else.
"""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from jaxtyping import Float

from ssno.base.checks import require_one_of
from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid, check_at_least, check_positive
from ssno.pde.initial_conditions import draw_waves, sine_waves
from ssno.pde.problems.problem import Parameters
from ssno.pde.problems.spectral_problem import SpectralProblem
from ssno.pde.spectral import SpectralEquation, Wall, advection_diffusion

WallCondition = Literal["dirichlet", "neumann", "mixed"]


@dataclass(frozen=True)
class LinearProblem(SpectralProblem):
    """What heat and advection-diffusion share; not built itself.

    Waves have amplitudes U[-1/2, 1/2), phases U[0, 2 pi) and wavenumbers from (-lmax, lmax) along every axis, ends
    excluded.
    """

    diffusivity: float = 0.01  # coefficient of u_xx, in length^2 per time
    length: float = 1.0  # length of each axis, in units of the equation
    points: int = 128  # stored grid points along each axis
    frames: int = 21  # stored frames of a trajectory
    end_time: float = 1.0  # time of the last frame, in units of the equation
    waves: int = 8  # sine waves in the initial state
    lmax: int = 5  # wavenumbers of the initial waves are below this

    fields: ClassVar[tuple[str, ...]] = ("u",)
    dealias: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.wind) <= 3:
            raise ValueError(f"A box has 1, 2 or 3 dimensions, got {len(self.wind)}.")
        super().__post_init__()
        if not self.diffusivity >= 0:
            raise ValueError(f"`diffusivity` must not be negative, got {self.diffusivity}: waves would blow up.")
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
    def walls(self) -> tuple[Wall, ...]:
        periodic: Wall = "periodic"
        return (periodic,) * len(self.wind)

    @property
    def solver(self) -> str:
        return "fourier"

    @property
    def solver_options(self) -> dict[str, str | int | float | bool]:
        return {"points": self.points, "block": self.preferred_batch}

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Amplitude, phase and wave vector of every wave."""
        low = 1 - self.lmax
        return draw_waves(rng, waves=self.waves, low=low, high=self.lmax, dimensions=len(self.wind))

    def initial_condition(self, parameters: Parameters, *axes: Axis) -> Float[np.ndarray, "*grid"]:
        return self.exact_solution(parameters, 0.0)

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

    def equation(self, grid: SpectralGrid, parameters: Sequence[Parameters]) -> SpectralEquation:
        return advection_diffusion(grid, diffusivity=self.diffusivity, velocity=self.wind)


@dataclass(frozen=True)
class AdvectionDiffusion(LinearProblem):
    """Waves that travel with `velocity` (one component per dimension) and decay."""

    velocity: tuple[float, ...] = (1.0,)  # velocity, one component for each axis, in length per time

    name: ClassVar[str] = "advection-diffusion"
    formula: ClassVar[str] = (
        r"u_t + \mathbf{c} \cdot \nabla u = \kappa\,\Delta u, \qquad "
        r"\mathbf{c} = \text{velocity}, \quad \kappa = \text{diffusivity}"
    )

    @property
    def wind(self) -> tuple[float, ...]:
        return self.velocity


@dataclass(frozen=True)
class Heat(LinearProblem):
    """Waves that decay in place, in 1, 2 or 3 `dimensions`."""

    dimensions: int = 1  # number of space axes: 1, 2 or 3

    name: ClassVar[str] = "heat"
    formula: ClassVar[str] = r"u_t = \kappa\,\Delta u, \qquad \kappa = \text{diffusivity}"

    @property
    def wind(self) -> tuple[float, ...]:
        return (0.0,) * self.dimensions


@dataclass(frozen=True)
class HeatBox(SpectralProblem):
    """Heat between walls. Amplitudes are U[-1/2, 1/2), wavenumbers m below `lmax`.

    `boundary="mixed"`: the first axis Dirichlet, the others Neumann.
    """

    boundary: WallCondition = "dirichlet"  # of the walls: u = 0, no flux, or u = 0 on the first axis only (mixed)
    dimensions: int = 2  # number of space axes: 1, 2 or 3
    diffusivity: float = 0.01  # coefficient of u_xx, in length^2 per time
    length: float = 1.0  # length of each axis, in units of the equation
    points: int = 64  # stored grid points along each axis
    frames: int = 21  # stored frames of a trajectory
    end_time: float = 1.0  # time of the last frame, in units of the equation
    waves: int = 8  # sine waves in the initial state
    lmax: int = 6  # wavenumbers of the initial waves are below this

    name: ClassVar[str] = "heat-box"
    formula: ClassVar[str] = (
        r"u_t = \kappa\,\Delta u, \qquad u = 0 \text{ at Dirichlet walls}, \qquad "
        r"\partial_n u = 0 \text{ at Neumann walls}"
    )
    fields: ClassVar[tuple[str, ...]] = ("u",)
    dealias: ClassVar[bool] = False
    values_per_block: ClassVar[int] = 2**16

    def __post_init__(self) -> None:
        require_one_of("boundary", self.boundary, get_args(WallCondition))
        if not 1 <= self.dimensions <= 3:
            raise ValueError(f"A box has 1, 2 or 3 dimensions, got {self.dimensions}.")
        super().__post_init__()
        check_positive(diffusivity=self.diffusivity)
        check_at_least(2, lmax=self.lmax)
        check_at_least(1, waves=self.waves)
        if self.points < self.lmax:
            raise ValueError(f"`points` must be at least lmax to carry all waves, got {self.points} and {self.lmax}.")

    @property
    def walls(self) -> tuple[Wall, ...]:
        if self.boundary == "mixed":
            return tuple("neumann" if axis else "dirichlet" for axis in range(self.dimensions))
        return (self.boundary,) * self.dimensions

    @property
    def solver(self) -> str:
        return "fourier-unfolded"

    @property
    def solver_options(self) -> dict[str, str | int | float | bool]:
        return {"points": 2 * self.points, "block": self.preferred_batch}

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Amplitude and wavenumbers of every wave."""
        low = [int(wall == "dirichlet") for wall in self.walls]
        return {
            "amplitude": rng.uniform(-0.5, 0.5, size=self.waves),
            "wavenumber": rng.integers(low, self.lmax, size=(self.waves, self.dimensions)),
        }

    def initial_condition(self, parameters: Parameters, *axes: Axis) -> Float[np.ndarray, "*grid"]:
        return self.exact_solution(parameters, 0.0)

    def exact_solution(self, parameters: Parameters, time: float) -> Float[np.ndarray, "*grid"]:
        """The closed solution of one trajectory on the stored grid."""
        k = np.pi / self.length * parameters["wavenumber"]
        decay = parameters["amplitude"] * np.exp(-self.diffusivity * (k**2).sum(axis=1) * time)
        shapes = [
            (np.sin if wall == "dirichlet" else np.cos)(k[:, j, None] * axis.coordinates())
            for j, (wall, axis) in enumerate(zip(self.walls, self.axes, strict=True))
        ]
        letters = "xyz"[: self.dimensions]
        return np.einsum(f"i,{','.join('i' + letter for letter in letters)}->{letters}", decay, *shapes)

    def equation(self, grid: SpectralGrid, parameters: Sequence[Parameters]) -> SpectralEquation:
        return advection_diffusion(grid, diffusivity=self.diffusivity)
