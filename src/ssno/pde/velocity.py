"""Incompressible Navier-Stokes in a periodic box, in velocity form: three components of velocity, no pressure.

    u_t = -P div(u u) + viscosity laplace u + f,     div u = 0,     (P v)_k = v_k - k (k . v_k) / |k|^2

P projects onto fields without divergence, which is what pressure does. The stress needs five products instead of six,
because P removes any gradient: u u - w^2 I has the same effect. Eight real transforms per evaluation.

The force pumps a constant `power` per volume into the long waves, |k| <= LONG_WAVES, in proportion to what they have:

    f_k = power u_k / (2 E_long),     E_long = 1/2 sum |u_k|^2 over long waves,     so that <u . f> = power

It is a function of the state, so the next frame follows from this one. With the 2/3 rule the nonlinear term neither
makes nor destroys energy: d/dt <u . u> / 2 = power - viscosity <|curl u|^2> holds to rounding at every instant.

Axes: b trajectory, c = 3 component, x, y, z grid points.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.pde.grids import SpectralGrid
from ssno.pde.spectral import SpectralCoefficients, SpectralEquation

LONG_WAVES = 2.5
"""The longest wave vector that is forced, in units of the longest wave of the box."""
STRESSES = ((0, 0), (1, 1), (0, 1), (0, 2), (1, 2))
"""Products of components that are transformed; w^2 is subtracted from the first two."""
STRESS_OF = ((0, 2, 3), (2, 1, 4), (3, 4))
"""Which of them are the stresses of a component along x, y and z; the last, w w - w w, is zero."""


def navier_stokes(grid: SpectralGrid, *, viscosity: Float[Tensor, " b"], power: float = 0.0) -> SpectralEquation:
    """The equation above with one viscosity per trajectory, on a dealiased grid with three axes."""
    if len(grid.axes) != 3 or not grid.dealias:
        raise ValueError(
            f"Velocity needs a dealiased grid with 3 axes, got {len(grid.axes)} axes and `dealias={grid.dealias}`. "
            "Build it with SpectralGrid(axes, dealias=True)."
        )
    # Symbols as pairs of equal real numbers: half the work of complex products.
    k_x, k_y, k_z = grid.wavenumbers()
    waves = (k_x, k_y, k_z.repeat_interleave(2, dim=-1))
    squared = -grid.laplacian().repeat_interleave(2, dim=-1)
    direction = [k / squared.clamp(min=1e-300) for k in waves]
    longest = 2 * torch.pi * LONG_WAVES / max(axis.length for axis in grid.axes)
    long = ((squared > 0) & (squared <= longest**2)).to(torch.float64)
    products = torch.empty(0)

    def nonlinear(modes: SpectralCoefficients, time: float) -> SpectralCoefficients:
        nonlocal products
        velocity = grid.to_field(modes)
        shape = (len(modes), len(STRESSES), *grid.shape)
        if products.shape != shape:
            products = velocity.new_empty(shape)
        for n, (i, j) in enumerate(STRESSES):
            torch.mul(velocity[:, i], velocity[:, j], out=products[:, n])
        products[:, :2].sub_(velocity[:, 2:].square_())
        stress = torch.view_as_real(grid.to_modes(products)).flatten(-2)
        flux = torch.empty_like(stress[:, :3])
        for i, (first, *others) in enumerate(STRESS_OF):
            torch.mul(stress[:, first], waves[0], out=flux[:, i])
            for k, n in zip(waves[1:], others, strict=False):
                flux[:, i].addcmul_(stress[:, n], k)
        along = waves[0] * flux[:, 0] + waves[1] * flux[:, 1] + waves[2] * flux[:, 2]
        for i, k in enumerate(direction):
            flux[:, i].addcmul_(k, along, value=-1)
        rate = torch.view_as_complex(flux.unflatten(-1, (-1, 2))) * -1j
        if power:
            pushed = torch.view_as_complex((torch.view_as_real(modes).flatten(-2) * long).unflatten(-1, (-1, 2)))
            share = power / mean_product(grid, pushed, pushed)
            rate.add_(pushed * share.reshape(-1, 1, 1, 1, 1))
        return rate

    return SpectralEquation(grid, viscosity.reshape(-1, 1, 1, 1, 1) * grid.laplacian(), nonlinear)


def mean_product(grid: SpectralGrid, first: SpectralCoefficients, second: SpectralCoefficients) -> Float[Tensor, " b"]:
    """The mean of the product over the box, summed over components: <u . u> is twice the energy."""
    terms = (first.real * second.real + first.imag * second.imag).sum(dim=1)
    halves = terms[..., 1:].flatten(1).sum(dim=1)  # whose mirror images are not stored
    return terms[..., 0].flatten(1).sum(dim=1) + 2 * halves


def curl(grid: SpectralGrid, modes: SpectralCoefficients) -> SpectralCoefficients:
    """Vorticity from velocity."""
    k_x, k_y, k_z = grid.wavenumbers()
    u, v, w = modes.unbind(1)
    return 1j * torch.stack([k_y * w - k_z * v, k_z * u - k_x * w, k_x * v - k_y * u], dim=1)


def without_divergence(grid: SpectralGrid, modes: SpectralCoefficients) -> SpectralCoefficients:
    """The projection P."""
    k_x, k_y, k_z = grid.wavenumbers()
    u, v, w = modes.unbind(1)
    along = (k_x * u + k_y * v + k_z * w) / (-grid.laplacian()).clamp(min=1e-300)
    return modes - torch.stack([k_x * along, k_y * along, k_z * along], dim=1)
