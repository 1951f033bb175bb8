"""Initial states of shallow water on a sphere, as coefficients of spherical harmonics.

| name | what | drawn |
|---|---|---|
| public | all three fields white in degree, as the public generator has it: an almost linear field of waves | a seed |
| vortical | balanced eddies of 20 m/s around degree 6: nonlinear, steady in the mean, predictable | a seed |
| galewsky | a balanced zonal jet of 80 m/s at 45 N, and a small bump: it rolls up within six days | a longitude |
| rossby-haurwitz | wave number 4, travelling east at about 11 degrees per day (Williamson's sixth case) | a longitude |
| zonal | solid rotation, tilted with the axis of Coriolis (Williamson's second case): exactly steady | an angle |

Random states draw all degrees below 120 and keep those of the solver, so grids share trajectories. White in degree, so
statistics of `public` depend on the grid: with L degrees, std(Phi) = g h_amp s and std(zeta) = std(delta) =
0.2 sqrt(gH)/a s, s^2 = (L^2 - L/2)/14520. Its zeta and delta have a mean, which no velocity has; it never changes.

Axes: m order, l degree, c = (Phi, zeta, delta); lon, lat a Gauss grid.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ssno.transforms.sphere import SphereGrid, VectorTransform, columns, gauss_legendre

# Shallow water on a rotating sphere, in vorticity and divergence, by spherical harmonics.
#
#     dPhi/dt   = -div(Phi v)
#     dzeta/dt  = -div((zeta + f) v)
#     ddelta/dt =  curl((zeta + f) v) - lap(Phi + |v|^2 / 2),          f = 2 Omega cos(colatitude)
#
# Phi = g h is the geopotential of the surface, zeta the vorticity, delta the divergence: three scalars, so the poles
# are points like others. Products are taken on a Gauss grid just fine enough that quadratic terms do not alias. The
# mean of Phi is constant to the last bit: divergences have none (`ssno.transforms.sphere`).
#
# Waves of degree l turn with l (l+1) gH / a^2 = omega^2 besides Coriolis; the step is set by the highest l, not by the
# distance of points at the poles.
#
# Axes: m order, l degree, c = (Phi, zeta, delta), b trajectory; lon, lat the Gauss grid.

SpectralCoefficients = Complex[Tensor, "m l c b"]


@dataclass(frozen=True)
class Planet:
    """Radius (m), rotation (1/s), gravity (m/s^2) and mean depth of the fluid (m)."""

    radius: float = 6.37122e6
    rotation: float = 7.292e-5
    gravity: float = 9.80616
    depth: float = 1e4


EARTH = Planet()


def solver_grid(degrees: int) -> SphereGrid:
    """The smallest Gauss grid, of even size, on which products of two fields of `degrees` degrees do not alias."""
    nlat = -(-(3 * (degrees - 1) + 1) // 2)
    nlat += nlat % 2
    return SphereGrid(max(2, nlat), max(4, 2 * nlat), "gauss")


class ShallowWaterEquations:
    """The right-hand side for the first `degrees` degrees, float64."""

    def __init__(self, degrees: int, *, planet: Planet = EARTH):
        self.degrees, self.planet = degrees, planet
        self.grid = solver_grid(degrees)
        self.grid.check_degrees(degrees, products=True)
        self.transform = VectorTransform(self.grid, degrees=degrees, radius=planet.radius, dtype=torch.float64)
        self.coriolis = 2 * planet.rotation * torch.from_numpy(self.grid.rule[0])[None, :, None]  # 1 lat 1
        self._laplacian = self.transform.laplacian[:, None]
        self._turns, self._slopes = self.transform.divergences.chunk(2, dim=2)
        self._bending = self.transform.weighted * self._laplacian

    def fields(self, state: SpectralCoefficients) -> tuple[Float[Tensor, "lon lat 2 b"], Float[Tensor, "lon lat 2 b"]]:
        """Phi and zeta, and the velocity (u towards the east, v towards the north), on the Gauss grid."""
        sphere = self.transform
        scalars = sphere.synthesise_leading(state[:, :, :2])
        return scalars, sphere.velocity(state[:, :, 1], state[:, :, 2])

    def rate(
        self, state: SpectralCoefficients, *, coriolis: Float[Tensor, "lon lat b"] | None = None
    ) -> SpectralCoefficients:
        """d/dt of the three coefficients. `coriolis` replaces f, for instance about a tilted axis."""
        sphere = self.transform
        (phi, zeta), (u, v) = (pair.unbind(2) for pair in self.fields(state))
        absolute = zeta + (self.coriolis if coriolis is None else coriolis)
        grid = phi.new_empty(
            *phi.shape[:2], 5, phi.shape[2]
        )  # in an order in which every sum below is one matrix product
        for slot, (scalar, part) in enumerate(((phi, u), (absolute, u), (absolute, v), (phi, v))):
            torch.mul(scalar, part, out=grid[:, :, slot])
        torch.addcmul(torch.addcmul(phi, u, u, value=0.5), v, v, value=0.5, out=grid[:, :, 4])
        orders = sphere.orders(grid)
        around = columns(self._turns, orders[:, :, :3])
        across = columns(self._slopes, orders[:, :, 1:4])
        rates = torch.empty_like(around)
        torch.add(across[:, :, 2], around[:, :, 0], alpha=1j, out=rates[:, :, 0]).neg_()
        torch.add(across[:, :, 1], around[:, :, 1], alpha=1j, out=rates[:, :, 1]).neg_()
        torch.sub(around[:, :, 2] * 1j, across[:, :, 0], out=rates[:, :, 2])
        rates[:, :, 2] -= columns(self._bending, orders[:, :, 4])
        return rates

    def balanced(self, vorticity: Complex[Tensor, "m l b"]) -> SpectralCoefficients:
        """The state without divergence, and without a tendency of it, that has this vorticity and the mean depth."""
        vorticity = vorticity.clone()
        vorticity[:, 0] = 0
        flat = torch.zeros_like(vorticity)
        tendency = self.rate(torch.stack([flat, vorticity, flat], dim=2))[:, :, 2]
        inverse = torch.where(self._laplacian < 0, 1 / self._laplacian.clamp(max=-1e-300), 0.0)
        phi = inverse * tendency
        phi[0, 0] = self.mean_geopotential
        return torch.stack([phi, vorticity, flat], dim=2)

    @property
    def mean_geopotential(self) -> float:
        """The coefficient of Phi at l = 0."""
        return (4 * torch.pi) ** 0.5 * self.planet.gravity * self.planet.depth


DRAWN_DEGREES = 120
BUMP = 120.0
"""Metres: amplitude of the public surface, and of Galewsky's bump."""
MACH = 0.2
EDDY_SPEED = 20.0
JET = (np.pi / 7, np.pi / 2 - np.pi / 7)
JET_SPEED = 80.0
JET_POINTS = 256
ZONAL_SPEED = 2 * np.pi / (12 * 86400)
"""In radii per second."""
ZONAL_GEOPOTENTIAL = 2.94e4
WAVE_NUMBER, WAVE_RATE, WAVE_DEPTH = 4, 7.848e-6, 8000.0

