"""Turbulence in a periodic box of side 2 pi: forced, decaying, or out of a Taylor-Green vortex.

Solves `ssno.pde.velocity` from

    forced, decaying   a random field without divergence, energy spectrum E(k) ~ k^4 exp(-2 (k / PEAK)^2), whose mean
                       square velocity is 3 `speed`^2; decaying has no force
    taylor-green       the vortices of Taylor and Green (1937), in the family of Brachet et al. (1983), with a random
                       angle (0 is the flow that everybody computes) and a random shift along each axis, no force:
                       (u, v, w) = 2 / sqrt 3 (sin(a + 2 pi/3) sin x cos y cos z, sin(a - 2 pi/3) cos x sin y cos z,
                                               sin a cos x cos y sin z)

on `solver_points` per side, of which the 2/3 rule keeps waves up to `solver_points` / 3. Stored are all waves that
`points` per side can carry: with 3/2 times as many points, the solver loses nothing when it stores.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ssno.base.checks import in_units, require_one_of
from ssno.pde.grids import SpectralGrid, check_at_least, check_batch, check_positive
from ssno.pde.problems.problem import Axis, OnProgress, Parameters, Solution
from ssno.pde.problems.spectral_problem import Flow
from ssno.pde.spectral import SpectralEquation
from ssno.pde.stepping import courant_frames
from ssno.pde.velocity import mean_product, navier_stokes, without_divergence

Start = Literal["forced", "decaying", "taylor-green"]
SIDE = 2 * np.pi
PEAK, HIGHEST = 2.0, 6
"""Wave number of the largest energy in a random field, and the highest along an axis."""


@dataclass(frozen=True)
class BoxTurbulence(Flow):
    """The problem; see the top of this module."""

    flow: Start = "forced"  # forced; decaying; or taylor-green, which decays from large vortices
    points: int = 32
    solver_points: int = 48
    frames: int = 16
    first_time: float = 2.0
    frame_interval: float = 0.2
    step: float = 0.1
    viscosity: float = 0.0125  # kinematic viscosity, in length^2 per time
    power: float = 0.1  # energy that the force gives to a unit of volume per unit time
    speed: float = 0.6  # root mean square of a velocity component of the random initial field

    name: ClassVar[str] = "box-turbulence"
    fields: ClassVar[tuple[str, ...]] = ("velocity_x", "velocity_y", "velocity_z")
    courant: ClassVar[float] = 2.4  # speeds grow by less than a tenth between frames, and the scheme is stable to 2.8
    cached_points: ClassVar[int] = 32**3
    formula: ClassVar[str] = (
        r"\mathbf{u}_t + \mathbf{u} \cdot \nabla \mathbf{u} = -\nabla p + \nu\,\Delta \mathbf{u} + \mathbf{f}, \qquad "
        r"\nabla \cdot \mathbf{u} = 0"
    )

    def __post_init__(self) -> None:
        require_one_of("flow", self.flow, get_args(Start))
        super().__post_init__()
        check_positive(viscosity=self.viscosity, power=self.power, speed=self.speed)
        check_at_least(8, points=self.points)
        check_at_least(self.points, solver_points=self.solver_points)

    @property
    def axes(self) -> tuple[Axis, ...]:
        return cube(self.points)

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """The seed of the random field, or angle and shift of the vortices."""
        if self.flow == "taylor-green":
            return {"angle": np.array(rng.uniform(0, 2 * np.pi)), "shift": rng.uniform(0, SIDE, size=3)}
        return {"field_seed": np.array(rng.integers(0, 2**62), dtype=np.int64)}

    def initial_condition(self, parameters: Parameters, points: int) -> Float[np.ndarray, "3 x y z"]:
        """Velocity at t = 0 on a grid of any size."""
        if self.flow == "taylor-green":
            return taylor_green(points, angle=float(parameters["angle"]), shift=parameters["shift"])
        return self.speed * random_velocity(int(parameters["field_seed"]), points)

    def equation(self, grid: SpectralGrid, trajectories: int) -> SpectralEquation:
        """The equation of some trajectories."""
        viscosity = torch.full((trajectories,), self.viscosity, dtype=torch.float64)
        return navier_stokes(grid, viscosity=viscosity, power=self.power if self.flow == "forced" else 0.0)

    def solve(self, parameters: Sequence[Parameters], *, progress: OnProgress | None = None) -> Solution:
        check_batch(parameters)
        grid = SpectralGrid(cube(self.solver_points), dealias=True)
        # The step is chosen again at every time that is asked for, so the time before frame 0 is cut like the rest.
        waiting = int(np.ceil(in_units(self.first_time, self.frame_interval)))
        times = np.concatenate([np.linspace(0, self.first_time, waiting, endpoint=False), self.times])
        total = len(parameters) * self.frames
        state = courant_frames(
            grid,
            np.stack([self.initial_condition(one, self.solver_points) for one in parameters]),
            times,
            equation=lambda indices: self.equation(grid, len(indices)),
            velocity=grid.to_field,
            stored=lambda modes: on_points(modes, self.points),
            step=self.step,
            courant=self.courant,
            halve=self.preferred_batch > 1,
            block=self.preferred_batch,
            progress=None if progress is None else lambda done, all_: progress(done * total // all_, total),
        )
        return Solution(state[:, waiting:])


def cube(points: int) -> tuple[Axis, Axis, Axis]:
    """The axes of the box."""
    return Axis("x", SIDE, points), Axis("y", SIDE, points), Axis("z", SIDE, points)


def on_points(modes: Tensor, points: int) -> Float[Tensor, "b c x y z"]:
    """The waves shorter than half the grid's frequency, |m| < points / 2, on a grid of `points` per side."""
    most = min((points - 1) // 2, modes.shape[-1] - 1)
    spectrum = modes.new_zeros((*modes.shape[:-3], points, points, points // 2 + 1))
    here, there = (slice(0, most + 1), slice(-most, None)), slice(0, most + 1)
    for x in here:
        for y in here:
            spectrum[..., x, y, there] = modes[..., x, y, there]
    return torch.fft.irfftn(spectrum, s=(points,) * 3, dim=(-3, -2, -1), norm="forward")


def taylor_green(points: int, *, angle: float, shift: Sequence[float] | np.ndarray) -> Float[np.ndarray, "3 x y z"]:
    """The vortices at the top of this module, moved by `shift`."""
    positions = [axis.coordinates() - by for axis, by in zip(cube(points), shift, strict=True)]
    (sin_x, cos_x), (sin_y, cos_y), (sin_z, cos_z) = [
        (np.sin(at), np.cos(at)) for at in np.meshgrid(*positions, indexing="ij", sparse=True)
    ]
    sizes = 2 / np.sqrt(3) * np.sin(angle + np.array([2, -2, 0]) * np.pi / 3)
    shapes = (sin_x * cos_y * cos_z, cos_x * sin_y * cos_z, cos_x * cos_y * sin_z)
    return np.stack([size * shape for size, shape in zip(sizes, shapes, strict=True)])


def random_velocity(seed: int, points: int) -> Float[np.ndarray, "3 x y z"]:
    """A random field without divergence whose components have root mean square 1 on average over the three.

    A seed means the same field on every grid that carries its waves, up to HIGHEST along each axis.
    """
    grid = SpectralGrid(cube(max(points, 3 * HIGHEST + 1)), dealias=True)
    numbers = half_space(HIGHEST)
    normals = np.random.Generator(np.random.Philox(seed)).standard_normal((2, 3, len(numbers)))
    length = np.linalg.norm(numbers, axis=1)
    waves = length * np.exp(-((length / PEAK) ** 2)) * (normals[0] + 1j * normals[1])
    modes = torch.zeros((1, 3, *grid.modes_shape), dtype=torch.complex128)
    for sign in (1, -1):
        stored = sign * numbers[:, 2] >= 0
        x, y, z = sign * numbers[stored].T
        modes[0, :, x, y, z] = torch.from_numpy((waves if sign == 1 else waves.conj())[:, stored])
    modes = without_divergence(grid, modes)
    modes = modes * (3 / mean_product(grid, modes, modes)).sqrt()
    return on_points(modes, points)[0].numpy()


@lru_cache(maxsize=1)
def half_space(highest: int) -> Int[np.ndarray, "s 3"]:
    """Wave numbers up to `highest` along each axis of which one of m and -m is listed."""
    side = np.arange(-highest, highest + 1)
    x, y, z = (axis.ravel() for axis in np.meshgrid(side, side, side, indexing="ij"))
    listed = (z > 0) | ((z == 0) & ((y > 0) | ((y == 0) & (x > 0))))
    return np.stack([x, y, z], axis=1)[listed]
