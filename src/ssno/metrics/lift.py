"""Lift of an aerofoil from the pressure on its contour.

    F = -sum over sides  (p_a + p_b)/2 (dy, -dx),      C_L = 2 (F_y cos a - F_x sin a) / U^2

The contour is a closed polygon of wall points in counter-clockwise order; (dy, -dx) is a side's length times its
outward normal, so a constant pressure gives no force, exactly. p is the pressure over density and U the inlet speed at
angle a. The rule is of second order in the length of the sides. With `normals` given, their mean over both ends
replaces the normal of a side, as AirfRANS does.

Axes: b case, m wall point.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def contour_force(
    place: Float[Tensor, "b m 2"], pressure: Float[Tensor, "b m"], *, normals: Float[Tensor, "b m 2"] | None = None
) -> Float[Tensor, "b 2"]:
    """Force of the pressure on a closed contour; `normals` are unit outward normals of the points."""
    side = place.roll(-1, dims=1) - place
    if normals is None:
        outward = torch.stack([side[..., 1], -side[..., 0]], dim=-1)
    else:
        outward = (normals + normals.roll(-1, dims=1)) / 2 * side.norm(dim=-1, keepdim=True)
    mean = (pressure + pressure.roll(-1, dims=1)) / 2
    return -(mean[..., None] * outward).sum(dim=1)


def lift_coefficient(force: Float[Tensor, "b 2"], inlet: Float[Tensor, "b 2"]) -> Float[Tensor, " b"]:
    """The part of a force across the inlet velocity, in units of U^2/2."""
    across = inlet[:, 0] * force[:, 1] - inlet[:, 1] * force[:, 0]
    return 2 * across / inlet.norm(dim=1) ** 3
