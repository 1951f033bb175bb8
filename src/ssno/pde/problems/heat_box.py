"""Heat in a box with walls, exactly solvable: what a model must learn about walls, and nothing else.

    u_t = diffusivity laplace u,      u = 0 at Dirichlet walls, no flux through Neumann walls, box [0, length]^d
    u(x, t) = sum_i amplitude_i exp(-diffusivity |k_i|^2 t) prod_j f_j(k_ij x_j),      k = pi m / length

with f = sin and m = 1, 2, ... between Dirichlet walls, f = cos and m = 0, 1, ... between Neumann walls. `boundary` is
`dirichlet` or `neumann` for all axes, or `mixed`: the first axis Dirichlet, the others Neumann. The solver is the
Fourier solver of the unfolded box (`ssno.pde.spectral`), exact up to rounding; the sum above is `exact_solution`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from jaxtyping import Float

from ssno.pde.grids import SpectralGrid, check_at_least, check_positive
from ssno.pde.integrators import etdrk4
from ssno.pde.problems.problem import Axis, OnProgress, Parameters, Problem, Solution
from ssno.pde.spectral import Wall, advection_diffusion, box_axis, crop, extend, unfolded
from ssno.pde.stepping import FrameDone, in_blocks, spectral_frames

WallCondition = Literal["dirichlet", "neumann", "mixed"]
VALUES_PER_BLOCK = 2**16


@dataclass(frozen=True)
class HeatBox(Problem):
    """The problem; see the top of this module. Amplitudes are U[-1/2, 1/2), wavenumbers m below `lmax`."""

    boundary: WallCondition = "dirichlet"
    dimensions: int = 2
    diffusivity: float = 0.01
    length: float = 1.0
    points: int = 64
    frames: int = 21
    end_time: float = 1.0
    waves: int = 8
    lmax: int = 6

    name: ClassVar[str] = "heat-box"
    fields: ClassVar[tuple[str, ...]] = ("u",)

    def __post_init__(self) -> None:
        if self.boundary not in get_args(WallCondition):
            raise ValueError(f"`boundary` must be one of {get_args(WallCondition)}, got {self.boundary!r}.")
        if not 1 <= self.dimensions <= 3:
            raise ValueError(f"A box has 1, 2 or 3 dimensions, got {self.dimensions}.")
        check_positive(diffusivity=self.diffusivity, length=self.length, end_time=self.end_time)
        check_at_least(2, frames=self.frames, lmax=self.lmax)
        check_at_least(1, waves=self.waves)
        if self.points < self.lmax:
            raise ValueError(f"`points` must be at least lmax to carry all waves, got {self.points} and {self.lmax}.")

    @property
    def walls(self) -> tuple[Wall, ...]:
        """The kind of walls along every axis."""
        if self.boundary == "mixed":
            return tuple("neumann" if axis else "dirichlet" for axis in range(self.dimensions))
        return (self.boundary,) * self.dimensions

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(box_axis(name, self.length, self.points, w) for name, w in zip("xyz", self.walls, strict=False))

    @property
    def times(self) -> Float[np.ndarray, " t"]:
        return np.linspace(0, self.end_time, self.frames)

    @property
    def solver(self) -> str:
        return "fourier-unfolded"

    @property
    def solver_options(self) -> dict[str, str | int | float | bool]:
        return {"points": 2 * self.points, "block": self.preferred_batch}

    @property
    def preferred_batch(self) -> int:
        return min(64, max(2, VALUES_PER_BLOCK // (2 * self.points) ** self.dimensions))

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Amplitude and wavenumbers of every wave."""
        low = [int(wall == "dirichlet") for wall in self.walls]
        return {
            "amplitude": rng.uniform(-0.5, 0.5, size=self.waves),
            "wavenumber": rng.integers(low, self.lmax, size=(self.waves, self.dimensions)),
        }

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

    def solve(self, parameters: Sequence[Parameters], *, progress: OnProgress | None = None) -> Solution:
        grid = SpectralGrid(unfolded(self.axes), dealias=False)
        interval = self.end_time / (self.frames - 1)
        step = etdrk4(advection_diffusion(grid, diffusivity=self.diffusivity), interval)

        def solve_block(block: list[Parameters], frame_done: FrameDone) -> np.ndarray:
            initial = np.stack([extend(self.exact_solution(one, 0.0), self.walls) for one in block])[:, None]
            frames = spectral_frames(
                step, grid, initial, dt=interval, frames=self.frames, steps_per_frame=1, frame_done=frame_done
            )
            return crop(frames, self.axes)

        size = self.preferred_batch
        return Solution(in_blocks(solve_block, parameters, size=size, frames=self.frames, progress=progress))
