"""Relative l2 errors: the numbers that the paper and its neighbours report.

    rel_l2       per trajectory  |prediction - truth| / |truth|  over all frames, channels and points; then the mean
    rel_l2_step  the same norm frame by frame; the mean over trajectories gives one number per frame

Both are free of the batch size: a mean over trajectories of a ratio per trajectory. A truth of exactly zero has no
relative error; the tiny floor keeps the result finite there and changes nothing elsewhere.

On a sphere points stand for areas of very different size: `area` weighs their squares.

Axes: b trajectory, t frame, c field.
"""

import torch
from jaxtyping import Float
from torch import Tensor

FLOOR = 1e-12

Area = Float[Tensor, "..."] | None
"""Weight of each point, to broadcast over the grid axes; None if all weigh the same."""


def trajectory_errors(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"], *, area: Area = None
) -> Float[Tensor, " b"]:
    """|prediction - truth| / |truth| of each trajectory, over all its frames, channels and points."""
    difference = torch.linalg.vector_norm(weighed(prediction - truth, area).flatten(1), dim=1)
    return difference / torch.linalg.vector_norm(weighed(truth, area).flatten(1), dim=1).clamp_min(FLOOR)


def frame_errors(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"], *, area: Area = None
) -> Float[Tensor, "b t"]:
    """|prediction - truth| / |truth| of each frame, over its channels and points."""
    difference = torch.linalg.vector_norm(weighed(prediction - truth, area).flatten(2), dim=2)
    return difference / torch.linalg.vector_norm(weighed(truth, area).flatten(2), dim=2).clamp_min(FLOOR)


def weighed(field: Float[Tensor, "*shape"], area: Area) -> Float[Tensor, "*shape"]:
    """A field whose plain sum of squares is the sum weighed by area."""
    return field if area is None else field * area.sqrt().to(field)
