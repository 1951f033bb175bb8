"""Vector fields on a sphere of radius a, by vorticity and divergence.

For u towards the east and v towards the north, with vorticity zeta and divergence delta,

    u_m = -a sum_l [D_lm zeta_lm + i E_lm delta_lm] / (l (l+1))
    v_m = -a sum_l [i E_lm zeta_lm - D_lm delta_lm] / (l (l+1))

and back, integrated by parts, so that a divergence has no mean and mass is conserved exactly,

    div_lm  = (2 pi / a) sum_k w_k [i E_lm u_m + D_lm v_m],     curl_lm = (2 pi / a) sum_k w_k [i E_lm v_m - D_lm u_m]

D and E are the two parts of a harmonic's gradient (`ssno.transforms.legendre`). The curl of (u, v) is the divergence of
(v, -u), so one function serves both. Axes as in `ssno.transforms.sphere`, space in front.
"""

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ssno.transforms.legendre import legendre_tables
from ssno.transforms.sphere import SphereTransform, as_table, columns
from ssno.transforms.sphere_grid import SphereGrid


class VectorTransform(SphereTransform):
    """Scalar and vector fields on `grid`; lengths in units in which the sphere's radius is `radius`."""

    velocities: Float[Tensor, "m lat l2"]
    divergences: Float[Tensor, "m l lat2"]
    laplacian: Float[Tensor, " l"]

    def __init__(self, grid: SphereGrid, *, degrees: int, radius: float = 1.0, dtype: torch.dtype = torch.float32):
        super().__init__(grid, degrees=degrees, dtype=dtype)
        if not 0 < radius < float("inf"):
            raise ValueError(f"`radius` must be a positive finite number, got {radius}.")
        x, weights = grid.rule
        _, slopes, turns = legendre_tables(x, degrees=degrees)  # m l lat
        l = np.arange(degrees)
        inverse = np.where(l > 0, -radius / np.maximum(l * (l + 1), 1), 0.0)[:, None]
        velocities = np.concatenate([inverse * slopes, inverse * turns], axis=1).transpose(0, 2, 1)
        divergences = 2 * np.pi / radius * np.concatenate([weights * turns, weights * slopes], axis=2)
        self.register_buffer("velocities", as_table(velocities, dtype), persistent=False)
        self.register_buffer("divergences", as_table(divergences, dtype), persistent=False)
        self.register_buffer("laplacian", as_table(-l * (l + 1) / radius**2, dtype), persistent=False)

    def velocity(
        self, vorticity: Complex[Tensor, "m l *batch"], divergence: Complex[Tensor, "m l *batch"]
    ) -> Float[Tensor, "lon lat 2 *batch"]:
        """(u, v) of given vorticity and divergence; what these have at l = 0 does not count."""
        upper = torch.stack([vorticity, -divergence], dim=2)
        lower = torch.stack([divergence, vorticity], dim=2) * 1j
        return self.rings(columns(self.velocities, torch.cat([upper, lower], dim=1)))

    def divergence(
        self, east: Complex[Tensor, "m lat *batch"], north: Complex[Tensor, "m lat *batch"]
    ) -> Complex[Tensor, "m l *batch"]:
        """Divergence of a vector field given by the `orders` of its parts; `divergence(north, -east)` is its curl."""
        return columns(self.divergences, torch.cat([east * 1j, north], dim=1))

    def divergence_and_curl(
        self, east: Float[Tensor, "lon lat *batch"], north: Float[Tensor, "lon lat *batch"]
    ) -> tuple[Complex[Tensor, "m l *batch"], Complex[Tensor, "m l *batch"]]:
        """Both, of a vector field on the grid."""
        u, v = self.orders(east), self.orders(north)
        return self.divergence(u, v), self.divergence(v, -u)
