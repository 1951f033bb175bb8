"""The three Navier-Stokes datasets on the unit torus: TorusLi, TorusVis and TorusVisForce.

All solve the vorticity equation (`ssno.pde.vorticity`) from a Gaussian random field
(`ssno.pde.initial_conditions`).

| name | viscosity | force | frames | context fields |
|---|---|---|---|---|
| torus-li | 1e-5 | 0.1 [sin 2 pi (x + y) + cos 2 pi (x + y)] | 20, at t = 1, 2, ..., 20 | none |
| torus-vis | U[1e-5, 1e-4) | 12 waves, amplitudes 0.1 U[0, 1) | 20, at t = 0.1, 1.1, ..., 19.1 | force, viscosity |
| torus-vis-force | U[1e-5, 1e-4) | the same with a phase of 0.2 t | 20, at t = 0.1, 1.1, ..., 19.1 | force, viscosity |

The public files have no frame at t = 0, and neither do these. The waves of the random force are sin and cos of
2 pi p x, 2 pi p y and 2 pi p (x + y) for p = 1, 2; the printed formula also has a constant, which would force the
mean vorticity of a torus, and the source code does not have it.

Vorticity grows from a standard deviation of 0.26 to about 1.7, with |w| up to 8 and speeds up to 0.5. The grid
matters: at t = 20 a run on 128^2 points is 4 % away from one on 256^2, a run on 64^2 points 12 %. The public data come
from 256^2 points and a first-order scheme with steps of 1e-4; ours are fourth order in time.
"""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np
from jaxtyping import Float

from ssno.base.checks import require_one_of
from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid, check_batch, check_multiple, check_positive
from ssno.pde.initial_conditions import Convention, gaussian_field
from ssno.pde.problems.problem import OnProgress, Parameters, Solution
from ssno.pde.problems.spectral_problem import Flow
from ssno.pde.vorticity import WaveForce, vorticity_frames

FORCE = 0.1
LI_WAVES = np.array([[1, 1]])
RANDOM_WAVES = np.array([[p * i, p * j] for p in (1, 2) for i, j in ((1, 0), (0, 1), (1, 1))])


