"""Slices: a cloud of points becomes a few tokens, tokens are mixed, and spread back to the points (Transolver).

    w[p, g] = softmax_g( (W_g k_p) / tau )                   how much point p belongs to slice g, per head
    t[g]    = sum_p w[p, g] f_p / (sum_p w[p, g] + 1e-5)     the token of a slice: a mean over its points
    out_p   = W_o concat_heads sum_g w[p, g] mixed(t)[g]

f and k are linear maps of the input, split into heads; W_g is shared by heads, tau is one number per head. Tokens are
means, so the map commutes with permutations of the points and does not care how many there are. Slices have no order
of their own: a mixing that scans them (`ssno.layers.slices`) follows the learned numbering, or with `by_position`
the mean x of their points.

Axes: n cloud, p point, h channel, k head, g slice, c channel of a head.
"""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.base import require_one_of
from ssno.layers.block import DiscretisedKernels, gated_scan, scan_weights
from ssno.layers.modes import ModeOptions
from ssno.layers.selective import block_type
from ssno.ssm.convolution import Direction

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


# What happens among the tokens of slices: attention (Transolver), a state-space scan (SS-NO), or nothing.
#
# A scan runs over the slice index, inside each head with weights shared by the heads, as attention does:
#
#     mixed = copies t + forward(t) + flip backward(flip t)           copies = 1 with residual "sum", 0 with "none"
#
# Per channel and direction that is a triangular Toeplitz matrix over the slices, then the gate of every S4 block. With
# `across_heads` the heads stand side by side as channels of one wide scan.
#
# Axes: n cloud, k head, g slice, c channel of a head.

Tokens = Float[Tensor, "n k g c"]
Mixing = Callable[[Tensor], Tensor]
"""A map of tokens (n, k, g, c)."""


class AttentionMixing(nn.Module):
    """softmax(q k^T / sqrt c) v among the slices of each head; q, k, v are shared by the heads."""

    def __init__(self, channels: int):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(channels, channels, bias=False) for _ in range(3))

    def forward(self, tokens: Tokens) -> Tokens:
        return functional.scaled_dot_product_attention(self.query(tokens), self.key(tokens), self.value(tokens))


class NoMixing(nn.Module):
    """No exchange among slices."""

    def forward(self, tokens: Tokens) -> Tokens:
        return tokens


class ScanMixing(nn.Module):
    """Scan the slices with state-space blocks, linear or selective, one way or both.

    Args:
        channels: channels c of a head.
        heads: number of heads k.
        d_state: states per channel.
        both_ways: a forward and a backward block; otherwise later slices never reach earlier ones.
        across_heads: one scan of k c channels instead of the same c-channel scan in every head.
        residual: "sum" adds the tokens themselves, "none" does not.
        options: how the modes start, and whether they follow the tokens.
    """

    def __init__(
        self,
        channels: int,
        *,
        heads: int,
        d_state: int = 64,
        both_ways: bool = True,
        across_heads: bool = False,
        residual: str = "sum",
        options: ModeOptions | None = None,
    ):
        super().__init__()
        require_one_of("residual", residual, ("sum", "none"))
        self.across_heads, self.residual_weight = across_heads, int(residual == "sum")
        width, kind = channels * heads if across_heads else channels, block_type(options)
        directions: tuple[Direction, ...] = ("forward", "backward") if both_ways else ("forward",)
        self.blocks = nn.ModuleList(
            kind(width, d_state=d_state, direction=direction, options=options) for direction in directions
        )

    def forward(self, tokens: Tokens) -> Tokens:
        (weights,) = scan_weights([(tuple(self.blocks), tokens.shape[2], 1.0)])  # type: ignore[arg-type]
        return self.mix(tokens, weights)

    def mix(self, tokens: Tokens, weights: DiscretisedKernels) -> Tokens:
        """Scan with weights at hand."""
        clouds, heads, slices, channels = tokens.shape
        if self.across_heads:
            lines = tokens.permute(1, 3, 2, 0).reshape(heads * channels, 1, slices, clouds)
        else:
            lines = tokens.permute(3, 2, 0, 1).reshape(channels, 1, slices, clouds * heads)
        mixed = gated_scan(lines, weights, residual_weight=self.residual_weight)
        if self.across_heads:
            return mixed.view(heads, channels, slices, clouds).permute(3, 0, 2, 1)
        return mixed.view(channels, slices, clouds, heads).permute(2, 3, 1, 0)


def ready(mixings: nn.ModuleList, *, slices: int) -> list[Mixing]:
    """Mixings as maps of tokens. The kernels of all scans are sampled at once, which costs little more than one."""
    scans = [mixing for mixing in mixings if isinstance(mixing, ScanMixing)]
    weights = iter(scan_weights([(tuple(one.blocks), slices, 1.0) for one in scans]) if scans else [])  # type: ignore[arg-type]
    return [partial(one.mix, weights=next(weights)) if isinstance(one, ScanMixing) else one for one in mixings]
