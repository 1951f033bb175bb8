"""Selective scans: state-space modes whose step, input and output weights follow the input at every point.

    s[l] = decay[l] s[l-1] + drive[l],        decay = exp(step rate),    drive = (decay - 1) / rate * B x
    y[l] = 2 Re sum_n C[l] s[l],              rate = -damping - i frequency

With step, B and C the same at all points this is the zero-order hold of `ssno.ssm.discretise`, exactly. Here they are
functions of x[l] (`ssno.layers.selective`), so there is no kernel to convolve with: states are carried from point to
point. Only decays, of modulus at most one, are ever multiplied; no exponential of a summed logarithm is formed, which
would overflow float32 after a few strongly damped points. Damping > 0 keeps (decay - 1) / rate regular.

The backward pass is written by hand: a loop the other way for g = dL/ds, then products, point by point,

    g[l] = 2 y'[l] conj(C[l]) + conj(decay[l+1]) g[l+1]          (y' = dL/dy; complex gradients are dL/dRe + i dL/dIm)
    q = (g conj(s[l-1]) conj(rate) + g conj(B) x) conj(decay),      w = g conj(B gain),     gain = (decay - 1) / rate
    B' = g conj(gain) x      x' = sum_n Re w      step' = sum_n Re q      rate' = sum_lb (step q - w x) / conj(rate)

On a circle the state before the first point is the one after the last, s = final / (1 - product of all decays) with
`final` from zero; g goes round the other way.

Axes: l point, b line, h channel, n state mode (one per conjugate pair).
"""

from functools import partial
from typing import Any

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ssno.native.engine import plain
from ssno.native.operations import gradients
from ssno.ssm.discretise import one_minus_polar

States = Complex[Tensor, "l b h n"]


def carried_states(decay: States, drive: States, *, periodic: bool = False) -> States:
    """s[l] = decay[l] s[l-1] + drive[l], zero before the first point or, if `periodic`, what comes round again."""
    states = drive.clone()
    for l in range(1, len(states)):
        states[l].addcmul_(decay[l], states[l - 1])
    if periodic:
        before = states[-1] / (1 - decay.prod(dim=0))
        for l in range(len(states)):
            before = decay[l] * before
            states[l] += before
    return states


def decay_and_gain(step: Float[Tensor, "l b h"], rate: Complex[Tensor, "h n"]) -> tuple[States, States]:
    """exp(step rate) and (exp(step rate) - 1) / rate."""
    steps = step[..., None]
    log_decay, angle = rate.real * steps, rate.imag * steps
    gain = torch.complex(*one_minus_polar(log_decay, angle)) * (-1 / rate)
    return torch.polar(torch.exp(log_decay), angle), gain


def plain_response(
    x: Tensor, step: Tensor, rate: Tensor, input_weight: Tensor, output_weight: Tensor, *, periodic: bool
) -> Tensor:
    """The formula, written out."""
    decay, gain = decay_and_gain(step, rate)
    drive = gain * input_weight * x[..., None]
    states = [drive[0]]
    for fading, entered in zip(decay[1:].unbind(), drive[1:].unbind(), strict=True):
        states.append(fading * states[-1] + entered)
    if periodic:
        whole = decay[0]
        for fading in decay[1:].unbind():
            whole = whole * fading
        before = states[-1] / (1 - whole)
        for l, fading in enumerate(decay.unbind()):
            before = fading * before
            states[l] = states[l] + before
    return 2 * (output_weight * torch.stack(states)).real.sum(dim=-1)


class SelectiveResponse(torch.autograd.Function):
    """`selective_response`, with the backward pass of this module's top."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, step: Tensor, rate: Tensor, input_weight: Tensor, output_weight: Tensor, periodic: bool
    ) -> Tensor:
        decay, gain = decay_and_gain(step, rate)
        states = carried_states(decay, gain * input_weight * x[..., None], periodic=periodic)
        ctx.save_for_backward(x, step, rate, input_weight, output_weight, decay, gain, states)
        ctx.periodic = periodic
        return 2 * (output_weight * states).real.sum(dim=-1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, step, rate, input_weight, output_weight, decay, gain, states = ctx.saved_tensors
        if torch.is_grad_enabled():
            inputs = (x, step, rate, input_weight, output_weight)
            return *gradients(partial(plain_response, periodic=ctx.periodic), inputs, grad), None
        doubled, inputs, fading = 2 * grad[..., None], x[..., None], decay.conj().resolve_conj()
        turned = fading.roll(-1, dims=0).flip(0)
        flow = carried_states(turned, (doubled * output_weight.conj()).flip(0), periodic=ctx.periodic).flip(0)
        before = states.roll(1, dims=0)
        if not ctx.periodic:
            before[0] = 0
        felt = flow * input_weight.conj()
        through = felt * gain.conj()
        q = (flow * before.conj()).mul_(rate.conj()).add_(felt.mul_(inputs)).mul_(fading)
        to_rate = torch.einsum("lbh,lbhn->hn", step.to(q.dtype), q) - torch.einsum(
            "lbh,lbhn->hn", x.to(q.dtype), through
        )
        return (
            through.real.sum(dim=-1),
            q.real.sum(dim=-1),
            to_rate / rate.conj(),
            (flow * gain.conj()).mul_(inputs),
            doubled * states.conj(),
            None,
        )


def selective_response(
    x: Float[Tensor, "l b h"],
    step: Float[Tensor, "l b h"],
    *,
    damping: Float[Tensor, "h n"],
    frequency: Float[Tensor, "h n"],
    input_weight: Complex[Tensor, "l b #h n"],
    output_weight: Complex[Tensor, "l b #h n"],
    periodic: bool = False,
) -> Float[Tensor, "l b h"]:
    """2 Re sum_n C s for inputs x and steps of their own; `input_weight` is B, `output_weight` C."""
    input_weight, output_weight = (weight.expand(*x.shape, -1) for weight in (input_weight, output_weight))
    rate = torch.complex(-damping, -frequency)
    if plain():
        return plain_response(x, step, rate, input_weight, output_weight, periodic=periodic)
    return SelectiveResponse.apply(x, step, rate, input_weight, output_weight, periodic)


def inverse_softplus(value: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """b with softplus(b) = value, for positive values: value + log(1 - exp(-value)), without cancellation."""
    return value + torch.log(-torch.expm1(-value))
