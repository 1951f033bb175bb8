"""From a continuous mode to one step of a recurrence.

A mode  s' = rate s + x,  rate = -damping - i frequency,  sampled every `step` becomes

    s[l] = decay s[l-1] + gain x[l]

    zero-order hold:  decay = exp(step rate),                       gain = (exp(step rate) - 1) / rate
    bilinear:         decay = (1 + step rate/2) / (1 - step rate/2),  gain = step / (1 - step rate/2)
    impulse:          decay = exp(step rate),                       gain = step
    exact:            no recurrence at all: what the continuous mode does to every wave that the grid resolves
                      (`ssno.ssm.kernel.band_kernel`); on circles only

The decay is kept as (log of its modulus, angle), because what follows needs its powers. Kernels are built from these
numbers in `ssno.ssm.kernel`; the recurrence itself runs in `ssno.ssm.recurrence`.

Axes: h channel, n state mode (one per conjugate pair).
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

# Complex numbers as pairs of real tensors.
#
# State-space modes are complex, but complex tensors do not fit into every file format, compiler and device, and complex
# autograd is slower on a CPU. Everything in `ssno.ssm` therefore computes with a real and an imaginary part.


class ComplexPair(NamedTuple):
    """The complex tensor `re + i im`."""

    re: Float[Tensor, "*shape"]
    im: Float[Tensor, "*shape"]


def as_pair(packed: Float[Tensor, "*shape 2"]) -> ComplexPair:
    """Unpack a real tensor whose last axis holds (real, imaginary)."""
    return ComplexPair(packed[..., 0], packed[..., 1])


def complex_mul(a: ComplexPair, b: ComplexPair) -> ComplexPair:
    """The complex product a b."""
    return ComplexPair(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)


def divide(a: ComplexPair, b: ComplexPair) -> ComplexPair:
    """The complex quotient a / b."""
    size = b.re.square() + b.im.square()
    return ComplexPair((a.re * b.re + a.im * b.im) / size, (a.im * b.re - a.re * b.im) / size)


def polar(log_modulus: Float[Tensor, "*shape"], angle: Float[Tensor, "*shape"]) -> ComplexPair:
    """The complex number exp(log_modulus + i angle)."""
    modulus = torch.exp(log_modulus)
    return ComplexPair(modulus * torch.cos(angle), modulus * torch.sin(angle))


def one_minus_polar(log_modulus: Float[Tensor, "*shape"], angle: Float[Tensor, "*shape"]) -> ComplexPair:
    """1 - exp(log_modulus + i angle), without the cancellation that subtracting would cause near 1."""
    modulus = torch.exp(log_modulus)
    versine = 2 * torch.sin(angle / 2).square()  # 1 - cos(angle)
    return ComplexPair(modulus * versine - torch.expm1(log_modulus), -modulus * torch.sin(angle))


# From a continuous mode to one step of a recurrence.

Discretisation = Literal["zoh", "bilinear", "exact"]
"""From continuous modes to a grid: zero-order hold, bilinear, or exact for every resolved wave (no recurrence)."""


class DiscreteModes(NamedTuple):
    """One step of every mode: `decay = exp(log_decay + i angle)`, and the gain of the input."""

    log_decay: Float[Tensor, "h n"]
    angle: Float[Tensor, "h n"]
    gain: ComplexPair


def exprel(z: ComplexPair) -> ComplexPair:
    """(exp(z) - 1) / z, smooth through z = 0, where it is 1 and its derivative 1/2.

    Near zero the quotient is 0/0, so a Taylor series takes over; both branches see safe arguments, so that gradients
    stay finite too (the undamped zero-frequency mode sits exactly there).
    """
    near, small, large = _near_and_far(z)
    orders = _series_orders(z.re)
    series = _polynomial([1 / math.factorial(k + 1) for k in range(orders)], small)
    grown = one_minus_polar(large.re, large.im)
    quotient = divide(ComplexPair(-grown.re, -grown.im), large)
    return ComplexPair(torch.where(near, series.re, quotient.re), torch.where(near, series.im, quotient.im))


def exprel_slope(z: ComplexPair, value: ComplexPair) -> ComplexPair:
    """The derivative of `exprel` at z, where it is `value`: (exp(z) - value) / z, exp(z) being 1 + z value."""
    near, small, large = _near_and_far(z)
    series = _polynomial([k / math.factorial(k + 1) for k in range(1, _series_orders(z.re))], small)
    grown = complex_mul(large, value)
    quotient = divide(ComplexPair(1 + grown.re - value.re, grown.im - value.im), large)
    return ComplexPair(torch.where(near, series.re, quotient.re), torch.where(near, series.im, quotient.im))


def _near_and_far(z: ComplexPair) -> tuple[Tensor, ComplexPair, ComplexPair]:
    near = (z.re.square() + z.im.square()) < 0.1**2
    zero, one = torch.zeros_like(z.re), torch.ones_like(z.re)
    small = ComplexPair(torch.where(near, z.re, zero), torch.where(near, z.im, zero))
    return near, small, ComplexPair(torch.where(near, one, z.re), torch.where(near, zero, z.im))


def _series_orders(z: Tensor) -> int:
    """Terms of the series: the first one left out is below rounding for |z| < 0.1, in its derivative too."""
    return 11 if z.dtype == torch.float64 else 7


def _polynomial(coefficients: Sequence[float], z: ComplexPair) -> ComplexPair:
    """sum_k c_k z^k by Clenshaw's recurrence, which is real: half of Horner's operations."""
    twice, size = 2 * z.re, z.re.square() + z.im.square()
    last, before = torch.zeros_like(z.re), torch.zeros_like(z.re)
    for coefficient in reversed(coefficients[1:]):
        last, before = coefficient + twice * last - size * before, last
    return ComplexPair(coefficients[0] + z.re * last - size * before, z.im * last)


def zero_order_hold(
    damping: Float[Tensor, "h n"], frequency: Float[Tensor, "h n"], step: Float[Tensor, " h"]
) -> DiscreteModes:
    """Exact for an input that is constant between samples."""
    z = ComplexPair(-damping * step[:, None], -frequency * step[:, None])
    ratio = exprel(z)
    gain = ComplexPair(step[:, None] * ratio.re, step[:, None] * ratio.im)
    # Angles are reduced to [-pi, pi] before they are multiplied by positions: float32 phases stay accurate on long
    # axes, and small angles, which most are, keep all their digits.
    turns = torch.round(z.im.detach() / (2 * math.pi))
    return DiscreteModes(z.re, z.im - 2 * math.pi * turns, gain)


def bilinear(
    damping: Float[Tensor, "h n"], frequency: Float[Tensor, "h n"], step: Float[Tensor, " h"]
) -> DiscreteModes:
    """The trapezoidal rule: second order, and stable for every step."""
    half = ComplexPair(-damping * step[:, None] / 2, -frequency * step[:, None] / 2)
    above, below = ComplexPair(1 + half.re, half.im), ComplexPair(1 - half.re, -half.im)
    # |1+z|^2 / |1-z|^2 = 1 + 4 Re z / |1-z|^2: log1p keeps weak damping exact, and zero damping exactly zero.
    log_decay = 0.5 * torch.log1p(4 * half.re / (below.re.square() + below.im.square()))
    angle = torch.atan2(above.im, above.re) - torch.atan2(below.im, below.re)
    gain = divide(ComplexPair(step[:, None].expand_as(damping), torch.zeros_like(damping)), below)
    return DiscreteModes(log_decay, angle, gain)


def impulse(damping: Float[Tensor, "h n"], frequency: Float[Tensor, "h n"], step: Float[Tensor, " h"]) -> DiscreteModes:
    """The input as a train of impulses: the rectangle rule, which samples the continuous kernel as it is."""
    exact = zero_order_hold(damping, frequency, step)
    return exact._replace(gain=ComplexPair(step[:, None].expand_as(damping), torch.zeros_like(damping)))


DISCRETISATIONS: dict[Discretisation, Callable[..., DiscreteModes]] = {
    "zoh": zero_order_hold,
    "bilinear": bilinear,
}
"""Those that are recurrences."""
