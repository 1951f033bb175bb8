"""Feature-wise linear modulation (FiLM): numbers that belong to a whole frame scale and shift its features.

    x <- (1 + scale) x + shift,      (scale, shift) = W2 gelu(W1 p + b1) + b2      for every channel, after every block

W2 and b2 start at zero, so that a fresh network is the one without modulation.

Axes: n frame, k parameter, l block, h channel.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

HIDDEN = 64
"""Width between parameters and scales."""


class Film(nn.Module):
    """From the parameters of a frame to a scale and a shift for every channel of every block."""

    def __init__(self, parameters: int, *, channels: int, blocks: int):
        super().__init__()
        self.blocks, self.channels = blocks, channels
        self.first = nn.Linear(parameters, HIDDEN)
        self.last = nn.Linear(HIDDEN, blocks * 2 * channels)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, parameters: Float[Tensor, "n k"]) -> Float[Tensor, "n l 2 h"]:
        """Scale and shift of every block."""
        return self.last(functional.gelu(self.first(parameters))).view(-1, self.blocks, 2, self.channels)


def modulated(features: Float[Tensor, "h *grid n"], by: Float[Tensor, "n 2 h"]) -> Float[Tensor, "h *grid n"]:
    """Features of every frame, scaled and shifted."""
    shape = (features.shape[0], *(1,) * (features.ndim - 2), features.shape[-1])
    scale, shift = (part.t().reshape(shape).to(features.dtype) for part in by.unbind(1))
    return torch.addcmul(features + shift, features, scale)


def without_means(
    frames: Float[Tensor, "n c *grid"], first: int
) -> tuple[Float[Tensor, "n c *grid"], Float[Tensor, "n k"]]:
    """Frames whose fields from number `first` on have mean zero over the grid, and these means."""
    known = frames[:, first:]
    means = known.flatten(2).mean(dim=2)
    rest = known - means.view(*means.shape, *(1,) * (frames.ndim - 2))
    return torch.cat([frames[:, :first], rest], dim=1), means