@dataclass(frozen=True)
class Torus(Flow):
    """What the three share. The solver's grid has `solver_points` per side, of which every n-th is stored."""

    solver_points: int = 256  # grid points of the solver per side, a multiple of the stored ones
    convention: Convention = "fno2020"  # random initial field of the FNO code of 2020 or of 2022

    fields: ClassVar[tuple[str, ...]] = ("vorticity",)
    cached_points: ClassVar[int] = 128 * 128
    formula: ClassVar[str] = (
        r"\omega_t + \mathbf{u} \cdot \nabla \omega = \nu\,\Delta \omega + f, \qquad "
        r"\mathbf{u} = (\psi_y, -\psi_x), \qquad -\Delta \psi = \omega"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiple("solver_points", self.solver_points, self.points)
        require_one_of("convention", self.convention, get_args(Convention))

    @property
    def axes(self) -> tuple[Axis, ...]:
        return _square(self.points)

    @abc.abstractmethod
    def force(self, parameters: Sequence[Parameters]) -> WaveForce:
        """The force of some trajectories."""

    @abc.abstractmethod
    def viscosity_of(self, parameters: Parameters) -> float:
        """The viscosity of one trajectory."""

    def initial_condition(self, parameters: Parameters, points: int) -> Float[np.ndarray, "x y"]:
        """Vorticity at t = 0 on a grid of any size."""
        return gaussian_field(int(parameters["field_seed"]), points, convention=self.convention)

    def context(self, parameters: Sequence[Parameters]) -> Float[np.ndarray, "n t k x y"] | None:
        """Context fields at the stored times; none here."""
        return None

    def solve(self, parameters: Sequence[Parameters], *, progress: OnProgress | None = None) -> Solution:
        check_batch(parameters)
        state = vorticity_frames(
            SpectralGrid(_square(self.solver_points), dealias=True),
            np.stack([self.initial_condition(one, self.solver_points) for one in parameters]),
            self.times,
            viscosity=np.array([self.viscosity_of(one) for one in parameters]),
            force=lambda indices: self.force([parameters[i] for i in indices]),
            step=self.step,
            block=self.preferred_batch,
            stride=self.solver_points // self.points,
            progress=progress,
        )
        return Solution(state[:, :, None], self.context(parameters))


@dataclass(frozen=True)
class TorusLi(Torus):
    """One viscosity, one steady force: the flow of `NavierStokes_V1e-5_N1200_T20.mat`."""

    viscosity: float = 1e-5  # kinematic viscosity, in length^2 per time

    name: ClassVar[str] = "torus-li"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(viscosity=self.viscosity)

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """The seed of the initial field."""
        return {"field_seed": _field_seed(rng)}

    def force(self, parameters: Sequence[Parameters]) -> WaveForce:
        both = np.full((len(parameters), 1), FORCE)
        return WaveForce(LI_WAVES, sine=both, cosine=both)

    def viscosity_of(self, parameters: Parameters) -> float:
        return self.viscosity


@dataclass(frozen=True)
class TorusVis(Torus):
    """A viscosity and a steady force for each trajectory; both are context fields."""

    first_time: float = 0.1
    lowest_viscosity: float = 1e-5  # lower end of the viscosities, in length^2 per time
    highest_viscosity: float = 1e-4  # upper end of the viscosities, in length^2 per time

    name: ClassVar[str] = "torus-vis"
    context_fields: ClassVar[tuple[str, ...]] = ("force", "viscosity")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(lowest_viscosity=self.lowest_viscosity, highest_viscosity=self.highest_viscosity)
        if self.highest_viscosity < self.lowest_viscosity:
            raise ValueError(
                f"`highest_viscosity` must be at least `lowest_viscosity`, got {self.highest_viscosity} and "
                f"{self.lowest_viscosity}."
            )

    @property
    def phase_speed(self) -> float:
        """Radians by which the waves of the force turn per unit time."""
        return 0.0

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Seed of the field, viscosity, and amplitudes in the order sin x, cos x, sin y, cos y, sin (x+y), ..."""
        seed = _field_seed(rng)
        viscosity = rng.uniform(self.lowest_viscosity, self.highest_viscosity)
        amplitude = rng.uniform(0, 1, size=(len(RANDOM_WAVES), 2))
        return {
            "field_seed": seed,
            "viscosity": np.array(viscosity),
            "force_sine": amplitude[:, 0].copy(),
            "force_cosine": amplitude[:, 1].copy(),
        }

    def force(self, parameters: Sequence[Parameters]) -> WaveForce:
        sine, cosine = (FORCE * np.stack([one[key] for one in parameters]) for key in ("force_sine", "force_cosine"))
        return WaveForce(RANDOM_WAVES, sine=sine, cosine=cosine, drift=self.phase_speed)

    def viscosity_of(self, parameters: Parameters) -> float:
        return float(parameters["viscosity"])

    def context(self, parameters: Sequence[Parameters]) -> Float[np.ndarray, "n t k x y"]:
        """Force and viscosity; a single frame if nothing changes in time."""
        force, axes = self.force(parameters), _square(self.points)
        times = self.times if force.drift else self.times[:1]
        fields = np.empty((len(parameters), len(times), 2, self.points, self.points))
        for frame, time in enumerate(times):
            fields[:, frame, 0] = force.values(axes, float(time))
        fields[:, :, 1] = np.array([self.viscosity_of(one) for one in parameters])[:, None, None, None]
        return fields


@dataclass(frozen=True)
class TorusVisForce(TorusVis):
    """As TorusVis, with waves whose phase grows by `drift` radians per unit time."""

    drift: float = 0.2  # phase that the force gains, in radians per unit time

    name: ClassVar[str] = "torus-vis-force"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.isfinite(self.drift):
            raise ValueError(f"`drift` must be a finite number, got {self.drift}.")

    @property
    def phase_speed(self) -> float:
        return self.drift


def _square(points: int) -> tuple[Axis, Axis]:
    return Axis("x", 1.0, points), Axis("y", 1.0, points)


def _field_seed(rng: np.random.Generator) -> np.ndarray:
    return np.array(rng.integers(0, 2**62), dtype=np.int64)
