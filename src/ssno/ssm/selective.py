"""Selective scans: state-space modes whose step, input and output weights follow the input at every point.

    s[l] = decay[l] s[l-1] + drive[l],        decay = exp(step rate),    drive = (decay - 1) / rate * B x
    y[l] = 2 Re sum_n C[l] s[l],              rate = -damping - i frequency

With step, B and C the same at all points this is the zero-order hold of `ssno.ssm.discretise`, exactly. Here they are
functions of x[l] (`ssno.layers.selective`), so there is no kernel to convolve with: states are carried from point to
point. Only decays, of modulus at most one, are ever multiplied; no exponential of a summed logarithm is formed, which
would overflow float32 after a few strongly damped points. Damping > 0 keeps (decay - 1) / rate regular.

The loop keeps its states and has a backward pass of its own, a loop the other way:

    g[l] = dL/ds[l] = direct[l] + conj(decay[l+1]) g[l+1],   dL/d drive[l] = g[l],   dL/d decay[l] = g[l] conj(s[l-1])

Axes: l point, b line, h channel, n state mode (one per conjugate pair).
"""

from typing import Any

import torch
from jaxtyping import Complex, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from ssno.ssm.pairs import one_minus_polar

States = Complex[Tensor, "l b h n"]


class _CarriedStates(torch.autograd.Function):
    """s[l] = decay[l] s[l-1] + drive[l] from s[-1] = 0."""

    @staticmethod
    def forward(ctx: Any, decay: Tensor, drive: Tensor) -> Tensor:
        states = drive.clone()
        for l in range(1, len(states)):
            states[l].addcmul_(decay[l], states[l - 1])
        ctx.save_for_backward(decay, states)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        decay, states = ctx.saved_tensors
        conjugate = decay.conj().resolve_conj()
        flow = grad.clone()
        for l in range(len(flow) - 2, -1, -1):
            flow[l].addcmul_(conjugate[l + 1], flow[l + 1])
        to_decay = torch.zeros_like(decay)
        torch.mul(flow[1:], states[:-1].conj(), out=to_decay[1:])
        return to_decay, flow


def carried_states(decay: States, drive: States, *, periodic: bool = False) -> States:
    """The states of the recurrence, zero before the first point or, if `periodic`, those that come round again.

    On a circle the state before the first point is the one after the last: s = final / (1 - product of all decays),
    `final` being what the line gives from zero. It enters as one more drive of the first point.
    """
    states: Tensor = _CarriedStates.apply(decay, drive)
    if not periodic:
        return states
    before = states[-1] / (1 - decay.prod(dim=0))
    return _CarriedStates.apply(decay, torch.cat([drive[:1] + decay[:1] * before, drive[1:]]))


def selective_response(
    x: Float[Tensor, "l b h"],
    step: Float[Tensor, "l b h"],
    *,
    damping: Float[Tensor, "h n"],
    frequency: Float[Tensor, "h n"],
    entering: Complex[Tensor, "l b #h n"],
    leaving: Complex[Tensor, "l b #h n"],
    periodic: bool = False,
) -> Float[Tensor, "l b h"]:
    """2 Re sum_n C s for inputs x and steps of their own; `entering` and `leaving` are the weights B and C."""
    steps = step[..., None]
    log_decay, angle = -damping * steps, -frequency * steps
    decay = torch.polar(torch.exp(log_decay), angle)
    short = one_minus_polar(log_decay, angle)
    gain = torch.complex(*short) / torch.complex(damping, frequency)  # (1 - decay) / -rate
    states = carried_states(decay, gain * (entering * x[..., None]), periodic=periodic)
    return 2 * (leaving * states).real.sum(dim=-1)


def inverse_softplus(value: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """b with softplus(b) = value, for positive values: value + log(1 - exp(-value)), without cancellation."""
    return value + torch.log(-torch.expm1(-value))
