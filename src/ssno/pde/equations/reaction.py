"""Gray-Scott: a substance u is fed and consumed by an autocatalyst v, which is removed.

    u_t = d_u laplace u - u v^2 + feed (1 - u),      v_t = d_v laplace v + u v^2 - (feed + kill) v

(u, v) = (1, 0) is stable, but a spot of v grows, divides or winds into stripes, depending on feed and kill: everything
happens at about feed = 0.02 to 0.06, kill = 0.05 to 0.065. Diffusion and the linear rates are integrated exactly.

Axes: b trajectory, c = 2 (u, v), *modes.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.pde.equations.spectral import SpectralCoefficients, SpectralEquation
from ssno.pde.grids import SpectralGrid


def gray_scott(
    grid: SpectralGrid, *, diffusivities: tuple[float, float], feed: Float[Tensor, " b"], kill: float
) -> SpectralEquation:
    """The equations above with a feed rate for each trajectory, in any number of dimensions."""
    ones = (1,) * len(grid.axes)
    removed = torch.stack([feed, feed + kill], dim=1).reshape(-1, 2, *ones)
    spread = torch.tensor(diffusivities, dtype=torch.float64).reshape(1, 2, *ones)

    def nonlinear(modes: SpectralCoefficients, time: float) -> SpectralCoefficients:
        fields = grid.to_field(modes)
        consumed = grid.to_modes(fields[:, :1] * fields[:, 1:].square())
        rate = torch.cat([-consumed, consumed], dim=1)
        rate[:, 0].flatten(1)[:, 0] += feed  # mode 0 is the mean
        return rate

    return SpectralEquation(grid, spread * grid.laplacian() - removed, nonlinear)
