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
from torch.nn import functional

from ssno.native import operations
from ssno.native.engine import fused, plain
from ssno.native.operations import Systems, gradients
from ssno.ssm.discretise import (
    ComplexPair,
    DiscreteModes,
    as_pair,
    complex_mul,
    divide,
    exprel,
    exprel_slope,
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
    compiling = torch.compiler.is_dynamo_compiling()
    if length < 1 or not (compiling or (torch.is_grad_enabled() and not plain()) or _natively(systems)):
        return plain_kernels(*systems, length=length, spacing=spacing, boundary=boundary)
    if boundary in INFINITE_IMAGES:
        require_damping(torch.exp(systems.log_damping) * torch.exp(systems.log_step)[:, None])
    if torch.is_grad_enabled():
        return SampledKernels.apply(*systems, length, spacing, boundary)
    return _sampled(systems, length=length, spacing=spacing, boundary=boundary)


def _natively(systems: Systems) -> bool:
    return fused(*systems) and all(parameter.dtype == torch.float32 for parameter in systems)


def _sampled(systems: Systems, *, length: int, spacing: float, boundary: Boundary) -> Tensor:
    if _natively(systems):
        return operations.sample_forward(systems, length=length, spacing=spacing, circle=boundary in INFINITE_IMAGES)
    return plain_kernels(*systems, length=length, spacing=spacing, boundary=boundary)


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


def kernel_gradients(
    parameters: Systems, grad: Float[Tensor, "h l"], *, spacing: float, boundary: Boundary
) -> tuple[Tensor, ...]:
    """What `plain_kernels` passes back, in closed form: a tenth of the operations that autograd would make of it.

    A kernel depends on its modes through  sum_l grad[l] decay^l  and  sum_l l grad[l] decay^l  alone.
    """
    length = grad.shape[1]
    log_damping, frequency, log_step, packed_in, packed_out = precise(parameters, boundary)
    grad = grad.to(log_step.dtype)
    damping, step = torch.exp(log_damping), torch.exp(log_step)[:, None] * spacing
    input_weight, output_weight = as_pair(packed_in), as_pair(packed_out)
    modes = zero_order_hold(damping, frequency, step[:, 0])
    z = ComplexPair(-damping * step, -frequency * step)
    ratio = exprel(z)
    slope = exprel_slope(z, ratio)
    both = complex_mul(input_weight, output_weight)
    zeroth, first = moments(modes, grad)
    if boundary in INFINITE_IMAGES:  # weights are divided by 1 - decay^length, which depends on z too
        series = one_minus_polar(length * modes.log_decay, length * modes.angle)
        zeroth, first = divide(zeroth, series), divide(first, series)
        again = divide(complex_mul(ComplexPair(1 - series.re, -series.im), zeroth), series)
        first = ComplexPair(first.re + length * again.re, first.im + length * again.im)
    scaled = complex_mul(both, zeroth)
    by_ratio, by_slope = complex_mul(ratio, complex_mul(both, first)), complex_mul(slope, scaled)
    re, im = (2 * step * (a + b) for a, b in zip(by_ratio, by_slope, strict=True))  # of z: dL = Re((re + i im) dz)
    by_gain = 2 * (ratio.re * scaled.re - ratio.im * scaled.im)
    by_weight = complex_mul(ratio, zeroth)
    weights = ComplexPair(2 * step * by_weight.re, 2 * step * by_weight.im)
    found = (
        -step * re * damping,
        step * im,
        (step * (frequency * im - damping * re + by_gain)).sum(1),
        *(torch.stack([w.re, -w.im], dim=-1) for w in (complex_mul(weights, o) for o in (output_weight, input_weight))),
    )
    return tuple(part.to(parameter.dtype) for part, parameter in zip(found, parameters, strict=True))


def moments(modes: DiscreteModes, grad: Float[Tensor, "h l"]) -> tuple[ComplexPair, ComplexPair]:
    """sum_l grad[l] decay^l and sum_l l grad[l] decay^l of every mode, with powers factorised as in `kernel`."""
    fine_length = int(grad.shape[1] ** 0.5) + 1
    coarse_length = -(-grad.shape[1] // fine_length)
    rows = functional.pad(grad, (0, coarse_length * fine_length - grad.shape[1])).unflatten(1, (coarse_length, -1))
    place = torch.arange(fine_length, dtype=grad.dtype, device=grad.device)
    fine, coarse = powers(modes, fine_length), powers(modes, coarse_length, stride=fine_length)
    right = torch.cat([fine.re, fine.im], dim=1).transpose(1, 2)  # h b 2n
    sums = (torch.cat([rows, rows * place], dim=1) @ right).unflatten(2, (2, -1))  # h 2a (re, im) n
    plain, placed = (ComplexPair(*part.unbind(2)) for part in sums.chunk(2, dim=1))  # h a n
    start = fine_length * torch.arange(coarse_length, dtype=grad.dtype, device=grad.device)[:, None]
    coarse = ComplexPair(coarse.re.transpose(1, 2), coarse.im.transpose(1, 2))
    whole = ComplexPair(placed.re + start * plain.re, placed.im + start * plain.im)
    zeroth, first = complex_mul(coarse, plain), complex_mul(coarse, whole)
    return ComplexPair(zeroth.re.sum(1), zeroth.im.sum(1)), ComplexPair(first.re.sum(1), first.im.sum(1))


class SampledKernels(torch.autograd.Function):
    """`SampledKernels.apply(*parameters, length, spacing, boundary)`; keeps the parameters alone."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *parameters, length, spacing, boundary = given
        ctx.save_for_backward(*parameters)
        ctx.options = {"length": length, "spacing": spacing, "boundary": boundary}
        return _sampled(Systems(*parameters), **ctx.options)

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "h l"]) -> tuple[Tensor | None, ...]:
        parameters, options = Systems(*ctx.saved_tensors), ctx.options
        if torch.is_grad_enabled() and not torch.compiler.is_dynamo_compiling():
            return *gradients(partial(plain_kernels, **options), parameters, grad), None, None, None
        if _natively(parameters):
            circle = options["boundary"] in INFINITE_IMAGES
            native = operations.sample_backward(parameters, grad, spacing=options["spacing"], circle=circle)
            return *native, None, None, None
        closed = kernel_gradients(parameters, grad, spacing=options["spacing"], boundary=options["boundary"])
        return *closed, None, None, None
