"""What happens among the tokens of slices: attention (Transolver), a state-space scan (SS-NO), or nothing.

A scan runs over the slice index, inside each head with weights shared by the heads, as attention does:

    mixed = copies t + forward(t) + flip backward(flip t)           copies = 1 with residual "sum", 0 with "none"

Per channel and direction that is a triangular Toeplitz matrix over the slices, then the gate of every S4 block. With
`across_heads` the heads stand side by side as channels of one wide scan.

Axes: n cloud, k head, g slice, c channel of a head.
"""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.base import require_one_of
from ssno.layers.block import DiscretisedKernels, gated_scan, scan_weights
from ssno.layers.modes import ModeOptions
from ssno.layers.selective import block_type
from ssno.ssm.convolution import Direction

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
    """Slices do not hear of each other."""

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
