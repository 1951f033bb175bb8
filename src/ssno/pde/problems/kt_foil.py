"""kt-foil: exact ideal flow past random Karman-Trefftz aerofoils, sampled on point clouds (`foil_cloud`).

A trajectory has two frames on one axis of points: the undisturbed stream (v the inlet velocity, p = 0), then the flow.
To forecast frame 1 from frame 0 is to solve the flow; the shape is in the context fields x, y, wall_distance, normal_x,
normal_y. Each case has a shape, an angle of attack and a speed of its own, uniform in

    ex [0.06, 0.14]     ey [0, 0.10]     tail angle [4, 18] degrees     angle [-5, 15] degrees     speed [31, 94] m/s

which gives thicknesses of 9 to 22 %, camber up to 4.6 % and lift coefficients of -0.5 to 2.4. Tasks, after AirfRANS:
`full`, `scarce` (a quarter of the training cases), `aoa` (train on -2.5 to 12.5 degrees, test outside).
Axes: n case, t frame, c field, p point.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Complex, Float

from ssno.base.checks import require_one_of
from ssno.pde.geometry import POINT_CLOUD, Axis, Geometry
from ssno.pde.grids import check_at_least, check_batch
from ssno.pde.problems.problem import OnProgress, Parameters, Problem, Solution

# Ideal flow past Karman-Trefftz aerofoils, in closed form: the exact truth behind the `kt-foil` data.
#
# A circle through zeta = 1 about mu = -ex + i ey becomes an aerofoil with the trailing-edge angle tau:
#
#     z = n (1 + q^n) / (1 - q^n),      q = (zeta - 1) / (zeta + 1),      n = 2 - tau/pi,      z ~ zeta far away
#     z' = (z - z_LE) / (z_TE - z_LE)                nose at 0, tail at 1: the plane in which everything is given
#
# Thickness grows with ex, camber with ey. n = 2 is Joukowski's aerofoil z = zeta + 1/zeta, n = 1 the circle itself. The
# flow leaves the tail smoothly (Kutta), which fixes its circulation; with R = |1 - mu|, beta = asin(ey/R), raw chord c,
# delta = -arg(z_TE - z_LE) and the angle of attack a (to the chord), a_z = a - delta:
#
#     dW/dzeta = U exp(-i a_z) (zeta - 1) (zeta - zeta_2) / (zeta - mu)^2,      zeta_2 = mu - R exp(i (2 a_z + beta))
#     v_x - i v_y = exp(-i delta) (dW/dzeta) / (dz/dzeta),      p = (U^2 - |v|^2) / 2
#     C_L = 8 pi (R/c) sin(a_z + beta)
#
# p is the pressure over density, 0 far away. zeta = 1 and zeta_2 are the stagnation points; in factors, the velocity is
# accurate near the tail, where both derivatives vanish. There is no drag: the fluid has no viscosity.

Plane = Complex[np.ndarray, "*points"]
BRACKET = 256  # wall points among which the one farthest from the tail is looked for, before the root is refined


@dataclass(frozen=True)
class Foil:
    """The shape: `ex` thickness, `ey` camber, `tail` trailing-edge angle tau in radians."""

    ex: float
    ey: float
    tail: float

    def __post_init__(self) -> None:
        if self.ex < 0 or not 0 <= self.tail <= math.pi:
            raise ValueError(
                f"`ex` must be at least 0 and `tail` lie between 0 and pi, got {self.ex} and {self.tail}: the circle "
                "would not enclose the singular points of the map."
            )

    @property
    def centre(self) -> complex:
        """mu."""
        return complex(-self.ex, self.ey)

    @property
    def radius(self) -> float:
        """R."""
        return abs(1 - self.centre)

    @property
    def exponent(self) -> float:
        """n; the tail is at z = n."""
        return 2 - self.tail / math.pi

    @property
    def beta(self) -> float:
        """The tail is at the angle -beta of the circle."""
        return math.asin(self.ey / self.radius)

    @cached_property
    def nose(self) -> tuple[float, complex]:
        """Angle on the circle and raw position of the wall point farthest from the tail."""
        angles = -self.beta + 2 * math.pi * np.arange(1, BRACKET) / BRACKET
        farthest = angles[np.abs(self.raw(self.circle(angles)) - self.exponent).argmax()]
        from scipy.optimize import brentq  # takes a third of a second, and `ssno.pde` is imported everywhere

        width = 2 * math.pi / BRACKET

        def growth(angle: float) -> float:  # of the squared distance; a maximiser would find half the digits
            zeta = self.circle(np.array([angle]))
            tangent = self.slope(zeta) * 1j * (zeta - self.centre)
            return float(((self.raw(zeta) - self.exponent).conj() * tangent).real[0])

        angle = brentq(growth, farthest - width, farthest + width, xtol=1e-15, rtol=1e-15)
        return float(angle), complex(self.raw(self.circle(np.array([angle])))[0])

    @property
    def scale(self) -> complex:
        """1 / (z_TE - z_LE) = exp(i delta) / c."""
        return 1 / (self.exponent - self.nose[1])

    def circle(
        self, angle: Float[np.ndarray, "*points"], *, stretch: Float[np.ndarray, "*points"] | float = 1.0
    ) -> Plane:
        """Points mu + stretch R exp(i angle) of the circle's plane; stretch 1 is the wall."""
        return self.centre + stretch * self.radius * np.exp(1j * angle)

    def raw(self, zeta: Plane) -> Plane:
        """z(zeta), unscaled. Written with the smaller of q and 1/q, so that both ends of the chord are regular."""
        near, ratio = self._ratio(zeta)
        power = np.power(ratio, self.exponent)
        return near * self.exponent * (1 + power) / (1 - power)

    def slope(self, zeta: Plane) -> Plane:
        """dz/dzeta = 4 n^2 q^n / ((1 - q^n)^2 (zeta^2 - 1)), unscaled."""
        near, ratio = self._ratio(zeta)
        lower = np.power(ratio, self.exponent - 1)
        return 4 * self.exponent**2 * lower / ((1 - ratio * lower) * (zeta + near)) ** 2

    def _ratio(self, zeta: Plane) -> tuple[Float[np.ndarray, "*points"], Plane]:
        """1 and q where the tail is nearer than the other singular point, -1 and 1/q elsewhere."""
        near = np.where(zeta.real >= 0, 1.0, -1.0)
        return near, (zeta - near) / (zeta + near)

    def placed(self, zeta: Plane) -> Plane:
        """z'(zeta): nose at 0, tail at 1."""
        return self.scale * (self.raw(zeta) - self.nose[1])

    def wall(self, angle: Float[np.ndarray, " m"]) -> Plane:
        """Wall points z' at angles of the circle, counter-clockwise as the angle grows."""
        return self.placed(self.circle(angle))

    def outward_normal(self, angle: Float[np.ndarray, " m"]) -> Plane:
        """Unit normals -i t of the wall as complex numbers."""
        zeta = self.circle(angle)
        tangent = self.scale * self.slope(zeta) * 1j * (zeta - self.centre)
        return -1j * tangent / np.abs(tangent)

    def unplaced(self, place: Plane) -> tuple[Plane, Bool[np.ndarray, "*points"]]:
        """zeta of points z', and which of them lie in the fluid; those inside the foil get zeta = mu.

        The power has several branches. Under a cambered belly the right one is not the principal one, so all three
        are tried: the right one lies outside the circle and is mapped back onto z'.
        """
        n = self.exponent
        z = self.nose[1] + place / self.scale
        ratio = (z - n) / (z + n)
        zeta, outside = np.full_like(z, self.centre), np.zeros(z.shape, dtype=bool)
        for turn in (0, 1, -1):
            rest = ~outside
            q = np.power(ratio[rest], 1 / n) * np.exp(2j * np.pi * turn / n)
            with np.errstate(divide="ignore", invalid="ignore"):
                found = (1 + q) / (1 - q)
                fits = np.abs(found - self.centre) >= self.radius * (1 - 1e-12)
                fits &= np.abs(self.raw(found) - z[rest]) <= 1e-9 * (1 + np.abs(z[rest]))
            zeta[rest] = np.where(fits, found, zeta[rest])
            outside[rest] = fits
        return zeta, outside


