"""The full S4 block: scan each channel with a diagonal-plus-low-rank system, then mix channels (`ssno.layers.block`).

The system is  s' = (diag(rate) - P P^H) s + B x,  y = C s,  rate = -damping - i frequency,  started at HiPPO-LegS
(`ssno.ssm.hippo`) and sampled by the bilinear rule; its kernel comes from `ssno.ssm.dplr`. The parameter C is the
truncated one, C (I - Abar^length), which makes the kernel at `length` points cheap; kernels of other lengths and
spacings follow from it exactly, by dense algebra.

Axes: b line, h channel, n state mode (one per conjugate pair), r rank, l grid point.
"""

import math
from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from ssno.base import require_pairs, require_positive
from ssno.layers.block import GatedBlock
from ssno.layers.modes import ModeOptions
from ssno.layers.public_arrays import PUBLIC_ARRAYS, fill, fill_block, named_arrays
from ssno.ssm.dplr import LowRankSystem, low_rank_kernel, truncated, untruncated
from ssno.ssm.hippo import hippo_legs
from ssno.ssm.initialise import INITIAL_DAMPING, log_steps


class LowRankModes(nn.Module):
    """The parameters of `channels` independent systems with `d_state` states each (in conjugate pairs).

    `length` is the number of points to which the output weights are truncated; None takes them as truncated to
    whatever length is asked for.
    """

    def __init__(self, channels: int, *, d_state: int, length: int | None):
        super().__init__()
        require_pairs("d_state", d_state)
        self.length = length
        start = hippo_legs(d_state)
        pairs = d_state // 2
        steps = log_steps(channels, smallest=ModeOptions.smallest_step, largest=ModeOptions.largest_step)
        self.log_damping = nn.Parameter(torch.full((channels, pairs), math.log(INITIAL_DAMPING)))
        kind = self.log_damping.detach()  # of the default type, on the default device
        self.frequency = nn.Parameter(start.frequency.to(kind).repeat(channels, 1))
        self.log_step = nn.Parameter(steps.to(kind))
        self.low_rank = nn.Parameter(torch.view_as_real(start.low_rank).to(kind).repeat(1, channels, 1, 1))
        self.input_weight = nn.Parameter(torch.view_as_real(start.input_weight).to(kind).repeat(channels, 1, 1))
        self.output_weight = nn.Parameter(torch.randn(channels, pairs, 2) * math.sqrt(0.5))
        if length is not None:
            self.output_weight.data = torch.view_as_real(truncated(self.system(), length=length).output_weight.detach())

    def state_space_parameters(self) -> list[nn.Parameter]:
        """Parameters of the dynamics, which optimisers treat apart: no weight decay, their own rate."""
        return [p for name, p in self.named_parameters() if name != "output_weight"]

    def system(self, spacing: float = 1.0) -> LowRankSystem:
        """The systems on a grid whose spacing is `spacing` times the reference one; C as stored."""
        return LowRankSystem(
            torch.complex(-torch.exp(self.log_damping), -self.frequency),
            _complex(self.low_rank),
            _complex(self.input_weight),
            _complex(self.output_weight),
            torch.exp(self.log_step) * spacing,
        )

    def kernel(self, length: int, *, spacing: float = 1.0) -> Float[Tensor, "h l"]:
        """The convolution kernel on `length` points."""
        if self.length is None:
            return low_rank_kernel(self.system(spacing), length=length)
        if spacing == 1.0 and length <= self.length:
            return low_rank_kernel(self.system(), length=self.length)[:, :length]
        plain = untruncated(self.system(), length=self.length)._replace(step=torch.exp(self.log_step) * spacing)
        return low_rank_kernel(truncated(plain, length=length), length=length)


class S4Block(GatedBlock):
    """Scan sequences forwards with learnable diagonal-plus-low-rank kernels, then mix channels.

    Args:
        channels: number of channels h, each with its own system.
        length: number of points for which the kernel is cheapest; others are exact too, but take O(n^3) per channel.
        d_state: states per channel; even, because they come in conjugate pairs.
    """

    def __init__(self, channels: int, *, length: int, d_state: int = 64):
        super().__init__(channels)
        require_positive("length", length)
        self.modes = LowRankModes(channels, d_state=d_state, length=length)

    def kernel(self, length: int, *, spacing: float = 1.0) -> Float[Tensor, "h l"]:
        """The convolution kernel on `length` points, without the skip."""
        return self.modes.kernel(length, spacing=spacing)

    @classmethod
    def from_public_arrays(cls, arrays: Mapping[str, np.ndarray], *, length: int | None = None) -> "S4Block":
        """Build a block from the arrays of a public S4 block in diagonal-plus-low-rank mode.

        Names, with `layer__kernel__` standing before the first six and `.` allowed in place of `__`:

            A_real (h, n) log damping       A_imag (h, n) frequency w of rate = -exp(A_real) - i w
            P (r, h, n, 2) complex, A = diag(rate) - sum over r of P P^H      inv_dt (h, 1) log step
            B, C (1, h, n, 2) complex, C already truncated, that is multiplied by (I - Abar^length)
            layer__D (1, h) skip            output_linear__0__weight (2h, h), output_linear__0__bias (2h,)

        Leading axes of one may be missing; A_real, A_imag, P and B may hold fewer rows, shared by the channels in turn.
        `length` is the one that C was truncated to. Left out, it is read from `layer__kernel__l_kernel` or from the
        last axis of `kernel` or `x`, if one of them is there; else C is taken as truncated to each sequence's length.
        """
        value = named_arrays(arrays, (*PUBLIC_ARRAYS, "layer__kernel__P"), kind="diagonal-plus-low-rank")
        channels = value["layer__D"].numel()
        pairs = value["layer__kernel__A_real"].shape[-1]
        low_rank = value["layer__kernel__P"]
        rank = low_rank.shape[0] if low_rank.ndim == 4 else 1
        length = _stored_length(arrays) if length is None else length
        block = cls(channels, length=1 if length is None else length, d_state=2 * pairs)
        block.modes.length = length
        block.modes.low_rank = nn.Parameter(torch.zeros(rank, channels, pairs, 2))
        block.to(value["layer__D"].dtype)
        systems = f"{channels} channels with {pairs} modes"
        fill_block(block, value, systems=systems)
        for column, target in zip(low_rank.unflatten(0, (rank, -1)), block.modes.low_rank, strict=True):
            fill(target, column, name="layer__kernel__P", systems=systems)
        return block


def _stored_length(arrays: Mapping[str, np.ndarray]) -> int | None:
    """The length that C was truncated to, as far as the arrays tell."""
    for name, array in arrays.items():
        if name.replace(".", "__") == "layer__kernel__l_kernel":
            return int(np.asarray(array).item())
    return next((int(arrays[name].shape[-1]) for name in ("kernel", "x") if name in arrays), None)


def _complex(packed: Float[Tensor, "*shape 2"]) -> Complex[Tensor, "*shape"]:
    return torch.complex(packed[..., 0], packed[..., 1])
