"""From the parameters of diagonal systems to their sampled kernels, by zero-order hold, in one operation.

    kernel[h, l] = 2 Re sum_n entering leaving gain decay^l

Written out (`plain_kernels`) this is some forty small operations and a hundred more to differentiate them, which do not
shrink with the batch; native code (`sampling.cpp`) does either way in one call, in double precision per mode.

Axes: h channel, n state mode, l grid point.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.native import operations
from ssno.native.engine import fused
from ssno.native.operations import Systems
from ssno.native.twice import gradients
from ssno.ssm.discretise import zero_order_hold
from ssno.ssm.kernel import CIRCLES, Boundary, kernel, require_damping
from ssno.ssm.pairs import as_pair, complex_mul


def sampled_kernels(
    systems: Systems, *, length: int, spacing: float = 1.0, boundary: Boundary = "zero"
) -> Float[Tensor, "h l"]:
    """Kernels on `length` points that lie `spacing` apart, input gain included."""
    if length < 1 or not fused(*systems) or any(parameter.dtype != torch.float32 for parameter in systems):
        return plain_kernels(*systems, length=length, spacing=spacing, boundary=boundary)
    if boundary in CIRCLES:
        require_damping(torch.exp(systems.log_damping) * torch.exp(systems.log_step)[:, None])
    if torch.is_grad_enabled():
        return SampledKernels.apply(*systems, length, spacing, boundary)
    return operations.sample_forward(systems, length=length, spacing=spacing, circle=boundary in CIRCLES)


def plain_kernels(*parameters: Tensor, length: int, spacing: float, boundary: Boundary) -> Tensor:
    """The formula, written out, of the parameters one by one."""
    log_damping, frequency, log_step, entering, leaving = precise(parameters, boundary)
    modes = zero_order_hold(torch.exp(log_damping), frequency, torch.exp(log_step) * spacing)
    weight = complex_mul(as_pair(entering), as_pair(leaving))
    found = kernel(modes, complex_mul(weight, modes.gain), length=length, boundary=boundary)
    return found.to(parameters[0].dtype)


def precise(parameters: Sequence[Tensor], boundary: Boundary) -> list[Tensor]:
    """Parameters in double precision, where images are summed and the device knows it.

    Gain and images of a slow mode both follow its step, and their derivatives all but cancel: in single precision
    nothing is left of the step's gradient.
    """
    needed = boundary in CIRCLES and parameters[0].device.type != "mps"
    return [parameter.double() if needed else parameter for parameter in parameters]


class SampledKernels(torch.autograd.Function):
    """`SampledKernels.apply(*parameters, length, spacing, boundary)`; keeps the parameters alone."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *parameters, length, spacing, boundary = given
        ctx.save_for_backward(*parameters)
        ctx.options = {"length": length, "spacing": spacing, "boundary": boundary}
        return operations.sample_forward(
            Systems(*parameters), length=length, spacing=spacing, circle=boundary in CIRCLES
        )

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "h l"]) -> tuple[Tensor | None, ...]:
        parameters = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *gradients(partial(plain_kernels, **ctx.options), parameters, grad), None, None, None
        circle = ctx.options["boundary"] in CIRCLES
        found = operations.sample_backward(Systems(*parameters), grad, spacing=ctx.options["spacing"], circle=circle)
        return *found, None, None, None
