"""Pointwise maps at the two ends of a model: lifting fields with their coordinates, projecting features to fields.

Axes: h channel, p everything else (grid points and frames), n frame.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional


def coordinates(grid: Sequence[int], *, like: Tensor) -> Float[Tensor, "axes *grid"]:
    """Relative position along each axis, i / points in [0, 1): the same at every resolution."""
    lines = [torch.arange(points, dtype=like.dtype, device=like.device) / points for points in grid]
    return torch.stack(torch.meshgrid(*lines, indexing="ij"))


def with_coordinates(frames: Float[Tensor, "n c *grid"]) -> Float[Tensor, "n d *grid"]:
    """Append one coordinate channel per axis to every frame."""
    where = coordinates(frames.shape[2:], like=frames)
    return torch.cat([frames, where.expand(frames.shape[0], *where.shape)], dim=1)


class Pointwise(nn.Linear):
    """A linear map of channels, the same at every point, for tensors whose first axis is the channel."""

    def forward(self, x: Float[Tensor, "c *points"]) -> Float[Tensor, "d *points"]:
        flat = torch.addmm(self.bias[:, None], self.weight, x.reshape(x.shape[0], -1))
        return flat.view(-1, *x.shape[1:])


class Head(nn.Module):
    """Two pointwise maps with an activation between them: features to output fields."""

    def __init__(
        self, channels: int, *, hidden: int, out_channels: int, activation: Callable[[Tensor], Tensor] = functional.gelu
    ):
        super().__init__()
        self.activation = activation
        self.widen = Pointwise(channels, hidden)
        self.narrow = Pointwise(hidden, out_channels)

    def forward(self, features: Float[Tensor, "h *points"]) -> Float[Tensor, "c *points"]:
        return self.narrow(self.activation(self.widen(features)))
