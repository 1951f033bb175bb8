"""Apply state-space modes to lines, by whichever exact way is fastest.

    fused           multiply by a matrix built in cache, both directions at once, native code    (`ssno.ssm.scan`)
    toeplitz, fft   sample the kernel, then convolve                                       (`ssno.ssm.convolution`)
    chunked         never form the whole kernel: carry the states along                        (`ssno.ssm.recurrence`)

The choice sits here. It follows measurements: `benchmarks/short_axes.py` for the short end,
`benchmarks/long_axes.py` for the long one.

Axes: h channel, n state mode, l grid point, b line, d direction; o and i: what comes before and after the scanned axis.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.native import operations
from ssno.native.build import tiled
from ssno.native.engine import fused
from ssno.native.operations import gradients
from ssno.ssm.convolution import (
    Direction,
    choose_method,
    convolve,
    multiply,
    multiply_spectra,
    stacked_matrices,
    stacked_spectra,
)
from ssno.ssm.discretise import ComplexPair, DiscreteModes, complex_mul
from ssno.ssm.kernel import LINEAR_CONVOLUTION, Boundary, kernel
from ssno.ssm.recurrence import scan_chunked

# The native scan as an operation that autograd knows: y_d = kernel_d * x, keeping x and the kernels only.
#
# Axes: h channel, d direction, o what comes before the scanned axis, l grid point, i what comes after.

FEW_LINES = 8
"""Below this many lines a direct convolution is faster than building a matrix."""


def fused_scan(
    x: Float[Tensor, "h o l i"], kernels: Float[Tensor, "d h l"], *, backward: int, periodic: bool
) -> Float[Tensor, "h d o l i"]:
    """Scan along l with one kernel per direction; bit d of `backward` turns direction d round."""
    if torch.is_grad_enabled():
        return FusedScan.apply(x, kernels, backward, periodic)
    return computed_scan(x, kernels, backward=backward, periodic=periodic)


def computed_scan(x: Tensor, kernels: Tensor, *, backward: int, periodic: bool) -> Tensor:
    """By a matrix per channel, or directly for a few lines; tiles know by themselves."""
    few = x.shape[1] * x.shape[3] < FEW_LINES
    direct = few and (x.shape[2] > operations.LONGEST_SCAN or not tiled(x.dtype))
    return operations.scan_forward(x, kernels, backward=backward, periodic=periodic, direct=direct)


def plain_scan(x: Tensor, kernels: Tensor, *, backward: int, periodic: bool) -> Tensor:
    """The same written out: a product with the stacked matrices of all directions."""
    channels, outer, length, inner = x.shape
    turned: list[Direction] = ["backward" if backward >> d & 1 else "forward" for d in range(len(kernels))]
    lines = x.transpose(1, 2).reshape(channels, length, outer * inner)
    scanned = multiply(stacked_matrices(kernels, turned, periodic), lines)
    return scanned.unflatten(3, (outer, inner)).transpose(2, 3)


class FusedScan(torch.autograd.Function):
    """`FusedScan.apply(x, kernels, backward, periodic)`, where bit d of `backward` turns direction d round."""

    @staticmethod
    def forward(
        ctx: Any, x: Float[Tensor, "h o l i"], kernels: Float[Tensor, "d h l"], backward: int, periodic: bool
    ) -> Float[Tensor, "h d o l i"]:
        operations.check_length(x.shape[2])  # now, not after a forward pass for nothing
        ctx.save_for_backward(x, kernels)
        ctx.options = {"backward": backward, "periodic": periodic}
        return computed_scan(x, kernels, **ctx.options)

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "h d o l i"]) -> tuple[Tensor | None, ...]:
        x, kernels = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *gradients(partial(plain_scan, **ctx.options), (x, kernels), grad), None, None
        return *operations.scan_backward(x, kernels, grad, **ctx.options), None, None


# Apply state-space modes to lines, by whichever exact way is fastest.

ScanMethod = Literal["auto", "fft", "toeplitz", "chunked", "fused"]
"""How modes are applied to lines; `choose_scan` picks one."""
CHUNKED_FROM = 16_384
"""Number of points from which carrying states beats the FFT on an axis with zero boundary.

