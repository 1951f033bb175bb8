"""Relative l2 errors: the numbers that the paper and its neighbours report.

    rel_l2       per trajectory  |prediction - truth| / |truth|  over all frames, channels and points; then the mean
    rel_l2_step  the same norm frame by frame; the mean over trajectories gives one number per frame

Both are free of the batch size: a mean over trajectories of a ratio per trajectory. A truth of exactly zero has no
relative error; the tiny floor keeps the result finite there and changes nothing elsewhere. Fields in physical units may
have squares beyond single precision: `with_room` comes first.

On a sphere points stand for areas of very different size: `area` weighs their squares.

Axes: b trajectory, t frame, c field.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base.device import float64

FLOOR = 1e-12
LARGE = 1e15
"""Sums of squares of larger numbers, or of numbers below its inverse, may leave the range of single precision."""

Area = Float[Tensor, "..."] | None
"""Weight of each point, to broadcast over the grid axes; None if all weigh the same."""


def trajectory_errors(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"], *, area: Area = None
) -> Float[Tensor, " b"]:
    """|prediction - truth| / |truth| of each trajectory, over all its frames, channels and points."""
    difference = torch.linalg.vector_norm(weighed(prediction - truth, area).flatten(1), dim=1)
    return over(difference, torch.linalg.vector_norm(weighed(truth, area).flatten(1), dim=1))


def frame_errors(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"], *, area: Area = None
) -> Float[Tensor, "b t"]:
    """|prediction - truth| / |truth| of each frame, over its channels and points."""
    difference = torch.linalg.vector_norm(weighed(prediction - truth, area).flatten(2), dim=2)
    return over(difference, torch.linalg.vector_norm(weighed(truth, area).flatten(2), dim=2))


def over(difference: Float[Tensor, "*shape"], scale: Float[Tensor, "..."]) -> Float[Tensor, "*shape"]:
    """A difference over the scale of the truth, where that has one."""
    return difference / torch.where(scale > 0, scale, FLOOR)


def with_room(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"]
) -> tuple[Float[Tensor, "b t c *grid"], Float[Tensor, "b t c *grid"]]:
    """Both as they are, or in double precision if the truth is so large or small that its squares need it."""
    largest = truth.abs().max().item() if truth.numel() else 1.0
    return (prediction, truth) if 1 / LARGE < largest < LARGE else (float64(prediction), float64(truth))


def weighed(field: Float[Tensor, "*shape"], area: Area) -> Float[Tensor, "*shape"]:
    """A field whose plain sum of squares is the sum weighed by area."""
    return field if area is None else field * area.sqrt().to(field)
