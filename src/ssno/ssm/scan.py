"""Apply state-space modes to lines, by whichever exact way is fastest.

    toeplitz, fft   sample the kernel, then convolve                       (`ssno.ssm.convolution`)
    chunked         never form the whole kernel: carry the states along    (`ssno.ssm.chunked`)

The choice sits here because this is where both the modes and the lines are known. It follows measurements:
`benchmarks/long_axes.py` for the long end, `benchmarks/short_axes.py` for the short one.

Axes: h channel, n state mode, l grid point, b line.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.ssm.chunked import scan_chunked
from ssno.ssm.convolution import Direction, choose_method, convolve
from ssno.ssm.discretise import DiscreteModes
from ssno.ssm.kernel import Boundary, kernel
from ssno.ssm.pairs import Pair, times

ScanMethod = Literal["auto", "fft", "toeplitz", "chunked"]
CHUNKED_FROM = 16_384
"""Number of points from which carrying states beats the FFT on an axis with zero boundary.

On a periodic axis it never did: there the FFT needs no padding, and the scan has to go round twice.
"""


def choose_scan(length: int, lines: int, device: torch.device, *, boundary: Boundary = "zero") -> ScanMethod:
    """The fastest way for an axis of `length` points and so many lines."""
    if length >= CHUNKED_FROM and boundary == "zero":
        return "chunked"
    return choose_method(length, lines, device)


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
