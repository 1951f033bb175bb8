"""Apply state-space modes to lines, by whichever exact way is fastest.

    fused           multiply by a matrix built in cache, both directions at once, native code    (`ssno.ssm.fused`)
    toeplitz, fft   sample the kernel, then convolve                                       (`ssno.ssm.convolution`)
    chunked         never form the whole kernel: carry the states along                        (`ssno.ssm.chunked`)

The choice sits here, in `choose_scan`. It follows measurements: `benchmarks/short_axes.py` for the short end,
`benchmarks/long_axes.py` for the long one.

Axes: h channel, n state mode, l grid point, b line, d direction; o and i: what comes before and after the scanned axis.
"""

from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.native.engine import fused
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
from ssno.ssm.kernel import Boundary, kernel
from ssno.ssm.pairs import Pair, times

ScanMethod = Literal["auto", "fft", "toeplitz", "chunked", "fused"]
CHUNKED_FROM = 16_384
"""Number of points from which carrying states beats the FFT on an axis with zero boundary.

On a periodic axis it never did: there the FFT needs no padding, and the scan has to go round twice.
"""
FUSED_UP_TO = 256
"""Number of points up to which the fused engine multiplies by matrices."""


def choose_scan(
    length: int, lines: int, device: torch.device, *, boundary: Boundary = "zero", native: bool = False
) -> ScanMethod:
    """The fastest way for an axis of `length` points and so many lines; `native`: the fused engine is there."""
    if length >= CHUNKED_FROM and boundary == "zero":
        return "chunked"
    if native and length <= FUSED_UP_TO:
        return "fused"
    return choose_method(length, lines, device)


class Kernels(NamedTuple):
    """The taps of one scan, one kernel per direction; `ready` holds them as a matrix or a spectrum for repeated use."""

    taps: Float[Tensor, "d h _"]
    directions: tuple[Direction, ...]
    boundary: Boundary = "zero"
    ready: Tensor | None = None

    def prepared(self, lines: int) -> "Kernels":
        """The same, ready for many scans of so many lines each."""
        length, device = self.taps.shape[-1], self.taps.device
        method = choose_scan(length, lines, device, boundary=self.boundary, native=fused(self.taps))
        maker = {"toeplitz": stacked_matrices, "fft": stacked_spectra}.get(method)
        return self if maker is None else self._replace(ready=maker(self.taps, self.directions, self.periodic))

    @property
    def periodic(self) -> bool:
        return self.boundary != "zero"


def scan_kernels(
    x: Float[Tensor, "h o l i"], kernels: Kernels, *, method: ScanMethod = "auto"
) -> Float[Tensor, "h d o l i"]:
    """Convolve every line with its channel's taps, once per direction."""
    channels, outer, length, inner = x.shape
    taps, directions, boundary, ready = kernels
    if ready is not None:
        method = "fft" if ready.is_complex() else "toeplitz"
    elif method == "auto":
        method = choose_scan(length, outer * inner, x.device, boundary=boundary, native=fused(x, taps))
    if method == "fused":
        backward = sum(1 << d for d, direction in enumerate(directions) if direction == "backward")
        return fused_scan(x, taps, backward=backward, periodic=kernels.periodic)
    lines = x.transpose(1, 2).reshape(channels, length, outer * inner)
    if method == "toeplitz":
        matrices = stacked_matrices(taps, directions, kernels.periodic) if ready is None else ready
        scanned = multiply(matrices, lines)
    elif method == "fft":
        spectra = stacked_spectra(taps, directions, kernels.periodic) if ready is None else ready
        scanned = multiply_spectra(spectra, lines, periodic=kernels.periodic)
    else:
        raise ValueError(f"`method` must be 'auto', 'fft', 'toeplitz' or 'fused' where taps are given, got {method!r}.")
    return scanned.unflatten(3, (outer, inner)).transpose(2, 3)


def scan(
    modes: DiscreteModes,
    weight: Pair,
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
    taps = kernel(modes, times(weight, modes.gain), length=length, boundary=boundary)
    taps = torch.cat([taps[:, :1] + skip[:, None], taps[:, 1:]], dim=1)
    return convolve(x, taps, direction=direction, periodic=boundary != "zero", method=method)
