"""Impulse responses of diagonal state-space models.

Builds  kernel[h, l] = 2 Re sum_n weight[h, n] decay[h, n]^l:  the damped Fourier kernel of the paper, the factor two
standing for the conjugate half of the modes. Applying a kernel lives in `ssno.ssm.convolution`; learning one, in
`ssno.layers`.

Powers are factorised: with l = a s + b and s about sqrt(length), decay^l = (decay^s)^a decay^b, so the sum over modes
becomes one small matrix product and only about 2 sqrt(length) exponentials, sines and cosines per mode are needed.

Axes: h channel, n state mode, l grid point.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.native import operations
from ssno.native.engine import fused
from ssno.native.operations import Systems, gradients
from ssno.ssm.discretise import (
    ComplexPair,
    DiscreteModes,
    as_pair,
    complex_mul,
    divide,
    one_minus_polar,
    polar,
    zero_order_hold,
)

Boundary = Literal["zero", "periodic", "periodic-truncated", "neumann", "dirichlet", "learned"]
"""What a scan assumes outside the grid."""
PERIODIC: tuple[Boundary, ...] = ("periodic", "periodic-truncated")
"""Boundaries of an axis that repeats."""
WALLS: tuple[Boundary, ...] = ("neumann", "dirichlet")
"""Boundaries that continue a line by its mirror image: the kernel goes round a circle of twice its length."""
INFINITE_IMAGES: tuple[Boundary, ...] = ("periodic", *WALLS)
"""Boundaries whose kernel is a sum over infinitely many periodic images."""
LINEAR_CONVOLUTION: tuple[Boundary, ...] = ("zero", "learned")
"""Boundaries whose kernel is applied as a linear, not a circular, convolution."""


class UndampedError(ValueError):
    """Infinitely many images of a mode that never fades have no sum."""


def kernel(
    modes: DiscreteModes, weight: ComplexPair, *, length: int, boundary: Boundary = "zero"
) -> Float[Tensor, "h l"]:
    """Sample the impulse response at `length` points. Time is O(h n l), memory O(h (n sqrt(l) + l)).

    `boundary` is what a scan assumes outside the axis: "zero" zeros, "periodic" infinitely many periodic images (in
    closed form; the kernel is to be applied circularly), "periodic-truncated" the plain kernel, applied circularly;
    "neumann" and "dirichlet" are periodic on a circle that is the axis and its mirror image; "learned" is the plain
    kernel too, and the constant outside the axis adds to its result (`steady_response`).
    """
    if length < 1:
        raise ValueError(f"`length` must be at least 1, got {length}.")
    if boundary in INFINITE_IMAGES:
        weight = wrapped(modes, weight, length=length)
    fine_length = int(length**0.5) + 1
    coarse_length = -(-length // fine_length)
    coarse = complex_mul(
        ComplexPair(weight.re[..., None], weight.im[..., None]), powers(modes, coarse_length, stride=fine_length)
    )
    fine = powers(modes, fine_length)
    left = torch.cat([coarse.re, -coarse.im], dim=1).transpose(1, 2)  # h a 2n
    right = torch.cat([fine.re, fine.im], dim=1)  # h 2n b
    return 2 * (left @ right).flatten(1)[:, :length]


def powers(modes: DiscreteModes, count: int, *, stride: int = 1) -> ComplexPair:
    """decay^(stride l) for l = 0 ... count - 1, a pair of shape (h, n, count)."""
    exponent = stride * torch.arange(count, dtype=modes.log_decay.dtype, device=modes.log_decay.device)
    return polar(modes.log_decay[..., None] * exponent, modes.angle[..., None] * exponent)


def wrapped(modes: DiscreteModes, weight: ComplexPair, *, length: int) -> ComplexPair:
    """Weights whose one-period kernel is the sum over all periodic images: weight / (1 - decay^length).

    The geometric series needs damping; without it the images never fade.
    """
    require_damping(-modes.log_decay)
    return divide(weight, one_minus_polar(length * modes.log_decay, length * modes.angle))


def require_damping(decay: Float[Tensor, "h n"]) -> None:
    """Refuse modes whose images never fade; `decay` is how much a mode loses in a step. Needs numbers to look at."""
    unknown = decay.is_meta or torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    if not unknown and bool((decay <= 0).any()):
        raise UndampedError(
            "Boundaries 'periodic', 'neumann', 'dirichlet' and 'learned' sum over infinitely many points, which needs "
            "damping > 0, but a mode has none. Use boundary='periodic-truncated' or 'zero', or give every mode damping."
        )


def steady_response(modes: DiscreteModes, weight: ComplexPair) -> Float[Tensor, " h"]:
    """The sum of the kernel over all distances: the answer to a constant input of one after infinitely many points."""
    return 2 * wrapped(modes, weight, length=1).re.sum(dim=1)


def band_kernel(
    damping: Float[Tensor, "h n"], frequency: Float[Tensor, "h n"], weight: ComplexPair, *, length: int
) -> Float[Tensor, "h l"]:
    """Taps on a circle of `length` points that treat every resolved wave as the continuous modes do.

    With numbers per step, the transfer function at wave m, w = 2 pi m / length, is

        sum_n weight / (damping + i frequency + i w) + conj(weight) / (damping - i frequency + i w)

    No wave beyond the grid's is there to be aliased, so the taps ring on both sides of zero. Time is O(h n l).
    """
    wave = 2 * math.pi / length * torch.arange(length // 2 + 1, dtype=damping.dtype, device=damping.device)
    low = damping[..., None]
    above, below = wave + frequency[..., None], wave - frequency[..., None]  # h n m
    real, imaginary = weight.re[..., None], weight.im[..., None]
    first, second = low.square() + above.square(), low.square() + below.square()
    spectrum = torch.complex(
        ((real * low + imaginary * above) / first + (real * low - imaginary * below) / second).sum(1),
        ((imaginary * low - real * above) / first - (imaginary * low + real * below) / second).sum(1),
    )
    return torch.fft.irfft(spectrum, n=length)


def continuous_kernel(
    damping: Float[Tensor, "h n"],
    frequency: Float[Tensor, "h n"],
    weight: ComplexPair,
    *,
    positions: Float[Tensor, " l"],
) -> Float[Tensor, "h l"]:
    """The underlying function  2 Re sum_n weight exp(-(damping + i frequency) x)  at any positions x >= 0.

    Positions are distances in units of the step, so the same modes sampled on two grids agree at shared points.
    """
    mode = polar(-damping[..., None] * positions, -frequency[..., None] * positions)
    return 2 * (weight.re[..., None] * mode.re - weight.im[..., None] * mode.im).sum(dim=1)


# From the parameters of diagonal systems to their sampled kernels, by zero-order hold, in one operation.
#
#     kernel[h, l] = 2 Re sum_n B C gain decay^l,  B = input_weight, C = output_weight
#
# Written out (`plain_kernels`) this is some forty small operations and a hundred more to differentiate them, which do
# not shrink with the batch; native code (`sampling.cpp`) does either way in one call, in double precision per mode.
#
# Axes: h channel, n state mode, l grid point.


def sampled_kernels(
    systems: Systems, *, length: int, spacing: float = 1.0, boundary: Boundary = "zero"
) -> Float[Tensor, "h l"]:
    """Kernels on `length` points that lie `spacing` apart, input gain included."""
    if length < 1 or not fused(*systems) or any(parameter.dtype != torch.float32 for parameter in systems):
        return plain_kernels(*systems, length=length, spacing=spacing, boundary=boundary)
    if boundary in INFINITE_IMAGES:
        require_damping(torch.exp(systems.log_damping) * torch.exp(systems.log_step)[:, None])
    if torch.is_grad_enabled():
        return SampledKernels.apply(*systems, length, spacing, boundary)
    return operations.sample_forward(systems, length=length, spacing=spacing, circle=boundary in INFINITE_IMAGES)


def plain_kernels(*parameters: Tensor, length: int, spacing: float, boundary: Boundary) -> Tensor:
    """The formula, written out, of the parameters one by one."""
    log_damping, frequency, log_step, input_weight, output_weight = precise(parameters, boundary)
    modes = zero_order_hold(torch.exp(log_damping), frequency, torch.exp(log_step) * spacing)
    weight = complex_mul(as_pair(input_weight), as_pair(output_weight))
    found = kernel(modes, complex_mul(weight, modes.gain), length=length, boundary=boundary)
    return found.to(parameters[0].dtype)


def precise(parameters: Sequence[Tensor], boundary: Boundary) -> list[Tensor]:
    """Parameters in double precision, where images are summed and the device knows it.

    Gain and images of a slow mode both follow its step, and their derivatives all but cancel: in single precision
    nothing is left of the step's gradient.
    """
    needed = boundary in INFINITE_IMAGES and parameters[0].device.type != "mps"
    return [parameter.double() if needed else parameter for parameter in parameters]


class SampledKernels(torch.autograd.Function):
    """`SampledKernels.apply(*parameters, length, spacing, boundary)`; keeps the parameters alone."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *parameters, length, spacing, boundary = given
        ctx.save_for_backward(*parameters)
        ctx.options = {"length": length, "spacing": spacing, "boundary": boundary}
        return operations.sample_forward(
            Systems(*parameters), length=length, spacing=spacing, circle=boundary in INFINITE_IMAGES
        )

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "h l"]) -> tuple[Tensor | None, ...]:
        parameters = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *gradients(partial(plain_kernels, **ctx.options), parameters, grad), None, None, None
        circle = ctx.options["boundary"] in INFINITE_IMAGES
        found = operations.sample_backward(Systems(*parameters), grad, spacing=ctx.options["spacing"], circle=circle)
        return *found, None, None, None