@dataclass(frozen=True)
class FoilFlow:
    """The flow of speed `speed` past a foil at `angle` radians to its chord."""

    foil: Foil
    speed: float
    angle: float

    @property
    def turned(self) -> float:
        """a_z, the angle of attack in the raw plane."""
        return self.angle - float(np.angle(self.foil.scale))

    @property
    def lift_coefficient(self) -> float:
        """C_L = 8 pi (R/c) sin(a_z + beta)."""
        foil = self.foil
        return 8 * math.pi * foil.radius * abs(foil.scale) * math.sin(self.turned + foil.beta)

    def velocity(self, zeta: Plane) -> Plane:
        """v_x + i v_y at points given in the circle's plane."""
        foil, turned = self.foil, self.turned
        rear = foil.centre - foil.radius * np.exp(1j * (2 * turned + foil.beta))
        flow = self.speed * np.exp(-1j * turned) * (zeta - 1) * (zeta - rear) / (zeta - foil.centre) ** 2
        return np.conj(flow / foil.slope(zeta) * np.exp(-1j * np.angle(foil.scale)))

    def pressure(self, velocity: Plane) -> Float[np.ndarray, "*points"]:
        """p = (U^2 - |v|^2) / 2 where the velocity is v, by Bernoulli's law."""
        return (self.speed**2 - velocity.real**2 - velocity.imag**2) / 2