State = Complex[Tensor, "m l c"]


def public(equations: ShallowWaterEquations, *, seed: int) -> State:
    """z sqrt(4 pi / (120 * 121)), z complex normal, times g h_amp for Phi and 0.2 sqrt(gH)/a for the others."""
    planet = equations.planet
    speed = MACH * (planet.gravity * planet.depth) ** 0.5 / planet.radius
    scale = torch.tensor([planet.gravity * BUMP, speed, speed], dtype=torch.float64)
    state = normal_modes(seed, equations.degrees) * scale * (4 * np.pi / (DRAWN_DEGREES * (DRAWN_DEGREES + 1))) ** 0.5
    state[0, 0, 0] += equations.mean_geopotential
    return state


def vortical(equations: ShallowWaterEquations, *, seed: int) -> State:
    """zeta_lm normal times exp(-(l - l0)^2 / (2 w^2)), rms speed 20 m/s, delta = 0, Phi in balance.

    l0 = 6 and w = 2; on grids with fewer than 22 degrees 4 and 1.5, so that the eddies are resolved.
    """
    centre, width = (6.0, 2.0) if equations.degrees >= 22 else (4.0, 1.5)
    l = torch.arange(equations.degrees, dtype=torch.float64)
    zeta = normal_modes(seed, equations.degrees)[:, :, 1] * torch.exp(-((l - centre) ** 2) / (2 * width**2))
    zeta[:, 0] = 0
    weight = torch.where(torch.arange(equations.degrees) > 0, 2.0, 1.0)[:, None]  # orders m > 0 count twice
    per_degree = (weight * zeta.abs() ** 2).sum(0) / (4 * np.pi)
    speed = equations.planet.radius * (per_degree[1:] / (l * (l + 1))[1:]).sum().sqrt()
    return equations.balanced(zeta[..., None] * (EDDY_SPEED / speed))[..., 0]


