"""Ideal flow past Karman-Trefftz aerofoils, in closed form: the exact truth behind the `kt-foil` data.

A circle through zeta = 1 about mu = -ex + i ey becomes an aerofoil with the trailing-edge angle tau:

    z = n (1 + q^n) / (1 - q^n),      q = (zeta - 1) / (zeta + 1),      n = 2 - tau/pi,      z ~ zeta far away
    z' = (z - z_LE) / (z_TE - z_LE)                nose at 0, tail at 1: the plane in which everything is given

Thickness grows with ex, camber with ey. n = 2 is Joukowski's aerofoil z = zeta + 1/zeta, n = 1 the circle itself. The
flow leaves the tail smoothly (Kutta), which fixes its circulation; with R = |1 - mu|, beta = asin(ey/R), raw chord c,
delta = -arg(z_TE - z_LE) and the angle of attack a (to the chord), a_z = a - delta:

    dW/dzeta = U exp(-i a_z) (zeta - 1) (zeta - zeta_2) / (zeta - mu)^2,      zeta_2 = mu - R exp(i (2 a_z + beta))
    v_x - i v_y = exp(-i delta) (dW/dzeta) / (dz/dzeta),      p = (U^2 - |v|^2) / 2
    C_L = 8 pi (R/c) sin(a_z + beta)

p is the pressure over density, 0 far away. zeta = 1 and zeta_2 are the stagnation points; in factors, the velocity is
accurate near the tail, where both derivatives vanish. There is no drag: the fluid has no viscosity.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Complex, Float

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
