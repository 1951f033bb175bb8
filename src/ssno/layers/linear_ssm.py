"""Linear state-space layers with several inputs and outputs: the layer of the paper's theory, without activation.

    s_n' = rate_n s_n + sum_i B[n, i] x_i,      y_o = 2 Re sum_n C[o, n] s_n,      rate = -damping - i frequency

so that y is the integral of the kernel  2 Re sum_n C[o, n] B[n, i] exp(rate_n distance)  against x: each mode carries a
rank-one mixing of channels. The integral is taken by the rectangle rule, which on periodic axes is as good as it gets,
and under which undamped harmonic modes are exactly a Fourier layer on every grid (`ssno.theory.fno_recovery`).

Lengths are physical: without `spacing` the axis has length one, so frequency 2 pi k is the k-th harmonic.

Axes: i channel in, o channel out, n mode, l grid point, b line.
"""

import math
from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.base import require_one_of, require_positive
from ssno.layers.axial import along
from ssno.layers.modes import Damping, Frequency
from ssno.ssm.convolution import Direction, convolve
from ssno.ssm.discretise import ComplexPair, complex_mul, impulse
from ssno.ssm.initialise import INITIAL_DAMPING
from ssno.ssm.kernel import Boundary, powers, wrapped


class LinearSSM(nn.Module):
    """Map sequences (b, i, l) to (b, o, l) by a linear diagonal state-space system with `modes` modes.

    Args:
        in_channels, out_channels: number of channels i and o.
        modes: number of modes n, each standing for a conjugate pair; they start as the first harmonics of the axis.
        damping: "learnable", "fixed" at its start, or "absent".
        frequency: "learnable" or "fixed".
        direction: "forward" looks at points before, "backward" at points after.
        boundary: "zero", "periodic" or "periodic-truncated"; see `ssno.ssm.kernel`.
    """

    log_damping: Tensor
    frequency: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        modes: int,
        damping: Damping = "learnable",
        frequency: Frequency = "learnable",
        direction: Direction = "forward",
        boundary: Boundary = "periodic-truncated",
    ):
        super().__init__()
        for name, count in (("in_channels", in_channels), ("out_channels", out_channels), ("modes", modes)):
            require_positive(name, count)
        require_one_of("damping", damping, get_args(Damping))
        require_one_of("frequency", frequency, get_args(Frequency))
        require_one_of("direction", direction, get_args(Direction))
        require_one_of("boundary", boundary, ("zero", "periodic", "periodic-truncated"))
        self.direction: Direction = direction
        self.boundary: Boundary = boundary
        log_damping = torch.full((modes,), -math.inf if damping == "absent" else math.log(INITIAL_DAMPING))
        self._register("log_damping", log_damping, learnable=damping == "learnable")
        self._register("frequency", 2 * math.pi * torch.arange(modes).float(), learnable=frequency == "learnable")
        self.input_weight = nn.Parameter(torch.randn(modes, in_channels, 2) / math.sqrt(2 * in_channels))
        self.output_weight = nn.Parameter(torch.randn(out_channels, modes, 2) / math.sqrt(2 * modes))

    def _register(self, name: str, value: Tensor, *, learnable: bool) -> None:
        if learnable:
            setattr(self, name, nn.Parameter(value))
        else:
            self.register_buffer(name, value)

    def state_space_parameters(self) -> list[nn.Parameter]:
        """Parameters of the dynamics, which optimisers treat apart: no weight decay, their own rate."""
        return [p for name, p in self.named_parameters() if name in ("log_damping", "frequency")]

    def forward(self, x: Float[Tensor, "b i l"], *, spacing: float | None = None) -> Float[Tensor, "b o l"]:
        """Scan every sequence. `spacing` is the distance between points; None makes the axis one long."""
        return self.columns(x.permute(1, 2, 0), spacing=spacing).permute(2, 0, 1)

    def columns(self, x: Float[Tensor, "i l b"], *, spacing: float | None = None) -> Float[Tensor, "o l b"]:
        """The same on sequences stored as columns, (channel, position, line)."""
        re, im = (torch.einsum("ni,ilb->nlb", self.input_weight[..., part], x) for part in (0, 1))
        taps = self.response(x.shape[1], spacing=spacing)
        products = convolve(  # the four real products of a complex convolution
            torch.cat([re, im, re, im]),
            torch.cat([taps.re, -taps.im, taps.im, taps.re]),
            direction=self.direction,
            periodic=self.boundary != "zero",
        )
        first, second, third, fourth = products.chunk(4)
        states = torch.stack([first + second, -third - fourth], dim=-1)  # n l b 2, the imaginary part negated
        return 2 * torch.einsum("onp,nlbp->olb", self.output_weight, states)

    def response(self, length: int, *, spacing: float | None = None) -> ComplexPair:
        """What one unit at a point leaves in each mode at every distance, a pair of shape (n, l)."""
        step = self.frequency.new_full((1,), 1 / length if spacing is None else spacing)
        modes = impulse(torch.exp(self.log_damping)[None], self.frequency[None], step)
        weight = modes.gain
        if self.boundary == "periodic":
            weight = wrapped(modes, weight, length=length)
        taps = complex_mul(ComplexPair(weight.re[..., None], weight.im[..., None]), powers(modes, length))
        return ComplexPair(taps.re[0], taps.im[0])

    def kernel(self, length: int, *, spacing: float | None = None) -> Float[Tensor, "o i l"]:
        """The convolution kernel between every pair of channels."""
        taps = self.response(length, spacing=spacing)
        c, b = self.output_weight, self.input_weight
        re = torch.einsum("on,ni->oni", c[..., 0], b[..., 0]) - torch.einsum("on,ni->oni", c[..., 1], b[..., 1])
        im = torch.einsum("on,ni->oni", c[..., 0], b[..., 1]) + torch.einsum("on,ni->oni", c[..., 1], b[..., 0])
        return 2 * (torch.einsum("oni,nl->oil", re, taps.re) - torch.einsum("oni,nl->oil", im, taps.im))


class LinearSweep(nn.Module):
    """The sum over grid axes of one linear state-space layer along each: fields (h, *grid, b) to the same shape."""

    def __init__(self, layers: list[LinearSSM]):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, field: Float[Tensor, "h *grid b"]) -> Float[Tensor, "h *grid b"]:
        """Every axis has length one."""
        swept = torch.zeros_like(field)
        for axis, layer in enumerate(self.layers):
            assert isinstance(layer, LinearSSM)
            swept = swept + along(layer.columns, field, axis=axis)
        return swept
