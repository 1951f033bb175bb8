"""Relative l2 errors: the numbers that the paper and its neighbours report.

    rel_l2       per trajectory  |prediction - truth| / |truth|  over all frames, channels and points; then the mean
    rel_l2_step  the same norm frame by frame; the mean over trajectories gives one number per frame

Both are free of the batch size: a mean over trajectories of a ratio per trajectory. A truth of exactly zero has no
relative error; the tiny floor keeps the result finite there and changes nothing elsewhere.

Axes: b trajectory, t frame, c field.
"""

import torch
from jaxtyping import Float
from torch import Tensor

FLOOR = 1e-12


def trajectory_errors(
    prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"]
) -> Float[Tensor, " b"]:
    """|prediction - truth| / |truth| of each trajectory, over all its frames, channels and points."""
    difference = torch.linalg.vector_norm((prediction - truth).flatten(1), dim=1)
    return difference / torch.linalg.vector_norm(truth.flatten(1), dim=1).clamp_min(FLOOR)


def frame_errors(prediction: Float[Tensor, "b t c *grid"], truth: Float[Tensor, "b t c *grid"]) -> Float[Tensor, "b t"]:
    """|prediction - truth| / |truth| of each frame, over its channels and points."""
    difference = torch.linalg.vector_norm((prediction - truth).flatten(2), dim=2)
    return difference / torch.linalg.vector_norm(truth.flatten(2), dim=2).clamp_min(FLOOR)
