"""From the parameters of diagonal systems to their sampled kernels, by zero-order hold, in one operation.

    kernel[h, l] = 2 Re sum_n entering leaving gain decay^l

Written out (`plain_kernels`) this is some forty small operations and a hundred more to differentiate them, which do not
shrink with the batch; native code (`sampling.cpp`) does either way in one call, in double precision per mode.

Axes: h channel, n state mode, l grid point.
"""

from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.native import operations
from ssno.native.engine import fused
from ssno.native.twice import gradients
from ssno.ssm.discretise import zero_order_hold
from ssno.ssm.kernel import CIRCLES, Boundary, kernel, require_damping
from ssno.ssm.pairs import pair, times


def sampled_kernels(
    log_damping: Float[Tensor, "h n"],
    frequency: Float[Tensor, "h n"],
    log_step: Float[Tensor, " h"],
    entering: Float[Tensor, "h n 2"],
    leaving: Float[Tensor, "h n 2"],
    *,
    length: int,
    spacing: float = 1.0,
    boundary: Boundary = "zero",
) -> Float[Tensor, "h l"]:
    """Kernels on `length` points that lie `spacing` apart, input gain included."""
    parameters = (log_damping, frequency, log_step, entering, leaving)
    if length < 1 or not fused(*parameters) or any(p.dtype != torch.float32 for p in parameters):
        return plain_kernels(*parameters, length=length, spacing=spacing, boundary=boundary)
    if boundary in CIRCLES:
        require_damping(torch.exp(log_damping) * torch.exp(log_step)[:, None])
    if torch.is_grad_enabled():
        return SampledKernels.apply(*parameters, length, spacing, boundary)
    return operations.sample_forward(*parameters, length=length, spacing=spacing, circle=boundary in CIRCLES)


def plain_kernels(
    log_damping: Tensor,
    frequency: Tensor,
    log_step: Tensor,
    entering: Tensor,
    leaving: Tensor,
    *,
    length: int,
    spacing: float,
    boundary: Boundary,
) -> Tensor:
    """The formula, written out."""
    modes = zero_order_hold(torch.exp(log_damping), frequency, torch.exp(log_step) * spacing)
    weight = times(pair(entering), pair(leaving))
    return kernel(modes, times(weight, modes.gain), length=length, boundary=boundary)


class SampledKernels(torch.autograd.Function):
    """`SampledKernels.apply(*parameters, length, spacing, boundary)`; keeps the parameters alone."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *parameters, length, spacing, boundary = given
        ctx.save_for_backward(*parameters)
        ctx.options = {"length": length, "spacing": spacing, "boundary": boundary}
        return operations.sample_forward(*parameters, length=length, spacing=spacing, circle=boundary in CIRCLES)

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "h l"]) -> tuple[Tensor | None, ...]:
        parameters: tuple[Tensor, ...] = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *gradients(partial(plain_kernels, **ctx.options), parameters, grad), None, None, None
        circle = ctx.options["boundary"] in CIRCLES
        found = operations.sample_backward(*(*parameters, grad), spacing=ctx.options["spacing"], circle=circle)
        return *found, None, None, None
