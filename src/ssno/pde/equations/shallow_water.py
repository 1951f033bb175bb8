"""Shallow water on a rotating sphere, in vorticity and divergence, by spherical harmonics.

    dPhi/dt   = -div(Phi v)
    dzeta/dt  = -div((zeta + f) v)
    ddelta/dt =  curl((zeta + f) v) - lap(Phi + |v|^2 / 2),          f = 2 Omega cos(colatitude)

Phi = g h is the geopotential of the surface, zeta the vorticity, delta the divergence: three scalars, so the poles are
points like others. Products are taken on a Gauss grid just fine enough that quadratic terms do not alias. The mean of
Phi is constant to the last bit: divergences have none (`ssno.transforms.sphere_vectors`).

Waves of degree l turn with l (l+1) gH / a^2 = omega^2 besides Coriolis; the step is set by the highest l, not by the
distance of points at the poles.

Axes: m order, l degree, c = (Phi, zeta, delta), b trajectory; lon, lat the Gauss grid.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ssno.transforms.sphere import columns
from ssno.transforms.sphere_grid import SphereGrid
from ssno.transforms.sphere_vectors import VectorTransform

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
    """The smallest Gauss grid, of even size, on which products of two fields of so many degrees do not alias."""
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
