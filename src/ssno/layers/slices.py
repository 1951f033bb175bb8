"""Slices: a cloud of points becomes a few tokens, tokens are mixed, and the points hear back (Transolver).

    w[p, g] = softmax_g( (W_g k_p) / tau )                   how much point p belongs to slice g, per head
    t[g]    = sum_p w[p, g] f_p / (sum_p w[p, g] + 1e-5)     the token of a slice: a mean over its points
    out_p   = W_o concat_heads sum_g w[p, g] mixed(t)[g]

f and k are linear maps of the input, split into heads; W_g is shared by heads, tau is one number per head. Tokens are
means, so the map commutes with permutations of the points and does not care how many there are. Slices have no order
of their own: a mixing that scans them (`ssno.layers.slice_mixing`) follows the learned numbering, or with `by_position`
the mean x of their points.

Axes: n cloud, p point, h channel, k head, g slice, c channel of a head.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

TEMPERATURE = 0.5
EMPTIEST = 1e-5


class SliceExchange(nn.Module):
    """Gather points in slices, mix the slices, spread the result.

    Args:
        channels: width h.
        heads: number of heads; divides the width.
        slices: tokens per head.
        by_position: hand the tokens of each head to the mixing in the order of the mean x of their points.
    """

    def __init__(self, channels: int, *, heads: int, slices: int, by_position: bool = False):
        super().__init__()
        self.heads, self.by_position = heads, by_position
        self.values = nn.Linear(channels, channels)
        self.keys = nn.Linear(channels, channels)
        self.membership = nn.Linear(channels // heads, slices)
        self.temperature = nn.Parameter(torch.full((heads, 1), TEMPERATURE))
        self.spread = nn.Linear(channels, channels)

    def forward(
        self,
        u: Float[Tensor, "n p h"],
        mixing: Callable[[Tensor], Tensor],
        *,
        x: Float[Tensor, "n p"],
        mask: Bool[Tensor, "n p"] | None = None,
    ) -> Float[Tensor, "n p h"]:
        """Exchange through `mixing`, a map of (n, k, g, c); `x` orders slices, points outside `mask` do not exist."""
        values, keys = (self._heads(layer(u)) for layer in (self.values, self.keys))
        weight = torch.softmax(self.membership(keys) / self.temperature[:, None], dim=-1)  # n k p g
        if mask is not None:
            weight = weight * mask[:, None, :, None]
        size = weight.sum(dim=2)  # n k g
        tokens = weight.transpose(2, 3) @ values / (size + EMPTIEST)[..., None]  # n k g c
        if self.by_position:
            order = (torch.einsum("nkpg,np->nkg", weight, x) / size).argsort(dim=-1)[..., None].expand_as(tokens)
            sorted_tokens = mixing(tokens.gather(2, order))
            tokens = torch.zeros_like(tokens).scatter(2, order, sorted_tokens)
        else:
            tokens = mixing(tokens)
        return self.spread((weight @ tokens).transpose(1, 2).flatten(2))

    def _heads(self, u: Float[Tensor, "n p h"]) -> Float[Tensor, "n k p c"]:
        return u.unflatten(-1, (self.heads, -1)).transpose(1, 2)
