"""The gate after a scan as one Triton kernel, for GPUs: engine "triton" (`ssno.native.engine`).

    out = r x + sum_d a_d sigmoid(b_d),   (a_d; b_d) = W_d GELU(y_d) + bias_d

Each program holds all channels of some positions, so neither GELU(y) nor the product with W nor its halves are written
to memory: read are y, x and the weights, written is the result. The backward pass computes both again from y. Its
programs add up the gradients of weights over the positions that they take, and PyTorch adds up the programs, so every
sum has a fixed order. Features are float32 or bfloat16; products of bfloat16 are those of PyTorch, added in float32.

Nothing here has run on a GPU. Triton's interpreter (`TRITON_INTERPRET=1`) runs the same kernels on the CPU, where
tests/layers/test_triton_gate.py compares them with `ssno.layers.gate.plain_gate`. Until `ssno doctor --check` has found
this engine the fastest of those that agree with the reference, it is used only if asked for.

Axes: h channel, d direction, g = 2h gated channel, p position.
"""

from typing import Any

import torch
import triton  # comes with PyTorch's builds for CUDA
import triton.language as tl
from torch import Tensor

from ssno.layers.gate import plain_gate
from ssno.native.operations import gradients

POSITIONS, PROGRAMS = 64, 128
"""Positions that a program takes at a time, and programs of a backward pass for each direction."""


@triton.jit
def gelu(t):  # type: ignore[no-untyped-def]
    return 0.5 * t * (1 + tl.erf(t * 0.7071067811865476))


@triton.jit
def half(weight, bias, active, d, part, ch, H: tl.constexpr, LOW: tl.constexpr):  # type: ignore[no-untyped-def]
    """One half of W GELU(y) + bias, the weights that it took with it."""
    known = ch < H
    rows = (d * 2 + part) * H + ch
    w = tl.load(weight + rows[:, None] * H + ch[None, :], mask=known[:, None] & known[None, :], other=0.0)
    if LOW:
        w = w.to(tl.bfloat16).to(tl.float32)
    shift = tl.load(bias + rows, mask=known, other=0.0)
    # bfloat16 numbers are TF32 numbers, so their products on tensor cores are exact; float32 ones would be rounded.
    return tl.dot(w, active, input_precision="tf32" if LOW else "ieee") + shift[:, None], w


@triton.jit
def gate_kernel(  # type: ignore[no-untyped-def]
    y, weight, bias, residual, out, count, R, H: tl.constexpr, D: tl.constexpr, HB: tl.constexpr, PB: tl.constexpr,
    LOW: tl.constexpr,
):  # fmt: skip
    ch, p = tl.arange(0, HB), (tl.program_id(0) * PB + tl.arange(0, PB)).to(tl.int64)
    inside = (ch < H)[:, None] & (p < count)[None, :]
    here = ch.to(tl.int64)[:, None] * count + p[None, :]
    total = tl.zeros((HB, PB), tl.float32)
    if R != 0:
        total += R * tl.load(residual + here, mask=inside, other=0.0).to(tl.float32)
    for d in tl.static_range(D):
        there = (ch.to(tl.int64) * D + d)[:, None] * count + p[None, :]
        active = gelu(tl.load(y + there, mask=inside, other=0.0).to(tl.float32))
        if LOW:
            active = active.to(tl.bfloat16).to(tl.float32)
        a, _ = half(weight, bias, active, d, 0, ch, H, LOW)
        b, _ = half(weight, bias, active, d, 1, ch, H, LOW)
        total += a * tl.sigmoid(b)
    tl.store(out + here, total.to(out.dtype.element_ty), mask=inside)


