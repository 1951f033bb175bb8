"""Shallow-water trajectories on the sphere: the public random data, and flows whose behaviour is known.

The equations are `ssno.pde.sphere`, the initial states `ssno.pde.sphere`. Frames are stored on
the equiangular grid with poles, nlat x 2 nlat, north first; the solver has L = ceil(nlat / 3) degrees on a Gauss grid.

| scheme | what | for |
|---|---|---|
| public | third-order Adams-Bashforth, started afresh in every frame, 150 s x 256 / nlat | the public data |
| rk4 | fourth-order Runge-Kutta, half that step | physics |

The two differ by 17 to 28 % after one frame: at these steps the public scheme damps the gravity waves that are most of
its data, so a model of the public data learns that integrator. After each step zeta and delta decay by
exp(-dt/hyperdiffusion (l (l+1) / ((L-1) L))^4), and with `viscosity` all three by exp(-viscosity l (l+1) dt / a^2).

What to expect of the public data: std(Phi) 105 / 212 / 417 / 837 m^2/s^2 at nlat 32 / 64 / 128 / 256 around a mean of
98,062; speeds of 1.4 to 2.3 m/s; almost linear, not chaotic, losing half of its norm in 100 hours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, get_args

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ssno.base.checks import require_one_of
from ssno.pde import sphere as sphere_flows
from ssno.pde.geometry import SPHERE, Axis, Geometry
from ssno.pde.grids import check_at_least, check_positive
from ssno.pde.integrators import restarted_adams_bashforth, runge_kutta
from ssno.pde.problems.problem import OnProgress, Parameters, Problem, Solution, SolverDiverged
from ssno.pde.sphere import ShallowWaterEquations
from ssno.pde.stepping import FrameDone, in_blocks, steps_between
from ssno.transforms.sphere import SphereGrid, SphereTransform

SphereScheme = Literal["public", "rk4"]
SphereState = Literal["public", "vortical", "galewsky", "rossby-haurwitz", "zonal"]
BLOCKS = {16: 8, 32: 8, 64: 4}
"""Trajectories advanced together, by colatitudes of the solver's grid; 2 on larger ones: what a core's cache holds."""


@dataclass(frozen=True)
class ShallowWater(Problem):
    """The problem; see the top of this module.

    `interval` (s) between frames is an hour for the public state, six otherwise; `scheme` is the public one for the
    public state, `rk4` otherwise; `step` (s) is the longest step allowed. `hyperdiffusion` (s) is the time in which
    the highest degree decays, `viscosity` is in m^2/s; 0 turns either off.
    """

    nlat: int = 64  # latitudes of the stored grid; it has twice as many longitudes
    frames: int = 101  # stored frames of a trajectory
    interval: float | None = None  # seconds between frames; by default 3600 for `public` states, else 21600
    step: float | None = None  # longest time step of the solver, in seconds; by default it follows from the grid
    scheme: SphereScheme | None = None  # the integrator of the public data, or Runge-Kutta
    initial: SphereState = "public"  # random state of the public data, eddies, a jet, a wave or a steady flow
    hyperdiffusion: float = 7200.0  # time in which the highest degree decays, in seconds; 0 for none
    viscosity: float = 0.0  # kinematic viscosity, in m^2/s; 0 for none

    name: ClassVar[str] = "swe"
    formula: ClassVar[str] = (
        r"\Phi_t = -\nabla \cdot (\Phi \mathbf{v}), \qquad \zeta_t = -\nabla \cdot ((\zeta + f) \mathbf{v}), \qquad "
        r"\delta_t = \nabla \times ((\zeta + f) \mathbf{v}) - \Delta (\Phi + \tfrac{1}{2} |\mathbf{v}|^2)"
    )
    fields: ClassVar[tuple[str, ...]] = ("geopotential", "vorticity", "divergence")
    geometry: ClassVar[Geometry] = SPHERE

    def __post_init__(self) -> None:
        check_at_least(6, nlat=self.nlat)
        check_at_least(1, frames=self.frames)
        require_one_of("initial", self.initial, get_args(SphereState))
        if self.scheme is None:
            object.__setattr__(self, "scheme", "public" if self.initial == "public" else "rk4")
        require_one_of("scheme", self.scheme, get_args(SphereScheme))
        if self.interval is None:
            object.__setattr__(self, "interval", 3600.0 if self.initial == "public" else 21600.0)
        if self.step is None:
            object.__setattr__(self, "step", 150.0 * 256 / self.nlat / (1 if self.scheme == "public" else 2))
        check_positive(interval=self.interval, step=self.step)  # type: ignore[arg-type]
        for name in ("hyperdiffusion", "viscosity"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(f"`{name}` must be 0 (off) or a positive finite number, got {getattr(self, name)}.")
        if self.scheme == "public" and not self.hyperdiffusion:
            raise ValueError(
                "`scheme='public'` amplifies the fastest waves and needs `hyperdiffusion`, got 0. Use scheme='rk4'."
            )

    @property
    def degrees(self) -> int:
        """L: degrees l = 0 ... L - 1 are solved for, so that products do not alias on the stored grid."""
        return -(-self.nlat // 3)

    @property
    def axes(self) -> tuple[Axis, ...]:
        length = self.nlat * np.pi / (self.nlat - 1)
        return (
            Axis("colatitude", length, self.nlat, periodic=False),
            Axis("longitude", 2 * np.pi, 2 * self.nlat),
        )

    @property
    def times(self) -> Float[np.ndarray, " t"]:
        return self.interval * np.arange(self.frames)  # type: ignore[operator]

    @property
    def steps_per_frame(self) -> int:
        return steps_between(self.interval, self.step)  # type: ignore[arg-type]

    @property
    def dt(self) -> float:
        """The step really taken: the frame interval divided evenly."""
        return self.interval / self.steps_per_frame  # type: ignore[operator]

    @property
    def solver(self) -> str:
        return f"spherical-harmonics-{self.scheme}"

    @property
    def solver_options(self) -> dict[str, str | int | float | bool]:
        return {"degrees": self.degrees, "dt": self.dt, "dealias": True, "block": self.preferred_batch}

    @property
    def preferred_batch(self) -> int:
        return next((size for nlat, size in BLOCKS.items() if 3 * self.degrees <= 2 * nlat + 2), 2)

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """The seed of a random state, or the longitude or angle of one that is known."""
        if self.initial in ("public", "vortical"):
            return {"field_seed": np.array(rng.integers(2**62))}
        if self.initial == "zonal":
            return {"angle": np.array(rng.uniform(0, np.pi / 2))}
        return {"longitude": np.array(rng.uniform(0, 2 * np.pi))}

    def initial_state(self, parameters: Parameters, equations: ShallowWaterEquations) -> Complex[Tensor, "m l c"]:
        """Coefficients of Phi, zeta and delta at t = 0."""
        if self.initial == "public":
            return sphere_flows.public(equations, seed=int(parameters["field_seed"]))
        if self.initial == "vortical":
            return sphere_flows.vortical(equations, seed=int(parameters["field_seed"]))
        if self.initial == "zonal":
            return sphere_flows.zonal(equations, angle=float(parameters["angle"]))
        flow = sphere_flows.galewsky if self.initial == "galewsky" else sphere_flows.rossby_haurwitz
        return flow(equations, longitude=float(parameters["longitude"]))

    def factor(self, equations: ShallowWaterEquations) -> Float[Tensor, "l c 1"]:
        """What every step multiplies the coefficients with."""
        l = torch.arange(self.degrees, dtype=torch.float64)
        all_fields = -self.viscosity * self.dt * l * (l + 1) / equations.planet.radius**2
        rate = 1 / self.hyperdiffusion if self.hyperdiffusion else 0.0
        flow = -self.dt * rate * (l * (l + 1) / max(1, (self.degrees - 1) * self.degrees)) ** 4
        return torch.exp(torch.stack([all_fields, all_fields + flow, all_fields + flow], dim=1))[..., None]

    def next_frame(
        self, equations: ShallowWaterEquations, *, coriolis: Float[Tensor, "lon lat b"] | None = None
    ) -> Callable[[Complex[Tensor, "m l c b"]], Complex[Tensor, "m l c b"]]:
        """The map from the coefficients of one frame to those of the next."""
        advance = restarted_adams_bashforth if self.scheme == "public" else runge_kutta
        options = {"dt": self.dt, "steps": self.steps_per_frame, "factor": self.factor(equations)}
        return lambda state: advance(partial(equations.rate, coriolis=coriolis), state, **options)  # type: ignore[arg-type]

    def coefficients(
        self, parameters: Sequence[Parameters], *, frame_done: FrameDone | None = None
    ) -> Complex[np.ndarray, "n t m l c"]:
        """Frames as coefficients, all trajectories together, without a grid."""
        equations = ShallowWaterEquations(self.degrees)
        coriolis = None
        if self.initial == "zonal":
            tilts = [sphere_flows.tilted(equations, angle=float(one["angle"])) for one in parameters]
            coriolis = 2 * equations.planet.rotation * torch.stack(tilts, dim=2)
        following = self.next_frame(equations, coriolis=coriolis)
        state = torch.stack([self.initial_state(one, equations) for one in parameters], dim=3)
        stored = np.empty((len(parameters), self.frames, *state.shape[:3]), dtype=np.complex128)
        for frame in range(self.frames):
            if frame:
                state = following(state)
            finite = torch.isfinite(torch.view_as_real(state)).flatten(0, 2).all(-1).all(0)
            if not bool(finite.all()):
                culprit = int(finite.logical_not().nonzero()[0])
                raise SolverDiverged(culprit, frame * self.steps_per_frame, float(self.times[frame]))
            stored[:, frame] = state.permute(3, 0, 1, 2).numpy()
            if frame_done is not None:
                frame_done(frame + 1)
        return stored

    def solve(self, parameters: Sequence[Parameters], *, progress: OnProgress | None = None) -> Solution:
        grid = SphereGrid(self.nlat, 2 * self.nlat)
        transform = SphereTransform(grid, degrees=self.degrees, dtype=torch.float64)

        def solve_block(block: list[Parameters], frame_done: FrameDone) -> np.ndarray:
            modes = torch.from_numpy(self.coefficients(block, frame_done=frame_done))  # n t m l c
            return transform.synthesise(modes.permute(0, 1, 4, 3, 2)).numpy()

        state = in_blocks(solve_block, parameters, size=self.preferred_batch, frames=self.frames, progress=progress)
        return Solution(np.ascontiguousarray(state))


@dataclass(frozen=True)
class VorticalShallowWater(ShallowWater):
    """Balanced eddies by Runge-Kutta, six hours apart: nonlinear, steady in the mean, predictable."""

    initial: SphereState = "vortical"

    name: ClassVar[str] = "swe-vortical"
