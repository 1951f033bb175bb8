"""kt-foil: exact ideal flow past random Karman-Trefftz aerofoils, sampled on point clouds (`foil_cloud`).

A trajectory has two frames on one axis of points: the undisturbed stream (v the inlet velocity, p = 0), then the flow.
To forecast frame 1 from frame 0 is to solve the flow; the shape is in the known fields x, y, wall_distance, normal_x,
normal_y. Each case has a shape, an angle of attack and a speed of its own, uniform in

    ex [0.06, 0.14]     ey [0, 0.10]     tail angle [4, 18] degrees     angle [-5, 15] degrees     speed [31, 94] m/s

which gives thicknesses of 9 to 22 %, camber up to 4.6 % and lift coefficients of -0.5 to 2.4. Tasks, after AirfRANS:
`full`, `scarce` (a quarter of the training cases), `aoa` (train on -2.5 to 12.5 degrees, test outside).
Axes: n case, t frame, c field, p point.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from jaxtyping import Float

from ssno.pde.checks import check_at_least, check_batch
from ssno.pde.equations.karman_trefftz import Foil, FoilFlow
from ssno.pde.problems.foil_cloud import Cloud, sample_cloud
from ssno.pde.problems.problem import Axis, GridType, OnProgress, Parameters, Problem, Solution

FoilTask = Literal["full", "scarce", "aoa"]
Units = Literal["physical", "stream"]

EX, EY, TAIL = (0.06, 0.14), (0.0, 0.10), (4.0, 18.0)
ANGLE, INNER_ANGLE, SPEED = (-5.0, 15.0), (-2.5, 12.5), (31.0, 94.0)


@dataclass(frozen=True)
class KTFoil(Problem):
    """The problem; see the top of this module.

    `units="stream"` measures velocities in inlet speeds, v/U and p/U^2, in which all cases weigh alike; "physical" are
    m/s, as in AirfRANS, and fast flows rule mean squares (p grows with U^2). `wall_layer` is a length over which the
    velocity is made to vanish towards the wall, v (1 - exp(-distance/wall_layer)): synthetic, for files that mark
    walls by v = 0.
    """

    task: FoilTask = "full"
    units: Units = "stream"
    points: int = 16384
    wall_points: int = 512
    wall_layer: float = 0.0

    name: ClassVar[str] = "kt-foil"
    fields: ClassVar[tuple[str, ...]] = ("v_x", "v_y", "p")
    context_fields: ClassVar[tuple[str, ...]] = ("x", "y", "wall_distance", "normal_x", "normal_y")
    grid_type: ClassVar[GridType] = "points"

    def __post_init__(self) -> None:
        for option, allowed in (("task", get_args(FoilTask)), ("units", get_args(Units))):
            if getattr(self, option) not in allowed:
                raise ValueError(f"`{option}` must be one of {allowed}, got {getattr(self, option)!r}.")
        check_at_least(8, wall_points=self.wall_points)
        check_at_least(self.wall_points, points=self.points)
        if not 0 <= self.wall_layer < math.inf:
            raise ValueError(f"`wall_layer` must be 0 (none) or a length, got {self.wall_layer}.")

    @property
    def axes(self) -> tuple[Axis, ...]:
        return (Axis("point", float(self.points), self.points, periodic=False),)

    @property
    def times(self) -> Float[np.ndarray, " t"]:
        return np.array([0.0, 1.0])

    @property
    def solver(self) -> str:
        return "karman-trefftz"

    @property
    def solver_options(self) -> dict[str, str | int | float | bool]:
        return {"exact": True}

    @property
    def preferred_batch(self) -> int:
        return 16

    @property
    def train_share(self) -> float:
        return 0.25 if self.task == "scarce" else 1.0

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Shape, angle (degrees), speed, the key of the point cloud, and the exact lift coefficient that follows."""
        return self.draw_for("train", rng)

    def draw_for(self, split: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
        ex, ey, tail, speed = (rng.uniform(low, high) for low, high in (EX, EY, TAIL, SPEED))
        angle = self._angle(rng.uniform(), split)
        drawn = {"ex": ex, "ey": ey, "tail_angle": tail, "angle": angle}
        drawn["speed"] = 1.0 if self.units == "stream" else speed
        parameters = {key: np.array(value) for key, value in drawn.items()}
        lift = np.array(flow_of(parameters).lift_coefficient)
        return {**parameters, "cloud_key": np.array(rng.integers(2**63 - 1)), "lift_coefficient": lift}

    def _angle(self, place: float, split: str) -> float:
        """The angle at `place` in [0, 1) of the range that the task gives to a split."""
        (low, high), (inner_low, inner_high) = ANGLE, INNER_ANGLE
        if self.task != "aoa":
            return low + (high - low) * place
        if split != "test":
            return inner_low + (inner_high - inner_low) * place
        outer = (high - low - (inner_high - inner_low)) * place
        return low + outer + (inner_high - inner_low if low + outer >= inner_low else 0.0)

    def cloud(self, parameters: Parameters) -> Cloud:
        """The sampling points of one case: the same for every call, whatever the flow."""
        rng = np.random.Generator(np.random.Philox(int(parameters["cloud_key"])))
        foil = flow_of(parameters).foil
        return sample_cloud(foil, rng, points=self.points, wall_points=self.wall_points)

    def solve(self, parameters: Sequence[Parameters], *, progress: OnProgress | None = None) -> Solution:
        check_batch(parameters)
        state = np.zeros((len(parameters), 2, len(self.fields), self.points))
        context = np.empty((len(parameters), 1, len(self.context_fields), self.points))
        for number, one in enumerate(parameters):
            flow, cloud = flow_of(one), self.cloud(one)
            inlet = flow.speed * np.exp(1j * flow.angle)
            velocity = flow.velocity(cloud.zeta)
            pressure = flow.pressure(velocity)
            if self.wall_layer:
                velocity = velocity * -np.expm1(-cloud.distance / self.wall_layer)
            state[number, 0, :2] = np.array([inlet.real, inlet.imag])[:, None]
            state[number, 1] = velocity.real, velocity.imag, pressure
            place, normal = cloud.place, cloud.normal
            context[number, 0] = place.real, place.imag, cloud.distance, normal.real, normal.imag
            if progress is not None:
                progress(number + 1, len(parameters))
        return Solution(state, context)


def flow_of(parameters: Parameters) -> FoilFlow:
    """The flow that drawn parameters describe."""
    foil = Foil(float(parameters["ex"]), float(parameters["ey"]), math.radians(float(parameters["tail_angle"])))
    return FoilFlow(foil, float(parameters["speed"]), math.radians(float(parameters["angle"])))