def galewsky(equations: ShallowWaterEquations, *, longitude: float, bump: float = BUMP) -> State:
    """A jet in balance at 45 N (`jet`, `jet_depth`) and a bump at `longitude` on its surface, in metres:

    bump cos(phi) exp(-(3 lambda)^2) exp(-(15 (pi/4 - phi))^2),  phi latitude.
    """
    transform, (lon, phi) = equations.transform, latitudes(equations)
    wind = torch.from_numpy(jet(phi)).expand(len(lon), -1)
    _, zeta = transform.divergence_and_curl(wind, torch.zeros_like(wind))
    along = (lon - longitude + np.pi) % (2 * np.pi) - np.pi
    shape = np.exp(-((3 * along[:, None]) ** 2) - (15 * (np.pi / 4 - phi)) ** 2)
    depth = jet_depth(phi, planet=equations.planet) + bump * np.cos(phi) * shape
    geopotential = transform.analyse_leading(torch.from_numpy(equations.planet.gravity * depth))
    return torch.stack([geopotential, zeta, torch.zeros_like(zeta)], dim=2)


def jet(phi: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """umax exp(4/(phi1-phi0)^2 + 1/((phi-phi0)(phi-phi1))) between phi0 = pi/7 and phi1 = pi/2 - phi0, else 0."""
    low, high = JET
    product = (phi - low) * (phi - high)
    inside = product < 0
    return np.where(inside, JET_SPEED * np.exp(4 / (high - low) ** 2 + 1 / np.where(inside, product, -1.0)), 0.0)


def jet_depth(phi: Float[np.ndarray, " k"], *, planet: Planet = EARTH) -> Float[np.ndarray, " k"]:
    """h with g h(phi) = g h0 - integral of a u (f + u tan(phi)/a) from the south pole; h0 gives the mean depth.

    The mean over the sphere of the integral to phi is the integral of its integrand times (1 - sin phi)/2.
    """
    x, weights = gauss_legendre(JET_POINTS)

    def slope(at: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        wind = jet(at)
        return wind * (2 * planet.rotation * np.sin(at) * planet.radius + wind * np.tan(at)) / planet.gravity

    low, high = JET
    half = (np.clip(phi, low, high) - low) / 2
    drop = half * (slope(low + half[:, None] * (1 + x)) @ weights)
    whole = low + (high - low) / 2 * (1 + x)
    mean = (high - low) / 2 * (slope(whole) * (1 - np.sin(whole)) / 2) @ weights
    return planet.depth + mean - drop


def rossby_haurwitz(equations: ShallowWaterEquations, *, longitude: float) -> State:
    """Wave R = 4 with omega = K = 7.848e-6 /s, h0 = 8000 m, turned by `longitude`; c = cos(latitude):

    zeta = 2 omega sin(phi) - K sin(phi) c^R (R^2+3R+2) cos(R lambda),  delta = 0,
    Phi = g h0 + a^2 [A + B cos(R lambda) + C cos(2 R lambda)] with the published A, B and C.
    """
    planet, r, k = equations.planet, WAVE_NUMBER, WAVE_RATE
    lon, phi = latitudes(equations)
    wave, c, sine = r * (lon - longitude)[:, None], np.cos(phi), np.sin(phi)
    zeta = k * sine * (2 - c**r * (r**2 + 3 * r + 2) * np.cos(wave))
    mean = k / 2 * (2 * planet.rotation + k) * c**2
    mean = mean + k**2 / 4 * c ** (2 * r) * ((r + 1) * c**2 + 2 * r**2 - r - 2 - 2 * r**2 / c**2)
    first = 2 * (planet.rotation + k) * k / ((r + 1) * (r + 2)) * c**r * (r**2 + 2 * r + 2 - (r + 1) ** 2 * c**2)
    second = k**2 / 4 * c ** (2 * r) * ((r + 1) * c**2 - (r + 2))
    shape = mean + first * np.cos(wave) + second * np.cos(2 * wave)
    geopotential = planet.gravity * WAVE_DEPTH + planet.radius**2 * shape
    fields = torch.from_numpy(np.stack([geopotential, zeta, np.zeros_like(zeta)], axis=2))
    return equations.transform.analyse_leading(fields)


def zonal(equations: ShallowWaterEquations, *, angle: float) -> State:
    """Phi = gH0 - (a Omega u0 + u0^2/2) mu^2, zeta = 2 u0 mu / a: steady if f = 2 Omega mu (`tilted`)."""
    planet = equations.planet
    speed = ZONAL_SPEED * planet.radius
    mu = tilted(equations, angle=angle)
    geopotential = ZONAL_GEOPOTENTIAL - (planet.radius * planet.rotation * speed + speed**2 / 2) * mu**2
    return equations.transform.analyse_leading(
        torch.stack([geopotential, 2 * ZONAL_SPEED * mu, torch.zeros_like(mu)], dim=2)
    )


def tilted(equations: ShallowWaterEquations, *, angle: float) -> Float[Tensor, "lon lat"]:
    """mu = cos(theta) cos(angle) - cos(lambda) sin(theta) sin(angle): height above the equator of a tilted axis."""
    lon, phi = latitudes(equations)
    return torch.from_numpy(np.sin(phi) * np.cos(angle) - np.cos(lon)[:, None] * np.cos(phi) * np.sin(angle))


def latitudes(equations: ShallowWaterEquations) -> tuple[Float[np.ndarray, " lon"], Float[np.ndarray, " lat"]]:
    """Longitudes and latitudes of the solver's grid, in radians."""
    return equations.grid.longitudes, np.arcsin(equations.grid.rule[0])


def normal_modes(seed: int, degrees: int) -> State:
    """Complex standard normal numbers for 0 <= m <= l, real at m = 0: the first `degrees` degrees of 120 drawn."""
    if degrees > DRAWN_DEGREES:
        raise ValueError(f"Random states have {DRAWN_DEGREES} degrees, got {degrees}: use a grid of at most 360 rings.")
    rng = np.random.Generator(np.random.Philox(seed))
    drawn = torch.from_numpy(rng.standard_normal((DRAWN_DEGREES, DRAWN_DEGREES, 3, 2)) / 2**0.5)  # l m c
    modes = torch.view_as_complex(drawn[:degrees, :degrees].contiguous()).transpose(0, 1)
    inside = torch.arange(degrees)[:, None] <= torch.arange(degrees)
    modes = modes * inside[..., None]
    modes.imag[0] = 0
    return modes
