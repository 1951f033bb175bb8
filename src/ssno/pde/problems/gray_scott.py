"""Gray-Scott patterns in a periodic square, between two walls, or in a box: spots that divide, stripes that wind.

    u_t = d_u laplace u - u v^2 + feed (1 - u),      v_t = d_v laplace v + u v^2 - (feed + kill) v

on a square of side `length`: a substance u is fed and consumed by an autocatalyst v, which is removed. (u, v) = (1, 0)
is stable, but a spot of v grows, divides or winds into stripes at about feed = 0.02 to 0.06, kill = 0.05 to 0.065.
At t = 0, u = 1 and v = 0 but for Gaussian spots of random place and width, which turn u to 1/2 and v to 1/4. The feed
rate is drawn for each trajectory from U[lowest_feed, highest_feed); it is the context field. `boundary` is `periodic`;
`channel`, periodic along x with walls along y; or `walls`, walls everywhere. Walls let nothing through (Neumann).

ETDRK4 in time; walls by unfolding (`ssno.pde.spectral`), which solves on twice the points along a walled axis.
Frames against those on 256^2 points at the same places, worst of four periodic trajectories:

    points  t    relative L2, u and v together   of v alone   largest difference
    128^2   100  8e-5                            7e-4         1.2e-3
    128^2   560  1.4e-4                          5e-4         8e-4
    64^2    100  8e-3                            5e-2         0.09
    64^2    560  3.5e-2                          0.12         0.23
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base.checks import require_one_of
from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid, check_at_least, check_positive
from ssno.pde.problems.problem import Parameters
from ssno.pde.problems.spectral_problem import SpectralProblem
from ssno.pde.spectral import SpectralCoefficients, SpectralEquation, Wall, box_axis


def gray_scott(
    grid: SpectralGrid, *, diffusivities: tuple[float, float], feed: Float[Tensor, " b"], kill: float
) -> SpectralEquation:
    """The equations above with a feed rate for each trajectory, in any number of dimensions.

    Diffusion and the linear rates are integrated exactly. Axes: b trajectory, c = 2 (u, v), *modes.
    """
    ones = (1,) * len(grid.axes)
    removed = torch.stack([feed, feed + kill], dim=1).reshape(-1, 2, *ones)
    spread = torch.tensor(diffusivities, dtype=torch.float64).reshape(1, 2, *ones)

    def nonlinear(modes: SpectralCoefficients, time: float) -> SpectralCoefficients:
        fields = grid.to_field(modes)
        consumed = grid.to_modes(fields[:, :1] * fields[:, 1:].square())
        rate = torch.cat([-consumed, consumed], dim=1)
        rate[:, 0].flatten(1)[:, 0] += feed  # mode 0 is the mean
        return rate

    return SpectralEquation(grid, spread * grid.laplacian() - removed, nonlinear)


WallCondition = Literal["periodic", "channel", "walls"]


@dataclass(frozen=True)
class GrayScott(SpectralProblem):
    """The problem; see the top of this module. `step` is the longest time step, `warm_up` the time before frame 0.

    The solver works on `solver_points` points per side of the square, of which every n-th is stored.
    """

    boundary: WallCondition = "periodic"  # periodic; walls along y only (channel); or walls all around
    points: int = 64  # stored grid points along each axis
    solver_points: int = 128  # grid points of the solver along each axis, a multiple of the stored ones
    length: float = 1.0  # length of each axis, in units of the equation
    frames: int = 24  # stored frames of a trajectory
    frame_interval: float = 20.0  # time between frames, in units of the equation
    warm_up: float = 100.0  # time before the first frame, in units of the equation
    step: float = 1.0  # longest time step of the solver, in units of the equation
    diffusivity_u: float = 2e-5  # diffusivity of u, in length^2 per time
    diffusivity_v: float = 1e-5  # diffusivity of v, in length^2 per time
    lowest_feed: float = 0.025  # lower end of the feed rates, per unit time
    highest_feed: float = 0.05  # upper end of the feed rates, per unit time
    kill: float = 0.06  # removal rate of v, per unit time
    spots: int = 12  # spots in the initial state

    name: ClassVar[str] = "gray-scott"
    formula: ClassVar[str] = (
        r"u_t = d_u \Delta u - u v^2 + F (1 - u), \qquad v_t = d_v \Delta v + u v^2 - (F + k) v, \qquad "
        r"F = \text{feed}, \quad k = \text{kill}"
    )
    fields: ClassVar[tuple[str, ...]] = ("u", "v")
    context_fields: ClassVar[tuple[str, ...]] = ("feed",)

    def __post_init__(self) -> None:
        require_one_of("boundary", self.boundary, get_args(WallCondition))
        super().__post_init__()
        rates = {name: getattr(self, name) for name in ("diffusivity_u", "diffusivity_v", "lowest_feed", "kill")}
        check_positive(**rates)
        check_at_least(1, spots=self.spots)
        check_at_least(8, solver_points=self.solver_points)
        if self.highest_feed < self.lowest_feed:
            raise ValueError(
                f"`highest_feed` must be at least `lowest_feed`, got {self.highest_feed} and {self.lowest_feed}."
            )

    @property
    def walls(self) -> tuple[Wall, Wall]:
        return (
            "neumann" if self.boundary == "walls" else "periodic",
            "periodic" if self.boundary == "periodic" else "neumann",
        )

    @property
    def solver_axes(self) -> tuple[Axis, ...]:
        """Cell centres also along periodic axes, so that all boundaries share one grid."""
        sides = zip("xy", self.walls, strict=True)
        return tuple(box_axis(name, self.length, self.solver_points, wall) for name, wall in sides)

    @property
    def times(self) -> Float[np.ndarray, " t"]:
        return self.warm_up + self.frame_interval * np.arange(self.frames)

    @property
    def preferred_batch(self) -> int:
        return 2

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Feed rate, and places (as fractions of the side) and widths of the spots."""
        return {
            "feed": np.array(rng.uniform(self.lowest_feed, self.highest_feed)),
            "place": rng.uniform(0, 1, size=(self.spots, 2)),
            "width": rng.uniform(0.02, 0.06, size=self.spots),
        }

    def initial_condition(self, parameters: Parameters, *axes: Axis) -> Float[np.ndarray, "2 x y"]:
        shapes = []
        for dim, (axis, wall) in enumerate(zip(axes, self.walls, strict=True)):
            place = parameters["place"][:, dim, None]
            images = (place - 1, place, place + 1) if wall == "periodic" else (-place, place, 2 - place)
            gaps = [(axis.coordinates() / self.length - image) / parameters["width"][:, None] for image in images]
            shapes.append(sum(np.exp(-0.5 * gap**2) for gap in gaps))
        bumps = np.einsum("sx,sy->xy", *shapes)
        spots = 1 - np.exp(-bumps)  # overlapping spots do not add up beyond one
        return np.stack([1 - 0.5 * spots, 0.25 * spots])

    def equation(self, grid: SpectralGrid, parameters: Sequence[Parameters]) -> SpectralEquation:
        spread = (self.diffusivity_u, self.diffusivity_v)
        return gray_scott(grid, diffusivities=spread, feed=torch.from_numpy(self._feed(parameters)), kill=self.kill)

    def context(self, parameters: Sequence[Parameters]) -> Float[np.ndarray, "n 1 1 x y"]:
        feed = self._feed(parameters)[:, None, None, None, None]
        return np.broadcast_to(feed, (len(feed), 1, 1, self.points, self.points))

    def _feed(self, parameters: Sequence[Parameters]) -> Float[np.ndarray, " n"]:
        return np.array([float(one["feed"]) for one in parameters])
