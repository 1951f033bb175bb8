"""Mean squared errors of a point cloud, off the wall and on it.

Axes: b case, t frame, c field, p point.
"""

from jaxtyping import Bool, Float
from torch import Tensor

PerField = Float[Tensor, "b t c"]


def volume_and_surface(
    prediction: Float[Tensor, "b t c p"], truth: Float[Tensor, "b t c p"], wall: Bool[Tensor, "b p"]
) -> tuple[PerField, PerField]:
    """Means over the points off the wall, and over those on it; 0 where there are none."""
    squares = (prediction - truth).square()
    means = []
    for chosen in (~wall, wall):
        weight = chosen.to(squares.dtype)
        weight = weight / weight.sum(dim=1, keepdim=True).clamp_min(1)
        means.append((squares * weight[:, None, None]).sum(dim=-1))
    return means[0], means[1]
