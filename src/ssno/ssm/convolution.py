"""Apply a kernel along an axis: the same linear map in several exact ways.

    causal       y[l] = sum_{m <= l} kernel[l - m] x[m]          direction="forward"
    anti-causal  y[l] = sum_{m >= l} kernel[m - l] x[m]          direction="backward"
    circular     indices modulo the length                        periodic=True
    each way     several kernels on the same lines, each with its direction

`method` is "toeplitz" (one matrix product per channel: fastest for short axes and many lines), "fft" (for long axes and
few lines) or "auto". The recurrence that defines the result, and its streaming form, live in `ssno.ssm.recurrence`.

Axes: h channel, d direction, l grid point, b line (everything the map does not touch). Lines come last: that is the
layout in which the matrix product needs no copy.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Complex, Float
from torch import Tensor

Direction = Literal["forward", "backward"]
"""Which side of a point its output depends on: before it, or after it."""
ConvolutionMethod = Literal["auto", "fft", "toeplitz"]
"""How kernels are applied: whichever is faster, by Fourier transform, or as a matrix."""


def choose_method(length: int, lines: int, device: torch.device) -> ConvolutionMethod:
    """The measured crossover (benchmarks/short_axes.py): a matrix product up to 256 points if enough lines share it.

    On a CPU a matrix is read once per call, so a handful of lines cannot pay for it. Other devices follow the same rule
    until somebody measures there.
    """
    enough_lines = lines >= (16 if device.type == "cpu" else 1)
    return "toeplitz" if length <= 256 and enough_lines else "fft"


def convolve(
    x: Float[Tensor, "h l b"],
    kernel: Float[Tensor, "h l"],
    *,
    direction: Direction = "forward",
    periodic: bool = False,
    method: ConvolutionMethod = "auto",
) -> Float[Tensor, "h l b"]:
    """Convolve every line with its channel's kernel, in one direction."""
    return convolve_each_way(x, kernel[None], directions=(direction,), periodic=periodic, method=method)[:, 0]


def convolve_each_way(
    x: Float[Tensor, "h l b"],
    kernels: Float[Tensor, "d h l"],
    *,
    directions: Sequence[Direction] = ("forward", "backward"),
    periodic: bool = False,
    method: ConvolutionMethod = "auto",
) -> Float[Tensor, "h d l b"]:
    """Convolve every line with several kernels, each in its direction: x is read, or transformed, once for all."""
    length, lines = x.shape[1:]
    if method == "auto":
        method = choose_method(length, lines, x.device)
    if method == "toeplitz":
        return multiply(stacked_matrices(kernels, directions, periodic), x)
    if method == "fft":
        return multiply_spectra(stacked_spectra(kernels, directions, periodic), x, periodic=periodic)
    raise ValueError(f"`method` must be 'auto', 'fft' or 'toeplitz', got {method!r}.")


def stacked_matrices(
    kernels: Float[Tensor, "d h l"], directions: Sequence[Direction], periodic: bool
) -> Float[Tensor, "h dl l"]:
    """The matrices of all directions, one below the other."""
    pairs = zip(kernels, directions, strict=True)
    return torch.cat([toeplitz(kernel, direction=direction, periodic=periodic) for kernel, direction in pairs], dim=1)


def multiply(matrices: Float[Tensor, "h dl l"], x: Float[Tensor, "h l b"]) -> Float[Tensor, "h d l b"]:
    """Apply stacked matrices to every line."""
    return (matrices @ x).unflatten(1, (-1, x.shape[1]))


def stacked_spectra(
    kernels: Float[Tensor, "d h l"], directions: Sequence[Direction], periodic: bool
) -> Complex[Tensor, "h d f"]:
    """The spectra of all directions, of kernels padded with zeros to twice the length unless the axis is periodic."""
    spectra = torch.fft.rfft(kernels, n=kernels.shape[-1] * (1 if periodic else 2))
    turned = [s if direction == "forward" else s.conj() for s, direction in zip(spectra, directions, strict=True)]
    return torch.stack(turned, dim=1)


def multiply_spectra(
    spectra: Complex[Tensor, "h d f"], x: Float[Tensor, "h l b"], *, periodic: bool
) -> Float[Tensor, "h d l b"]:
    """Transform every line once, multiply by all spectra, transform back."""
    length = x.shape[1]
    padded = length * (1 if periodic else 2)
    spectrum = torch.fft.rfft(x.transpose(1, 2), n=padded)  # h b f
    filtered = torch.fft.irfft(spectrum[:, None] * spectra[:, :, None], n=padded)
    return filtered[..., :length].transpose(2, 3)


def toeplitz(
    kernel: Float[Tensor, "h l"], *, direction: Direction = "forward", periodic: bool = False
) -> Float[Tensor, "h l l"]:
    """The matrix of the convolution: entry (i, j) is kernel[i - j] forwards, kernel[j - i] backwards.

    Built by repeating one row of twice the length and reading it back with rows one shorter, so that each row is the
    previous one shifted: no index arithmetic, and autograd sums the diagonals by the same trick run backwards.
    """
    channels, length = kernel.shape
    first, rest = kernel[:, :1], kernel[:, 1:]
    gap = kernel.new_zeros(channels, length)
    row = {  # entry (j - i) modulo 2 length
        ("forward", False): [first, gap, rest.flip(1)],
        ("backward", False): [kernel, gap],
        ("forward", True): [first, rest.flip(1), first, rest.flip(1)],
        ("backward", True): [kernel, kernel],
    }.get((direction, periodic))
    if row is None:
        raise ValueError(f"`direction` must be 'forward' or 'backward', got {direction!r}.")
    repeated = torch.cat(row, dim=1)[:, None].expand(-1, length, -1).reshape(channels, -1)  # h (l 2l)
    return repeated[:, : length * (2 * length - 1)].view(channels, length, 2 * length - 1)[:, :, :length]