# Where the flow past an aerofoil is sampled: points on its wall, close to it, and anywhere in a box.
#
#  wall angles -beta + (j + phi) 2 pi / m of the circle, counter-clockwise; never the tail, where the pressure jumps
#     close   zeta = mu + R (1 + e^s) e^{i theta}, s uniform in [log 1e-3, log 15]: dense at the wall, thin far away
#     far     uniform in the box outside the foil
#
# Wall points come first, in order around the contour; three quarters of the rest are close ones. Distances to the wall
# are those to a polygon of 4096 corners, right to 1.5e-7 chords. Axes: m wall point, p point.

BOX = ((-2.0, 4.0), (-1.5, 1.5))
CLOSEST, FARTHEST = 1e-3, 15.0
PHASES = (0.25, 0.75)
CORNERS = 4096
Points = tuple[Complex[np.ndarray, " p"], Complex[np.ndarray, " p"]]
"""zeta in the circle's plane, and x + i y."""


class Cloud(NamedTuple):
    """Sampling points of one aerofoil, the wall first."""

    zeta: Complex[np.ndarray, " p"]
    """In the circle's plane."""
    place: Complex[np.ndarray, " p"]
    """x + i y."""
    distance: Float[np.ndarray, " p"]
    """To the wall; exactly 0 on it."""
    normal: Complex[np.ndarray, " p"]
    """Unit outward normal on the wall, 0 elsewhere."""


def sample_cloud(foil: Foil, rng: np.random.Generator, *, points: int, wall_points: int) -> Cloud:
    """Draw `points` points, `wall_points` of them on the wall."""
    phase = rng.uniform(*PHASES)
    angle = -foil.beta + (np.arange(wall_points) + phase) * 2 * np.pi / wall_points
    far = (points - wall_points) // 4
    wall = foil.circle(angle)
    pairs = [(wall, foil.placed(wall)), close(foil, rng, points - wall_points - far), anywhere(foil, rng, far)]
    zeta, place = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    normal = np.zeros(points, dtype=complex)
    normal[:wall_points] = foil.outward_normal(angle)
    distance = np.concatenate([np.zeros(wall_points), wall_distance(foil, place[wall_points:])])
    return Cloud(zeta, place, distance, normal)