On a periodic axis it never did: there the FFT needs no padding, and the scan has to go round twice.
"""
FUSED_UP_TO = 256
"""Number of points up to which the fused engine multiplies by matrices."""


def carries_states(length: int, boundary: Boundary) -> bool:
    """Whether an axis is so long that its kernel is better never formed."""
    return length >= CHUNKED_FROM and boundary in LINEAR_CONVOLUTION


def choose_scan(length: int, lines: int, device: torch.device, *, boundary: Boundary = "zero") -> ScanMethod:
    """The fastest way for modes on an axis of `length` points and `lines` lines."""
    return "chunked" if carries_states(length, boundary) else choose_method(length, lines, device)


def choose_for_taps(taps: Float[Tensor, "d h l"], lines: int) -> ScanMethod:
    """The fastest way for a kernel that is already sampled."""
    length = taps.shape[-1]
    return "fused" if length <= FUSED_UP_TO and fused(taps) else choose_method(length, lines, taps.device)


def prepared_taps(
    taps: Float[Tensor, "d h l"], directions: Sequence[Direction], *, periodic: bool, lines: int
) -> Tensor | None:
    """Taps as the matrices or spectra that repeated scans of `lines` lines use; None if they use neither."""
    method = choose_for_taps(taps, lines)
    shortest = (128 if periodic else 512) if tiled(taps.dtype) else (64 if periodic else 256)
    if method == "fused" and taps.shape[-1] >= shortest and lines <= (128 if periodic else 32):
        method = "fft"  # with spectra at hand, faster than native code for so few lines
    maker = {"toeplitz": stacked_matrices, "fft": stacked_spectra}.get(method)
    return None if maker is None else maker(taps, directions, periodic)


def with_skip(
    kernel: Float[Tensor, "*systems h l"], skip: Float[Tensor, "*systems h"]
) -> Float[Tensor, "*systems h l"]:
    """Kernels with the skip added at distance zero: the taps of kernel * x + skip x."""
    return torch.cat([kernel[..., :1] + skip[..., None], kernel[..., 1:]], dim=-1)


def turned_round(directions: Sequence[Direction]) -> int:
    """Directions as native code takes them: bit d is set if direction d goes backwards."""
    return sum(1 << d for d, direction in enumerate(directions) if direction == "backward")


def scan_taps(
    x: Float[Tensor, "h o l i"],
    taps: Float[Tensor, "d h l"],
    directions: Sequence[Direction],
    *,
    periodic: bool = False,
    method: ScanMethod = "auto",
    matrix: Tensor | None = None,
) -> Float[Tensor, "h d o l i"]:
    """Convolve every line with its channel's taps, once per direction. `matrix` is what `prepared_taps` gave."""
    channels, outer, length, inner = x.shape
    if matrix is not None:
        method = "fft" if matrix.is_complex() else "toeplitz"
    elif method == "auto":
        method = choose_for_taps(taps, outer * inner)
    if method == "fused":
        return fused_scan(x, taps, backward=turned_round(directions), periodic=periodic)
    if x.dtype == torch.bfloat16 and taps.dtype != x.dtype:  # only native code multiplies such features
        whole = scan_taps(x.to(taps.dtype), taps, directions, periodic=periodic, method=method, matrix=matrix)
        return whole.to(x.dtype)
    lines = x.transpose(1, 2).reshape(channels, length, outer * inner)
    if method == "toeplitz":
        scanned = multiply(stacked_matrices(taps, directions, periodic) if matrix is None else matrix, lines)
    elif method == "fft":
        spectra = stacked_spectra(taps, directions, periodic) if matrix is None else matrix
        scanned = multiply_spectra(spectra, lines, periodic=periodic)
    else:
        raise ValueError(f"`method` must be 'auto', 'fft', 'toeplitz' or 'fused' where taps are given, got {method!r}.")
    return scanned.unflatten(3, (outer, inner)).transpose(2, 3)


def scan(
    modes: DiscreteModes,
    weight: ComplexPair,
    x: Float[Tensor, "h l b"],
    *,
    skip: Float[Tensor, " h"],
    direction: Direction = "forward",
    boundary: Boundary = "zero",
    method: ScanMethod = "auto",
) -> Float[Tensor, "h l b"]:
    """kernel * x + skip x for every line, the kernel being that of `modes` read out with `weight`."""
    length, lines = x.shape[1:]
    if method == "auto":
        method = choose_scan(length, lines, x.device, boundary=boundary)
    if method == "chunked":
        return torch.addcmul(
            scan_chunked(modes, weight, x, direction=direction, boundary=boundary), skip[:, None, None], x
        )
    if method not in ("fft", "toeplitz"):
        raise ValueError(f"`method` must be 'auto', 'fft', 'toeplitz' or 'chunked', got {method!r}.")
    taps = kernel(modes, complex_mul(weight, modes.gain), length=length, boundary=boundary)
    return convolve(
        x, with_skip(taps, skip), direction=direction, periodic=boundary not in LINEAR_CONVOLUTION, method=method
    )
