"""Pointwise maps, and the coordinates that enter a model with its fields.

Axes: h channel, p everything else (grid points and frames), n frame.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn


def coordinates(grid: Sequence[int], axes: Sequence[int], *, like: Tensor) -> Float[Tensor, "axes *grid"]:
    """Relative position along some axes, i / points in [0, 1): the same at every resolution."""
    lines = [torch.arange(points, dtype=like.dtype, device=like.device) / points for points in grid]
    fields = torch.meshgrid(*lines, indexing="ij")
    return torch.stack([fields[axis] for axis in axes])


def with_coordinates(frames: Float[Tensor, "n c *grid"], axes: Sequence[int]) -> Float[Tensor, "n d *grid"]:
    """Append a coordinate channel for each of these axes to every frame."""
    return append(coordinates(frames.shape[2:], axes, like=frames), frames) if axes else frames


def append(fields: Float[Tensor, "a *grid"], frames: Float[Tensor, "n c *grid"]) -> Float[Tensor, "n d *grid"]:
    """Append the same fields to every frame."""
    return torch.cat([frames, fields.expand(frames.shape[0], *fields.shape)], dim=1)


class Pointwise(nn.Linear):
    """A linear map of channels, the same at every point, for tensors whose first axis is the channel."""

    def forward(self, x: Float[Tensor, "c *points"]) -> Float[Tensor, "d *points"]:
        flat = torch.addmm(self.bias[:, None], self.weight, x.reshape(x.shape[0], -1))
        return flat.view(-1, *x.shape[1:])