@triton.jit
def gate_backward_kernel(  # type: ignore[no-untyped-def]
    y, weight, bias, grad, grad_y, sums, shifts, count, H: tl.constexpr, D: tl.constexpr, HB: tl.constexpr,
    PB: tl.constexpr, LOW: tl.constexpr,
):  # fmt: skip
    first, d, ch = tl.program_id(0), tl.program_id(1), tl.arange(0, HB)
    precision: tl.constexpr = "tf32" if LOW else "ieee"
    sum_a, sum_b = tl.zeros((HB, HB), tl.float32), tl.zeros((HB, HB), tl.float32)
    shift_a, shift_b = tl.zeros((HB,), tl.float32), tl.zeros((HB,), tl.float32)
    for tile in range(first, tl.cdiv(count, PB), tl.num_programs(0)):
        p = tl.cast(tile, tl.int64) * PB + tl.arange(0, PB)
        inside = (ch < H)[:, None] & (p < count)[None, :]
        there = (ch.to(tl.int64) * D + d)[:, None] * count + p[None, :]
        t = tl.load(y + there, mask=inside, other=0.0).to(tl.float32)
        upper = 0.5 * (1 + tl.erf(t * 0.7071067811865476))
        active = t * upper
        if LOW:
            active = active.to(tl.bfloat16).to(tl.float32)
        a, w_a = half(weight, bias, active, d, 0, ch, H, LOW)
        b, w_b = half(weight, bias, active, d, 1, ch, H, LOW)
        came = tl.load(grad + ch.to(tl.int64)[:, None] * count + p[None, :], mask=inside, other=0.0).to(tl.float32)
        openness = tl.sigmoid(b)
        grad_a = came * openness
        grad_b = grad_a * a * (1 - openness)
        shift_a += tl.sum(grad_a, axis=1)
        shift_b += tl.sum(grad_b, axis=1)
        if LOW:
            grad_a, grad_b = grad_a.to(tl.bfloat16).to(tl.float32), grad_b.to(tl.bfloat16).to(tl.float32)
        sum_a += tl.dot(grad_a, tl.trans(active), input_precision=precision)
        sum_b += tl.dot(grad_b, tl.trans(active), input_precision=precision)
        back = tl.dot(tl.trans(w_a), grad_a, input_precision=precision)
        back += tl.dot(tl.trans(w_b), grad_b, input_precision=precision)
        slope = upper + t * tl.exp(-0.5 * t * t) * 0.3989422804014327
        tl.store(grad_y + there, (back * slope).to(grad_y.dtype.element_ty), mask=inside)
    known = (ch < H)[:, None] & (ch < H)[None, :]
    rows = ((first * D + d) * 2 * H + ch).to(tl.int64)
    tl.store(sums + rows[:, None] * H + ch[None, :], sum_a, mask=known)
    tl.store(sums + (rows[:, None] + H) * H + ch[None, :], sum_b, mask=known)
    tl.store(shifts + rows, shift_a, mask=ch < H)
    tl.store(shifts + rows + H, shift_b, mask=ch < H)


class TritonGate(torch.autograd.Function):
    """`ssno.layers.gate.gate` in one kernel; kept for the backward pass are y and the weights."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None, times: int) -> Tensor:
        y, weight, bias = y.contiguous(), weight.contiguous(), bias.contiguous()
        ctx.save_for_backward(y, weight, bias)
        other, times = (y, 0) if residual is None else (residual.contiguous(), times)
        ctx.times, ctx.residual_dtype = times, other.dtype
        count = y.shape[2]
        out = y.new_empty(len(y), count, dtype=torch.promote_types(y.dtype, other.dtype))
        gate_kernel[(triton.cdiv(count, POSITIONS),)](y, weight, bias, other, out, count, times, **sizes(y))
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        y, weight, bias = ctx.saved_tensors
        back = (ctx.times * grad).to(ctx.residual_dtype) if ctx.needs_input_grad[3] else None
        if torch.is_grad_enabled():
            return *gradients(plain_gate, (y, weight, bias), grad), back, None
        programs = min(PROGRAMS, triton.cdiv(y.shape[2], POSITIONS))
        grad_y = torch.empty_like(y)
        sums = weight.new_empty(programs, *weight.shape, dtype=torch.float32)
        shifts = bias.new_empty(programs, *bias.shape, dtype=torch.float32)
        gate_backward_kernel[(programs, y.shape[1])](
            y, weight, bias, grad.contiguous(), grad_y, sums, shifts, y.shape[2], **sizes(y)
        )
        return grad_y, sums.sum(0).to(weight.dtype), shifts.sum(0).to(bias.dtype), back, None


def sizes(y: Tensor) -> dict[str, int | bool]:
    """What kernels are compiled for: channels and directions, the block that holds the channels, and the precision."""
    channels, directions, _ = y.shape
    block = max(16, triton.next_power_of_2(channels))
    return {"H": channels, "D": directions, "HB": block, "PB": POSITIONS, "LOW": y.dtype == torch.bfloat16}
