"""Two-dimensional incompressible Navier-Stokes in vorticity form on the torus.

    w_t + u . grad w = viscosity laplace w + f,     u = (psi_y, -psi_x),     -laplace psi = w,     w = v_x - u_y

Like-signed vortices merge into fewer, larger ones while thin filaments carry enstrophy to short waves, which
viscosity removes. Advection in Basdevant's form takes four real transforms instead of five (u, v and two products):

    u . grad w = (d_xx - d_yy)(u v) + d_xy (v^2 - u^2)

Trajectories are advanced by `ssno.pde.schemes.vorticity_frames`. Axes: b trajectory, x, y grid points.
"""

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ssno.pde.equations.spectral import SpectralCoefficients, SpectralEquation
from ssno.pde.forcing import ModeForce
from ssno.pde.grids import SpectralGrid


def vorticity(
    grid: SpectralGrid, *, viscosity: Float[Tensor, " b"], force: ModeForce | None = None
) -> SpectralEquation:
    """The equation above with one viscosity per trajectory, on a dealiased grid with two axes."""
    if len(grid.axes) != 2 or not grid.dealias:
        raise ValueError(
            f"Vorticity needs a dealiased grid with 2 axes, got {len(grid.axes)} axes and `dealias={grid.dealias}`. "
            "Build it with SpectralGrid(axes, dealias=True)."
        )
    k_x, k_y = grid.wavenumbers()
    to_velocity = velocity_symbols(grid)
    # Real symbols: -(d_xx - d_yy) and -d_xy become k_x^2 - k_y^2 and k_x k_y.
    from_products = torch.stack([k_x.square() - k_y.square(), (k_x * k_y).expand(grid.modes_shape)])
    products = torch.empty(0)

    def nonlinear(modes: SpectralCoefficients, time: float) -> SpectralCoefficients:
        nonlocal products
        velocity = grid.to_field(modes * to_velocity)
        u, v = velocity[:, 0], velocity[:, 1]
        if products.shape != velocity.shape:
            products = torch.empty_like(velocity)
        torch.mul(u, v, out=products[:, 0])
        torch.mul(v, v, out=products[:, 1])
        products[:, 1].sub_(u.mul_(u))
        advected = grid.to_modes(products).mul_(from_products)
        rate = advected[:, :1].add_(advected[:, 1:])
        return (rate if force is None else force.add_to(rate, time)).contiguous()

    linear = viscosity.reshape(-1, 1, 1, 1) * grid.laplacian()
    return SpectralEquation(grid, linear, nonlinear)


def velocity_symbols(grid: SpectralGrid) -> Complex[Tensor, "2 kx ky"]:
    """Symbols that turn the coefficients of w into those of u and v: i k_y / |k|^2 and -i k_x / |k|^2."""
    k_x, k_y = grid.wavenumbers()
    squared = -grid.laplacian()
    squared[0, 0] = 1.0  # no mean vorticity, no mean flow
    return torch.stack([1j * k_y / squared, -1j * k_x / squared])
