"""Means over the points of a frame, or over those of them that have data: obstacles and land do not count.

Axes: b trajectory, t frame, c field.
"""

from jaxtyping import Bool, Float
from torch import Tensor

Inside = Bool[Tensor, "b t 1 *grid"] | None
"""Where there are data; None if everywhere."""


def sum_over_points(values: Float[Tensor, "b t c *grid"], inside: Inside = None) -> Float[Tensor, "b t c"]:
    """The sum over the points of each frame and field."""
    return (values if inside is None else values * inside).flatten(3).sum(-1)


def mean_over_points(
    values: Float[Tensor, "b t c *grid"], inside: Inside = None, *, less: int = 0
) -> Float[Tensor, "b t c"]:
    """The mean over the points of each frame and field; `less` is taken off their number, 1 for a variance."""
    if inside is None and not less:
        return values.flatten(3).mean(-1)
    count = values[0, 0, 0].numel() if inside is None else inside.flatten(3).sum(-1)
    return sum_over_points(values, inside) / (count - less)


def centred(values: Float[Tensor, "b t c *grid"], inside: Inside = None) -> Float[Tensor, "b t c *grid"]:
    """Each frame and field less its mean; 0 at points without data."""
    mean = mean_over_points(values, inside)
    apart = values - mean.view(*mean.shape, *(1,) * (values.ndim - 3))
    return apart if inside is None else apart * inside
