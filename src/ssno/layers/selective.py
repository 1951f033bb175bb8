"""The selective block: an S4D block whose modes follow the input at every point (`ssno.ssm.selective`).

    step[l, h] = softplus( softplus^-1(exp(log_step_h)) + (W2 W1 z_l)_h ),       z = x / sqrt(1 + mean_h x^2)
    B[l, h, n] = B0[h, n] + (W_B z_l)_n,      C[l, h, n] = C0[h, n] + (W_C z_l)_n

What chooses is z: small inputs as they are, large ones at the size 1. With x itself B, C and x multiply to a cubic; a
network of four blocks without norms then multiplies its input by 1e21 at the start, and a step of any size diverges.
Mamba stands behind a norm for the same reason.

B0, C0, damping, frequency and log_step are the `Modes` of the linear block; skip, mixing and gate are the linear
block's too, so selectivity is all that differs. With all W = 0 the two blocks are the same map. W1 has rank
ceil(h/16); W_B and W_C are complex and shared by the channels.

Axes: b line, h channel, n state mode, l grid point.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.base import require_one_of
from ssno.layers.block import CarryingBlock
from ssno.layers.memory import S4DBlock
from ssno.layers.modes import ModeOptions, Modes, fast_start
from ssno.ssm.convolution import Direction
from ssno.ssm.kernel import Boundary
from ssno.ssm.scan import ScanMethod
from ssno.ssm.selective import inverse_softplus, selective_response

CHANNELS_PER_RANK = 16


def block_type(options: ModeOptions | None) -> "type[S4DBlock] | type[SelectiveBlock]":
    """The block that these options ask for."""
    return SelectiveBlock if options is not None and options.selective else S4DBlock


class SelectiveBlock(CarryingBlock):
    """Scan a sequence in one direction with modes that its values choose, then mix channels.

    Args:
        channels: number of channels h.
        d_state: states per channel; even, because they come in conjugate pairs.
        direction: "forward" looks at points before, "backward" at points after.
        boundary: what a scan assumes outside the axis: "zero" zeros, "periodic" periodic images.
        options: how the modes start and what of them is learned; by default `fast_start`.
    """

    method: ScanMethod = "chunked"  # states are carried; there is no kernel

    def __init__(
        self,
        channels: int,
        *,
        d_state: int = 64,
        direction: Direction = "forward",
        boundary: Boundary = "zero",
        options: ModeOptions | None = None,
    ):
        super().__init__(channels)
        options = options or fast_start()
        if options.damping == "absent":
            raise ValueError("A selective scan needs damping > 0, but damping='absent'. Use 'learnable' or 'fixed'.")
        if options.discretisation != "zoh":
            raise ValueError(
                f"A selective scan holds its input ('zoh'), got discretisation={options.discretisation!r}."
            )
        require_one_of("boundary", boundary, ("zero", "periodic"))
        self.direction = direction
        self.boundary = boundary
        self.modes = Modes(channels, d_state=d_state, options=options)
        self.rank = math.ceil(channels / CHANNELS_PER_RANK)
        self.select = nn.Linear(channels, 2 * d_state + self.rank, bias=False)
        self.spread = nn.Linear(self.rank, channels, bias=False)

    def kernel(self, length: int, *, spacing: float = 1.0) -> Float[Tensor, "h l"]:
        raise ValueError("A selective block has no kernel: its modes follow the input. Look at `modes` instead.")

    def carried(self, x: Float[Tensor, "h l b"], *, spacing: float = 1.0) -> Float[Tensor, "h l b"]:
        """The selective scan and skip x."""
        points = x.permute(1, 2, 0)
        if self.direction == "backward":
            points = points.flip(0)
        y = self._response(points.contiguous(), spacing)
        if self.direction == "backward":
            y = y.flip(0)
        return torch.addcmul(y.permute(2, 0, 1), self.skip[:, None, None], x)

    def _response(self, x: Float[Tensor, "l b h"], spacing: float) -> Float[Tensor, "l b h"]:
        modes = self.modes
        chosen = self.select(x * torch.rsqrt(1 + x.square().mean(dim=-1, keepdim=True)))
        weights, low_rank = chosen.split([chosen.shape[-1] - self.rank, self.rank], dim=-1)
        step = functional.softplus(inverse_softplus(torch.exp(modes.log_step)) + self.spread(low_rank)) * spacing
        shifts = torch.view_as_complex(weights.unflatten(-1, (2, -1, 2)).contiguous())  # l b (B, C) n
        input_weight, output_weight = (
            torch.view_as_complex(base) + shift[..., None, :]
            for base, shift in zip((modes.input_weight, modes.output_weight), shifts.unbind(-2), strict=True)
        )
        return selective_response(
            x,
            step,
            damping=modes.damping(),
            frequency=modes.frequency,
            input_weight=input_weight,
            output_weight=output_weight,
            periodic=self.boundary != "zero",
        )
