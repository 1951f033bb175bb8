"""Apply state-space modes to lines, by whichever exact way is fastest.

    fused           multiply by a matrix built in cache, both directions at once, native code    (`ssno.ssm.fused`)
    toeplitz, fft   sample the kernel, then convolve                                       (`ssno.ssm.convolution`)
    chunked         never form the whole kernel: carry the states along                        (`ssno.ssm.chunked`)

The choice sits here. It follows measurements: `benchmarks/short_axes.py` for the short end,
`benchmarks/long_axes.py` for the long one.

Axes: h channel, n state mode, l grid point, b line, d direction; o and i: what comes before and after the scanned axis.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.native.engine import fused
from ssno.native.library import tiled
from ssno.ssm.chunked import scan_chunked
from ssno.ssm.convolution import (
    Direction,
    choose_method,
    convolve,
    multiply,
    multiply_spectra,
    stacked_matrices,
    stacked_spectra,
)
from ssno.ssm.discretise import DiscreteModes
from ssno.ssm.fused import fused_scan
from ssno.ssm.kernel import ENDS, Boundary, kernel
from ssno.ssm.pairs import ComplexPair, complex_mul

ScanMethod = Literal["auto", "fft", "toeplitz", "chunked", "fused"]
CHUNKED_FROM = 16_384
"""Number of points from which carrying states beats the FFT on an axis with zero boundary.

On a periodic axis it never did: there the FFT needs no padding, and the scan has to go round twice.
"""
FUSED_UP_TO = 256
"""Number of points up to which the fused engine multiplies by matrices."""


def carries_states(length: int, boundary: Boundary) -> bool:
    """Whether an axis is so long that its kernel is better never formed."""
    return length >= CHUNKED_FROM and boundary in ENDS


def choose_scan(length: int, lines: int, device: torch.device, *, boundary: Boundary = "zero") -> ScanMethod:
    """The fastest way for modes on an axis of `length` points and so many lines."""
    return "chunked" if carries_states(length, boundary) else choose_method(length, lines, device)


def choose_for_taps(taps: Float[Tensor, "d h l"], lines: int) -> ScanMethod:
    """The fastest way for a kernel that is already sampled."""
    length = taps.shape[-1]
    return "fused" if length <= FUSED_UP_TO and fused(taps) else choose_method(length, lines, taps.device)


def prepared_taps(
    taps: Float[Tensor, "d h l"], directions: Sequence[Direction], *, periodic: bool, lines: int
) -> Tensor | None:
    """Taps as the matrices or spectra that many scans of so many lines each would use; None if they use neither."""
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
    return convolve(x, with_skip(taps, skip), direction=direction, periodic=boundary not in ENDS, method=method)
