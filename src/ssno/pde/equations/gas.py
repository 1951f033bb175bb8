"""An ideal gas in two dimensions that carries a dye: conserved and primitive variables.

    conserved   rho, rho u, rho v, E, rho c          E = rho (u^2 + v^2) / 2 + p / (gamma - 1)
    primitive   rho, u, v, p, c

c is the mass fraction of a passive tracer. Fluxes live in `ssno.pde.schemes.hllc`, the scheme in
`ssno.pde.schemes.euler`.

Axes: b trajectory, 5 variables in the order above, *cells space.
"""

import torch
from jaxtyping import Float
from torch import Tensor

FLOOR = 1e-8
"""Least density and pressure that primitive variables show, so that a sound speed always exists."""

Conserved = Float[Tensor, "b 5 *cells"]
Primitive = Float[Tensor, "b 5 *cells"]


def to_primitive(conserved: Conserved, *, gamma: float) -> Primitive:
    """rho, u, v, p, c of every cell; density and pressure at least `FLOOR`."""
    primitive = torch.empty_like(conserved)
    density = torch.clamp_min(conserved[:, 0], FLOOR, out=primitive[:, 0])
    torch.div(conserved[:, 1:3], density[:, None], out=primitive[:, 1:3])
    torch.div(conserved[:, 4], density, out=primitive[:, 4])
    kinetic = (conserved[:, 1] * primitive[:, 1]).add_(conserved[:, 2] * primitive[:, 2]).mul_(0.5)
    torch.sub(conserved[:, 3], kinetic, out=primitive[:, 3])
    primitive[:, 3].mul_(gamma - 1).clamp_min_(FLOOR)
    return primitive


def sound_speed(density: Tensor, pressure: Tensor, *, gamma: float) -> Tensor:
    """sqrt(gamma p / rho)."""
    return (pressure / density).mul_(gamma).sqrt_()