def close(foil: Foil, rng: np.random.Generator, count: int) -> Points:
    """Points that crowd at the wall, those inside the box only."""

    def some() -> Points:
        log_height = rng.uniform(np.log(CLOSEST), np.log(FARTHEST), size=count)
        zeta = foil.circle(rng.uniform(0, 2 * np.pi, size=count), stretch=1 + np.exp(log_height))
        place = foil.placed(zeta)
        (left, right), (low, high) = BOX
        inside = (left <= place.real) & (place.real <= right) & (low <= place.imag) & (place.imag <= high)
        return zeta[inside], place[inside]

    return _until(count, some)


def anywhere(foil: Foil, rng: np.random.Generator, count: int) -> Points:
    """Points uniform in the box outside the foil."""

    def some() -> Points:
        place = rng.uniform(*BOX[0], size=count) + 1j * rng.uniform(*BOX[1], size=count)
        zeta, outside = foil.unplaced(place)
        return zeta[outside], place[outside]

    return _until(count, some)


def _until(count: int, some: Callable[[], Points]) -> Points:
    """Draw until there are `count` points."""
    zeta = place = np.empty(0, dtype=complex)
    while len(zeta) < count:
        more_zeta, more_place = some()
        zeta, place = np.concatenate([zeta, more_zeta]), np.concatenate([place, more_place])
    return zeta[:count], place[:count]


def wall_distance(foil: Foil, place: Complex[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
    """Distance to the nearest of the two sides that meet in the nearest corner of the wall polygon."""
    corners = foil.wall(-foil.beta + np.arange(CORNERS) * 2 * np.pi / CORNERS)
    from scipy.spatial import cKDTree  # takes a third of a second, and `ssno.pde` is imported everywhere

    _, nearest = cKDTree(_columns(corners), compact_nodes=False).query(_columns(place))
    sides = []
    for neighbour in (nearest - 1, (nearest + 1) % CORNERS):
        start, side = corners[nearest], corners[neighbour] - corners[nearest]
        along = ((place - start) * side.conj()).real / np.abs(side) ** 2
        sides.append(np.abs(place - start - np.clip(along, 0, 1) * side))
    return np.minimum(*sides)


def _columns(place: Complex[np.ndarray, " p"]) -> Float[np.ndarray, "p 2"]:
    return np.stack([place.real, place.imag], axis=1)


FoilTask = Literal["full", "scarce", "aoa"]
Units = Literal["physical", "stream"]

EX, EY, TAIL = (0.06, 0.14), (0.0, 0.10), (4.0, 18.0)
ANGLE, INNER_ANGLE, SPEED = (-5.0, 15.0), (-2.5, 12.5), (31.0, 94.0)


@dataclass(frozen=True)
class KTFoil(Problem):
    """The problem; see the top of this module.

    `units="stream"` measures velocities in inlet speeds, v/U and p/U^2, so that all cases have equal weight; "physical"
    are m/s, as in AirfRANS, where fast flows dominate mean squares (p grows with U^2).
    """

    task: FoilTask = "full"  # all cases, a quarter of the training cases (scarce), or other angles in test (aoa)
    units: Units = "stream"  # velocities in inlet speeds (stream) or in m/s (physical)
    points: int = 16384  # points of each cloud, those on the wall included
    wall_points: int = 512  # points on the wall

    name: ClassVar[str] = "kt-foil"
    formula: ClassVar[str] = (
        r"\nabla \cdot \mathbf{v} = 0, \quad \nabla \times \mathbf{v} = 0, \qquad "
        r"\mathbf{v} \cdot \mathbf{n} = 0 \text{ on the wall}, \qquad p = \tfrac{1}{2}\left(U^2 - |\mathbf{v}|^2\right)"
    )
    fields: ClassVar[tuple[str, ...]] = ("v_x", "v_y", "p")
    context_fields: ClassVar[tuple[str, ...]] = ("x", "y", "wall_distance", "normal_x", "normal_y")
    geometry: ClassVar[Geometry] = POINT_CLOUD

    def __post_init__(self) -> None:
        require_one_of("task", self.task, get_args(FoilTask))
        require_one_of("units", self.units, get_args(Units))
        check_at_least(8, wall_points=self.wall_points)
        check_at_least(self.wall_points, points=self.points)

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
