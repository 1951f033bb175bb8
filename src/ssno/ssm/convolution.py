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
from typing import Any, Literal, get_args

import torch
from jaxtyping import Complex, Float
from torch import Tensor
from torch.nn import functional

from ssno.base.checks import require_one_of

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
    """The matrices of all directions, one below the other: entry (i, j) is kernel[i - j] forwards, kernel[j - i] back.

    A matrix from its last row to its first has entry (i, j) at place i + j of one line of 2 l - 1 numbers, so rows are
    read from there: no index arithmetic, which compilers neither simplify nor vectorise.
    """
    lines = [_diagonals(kernel, way, periodic) for kernel, way in zip(kernels, directions, strict=True)]
    rows = ShiftedRows.apply if torch.compiler.is_dynamo_compiling() else shifted_rows
    return rows(torch.stack(lines, dim=1)).flatten(1, 2)


def _diagonals(kernel: Float[Tensor, "h l"], direction: Direction, periodic: bool) -> Float[Tensor, "h m"]:
    """The m = 2 l - 1 numbers of a matrix, from the left end of its last row to the right end of its first."""
    require_one_of("direction", direction, get_args(Direction))
    turned, gap = kernel.flip(1), kernel.new_zeros(len(kernel), kernel.shape[1] - 1)
    if direction == "forward":
        return torch.cat([turned, turned[:, :-1] if periodic else gap], dim=1)
    return torch.cat([kernel[:, 1:] if periodic else gap, kernel], dim=1)


def shifted_rows(line: Float[Tensor, "h d m"]) -> Float[Tensor, "h d l l"]:
    """Matrices whose row i is `line[l - 1 - i : 2 l - 1 - i]`."""
    return line.unfold(2, (line.shape[2] + 1) // 2, 1).flip(2)


class ShiftedRows(torch.autograd.Function):
    """`shifted_rows` for compilers, whose own gradient would add number by number; this one sums diagonals."""

    @staticmethod
    def forward(ctx: Any, line: Float[Tensor, "h d m"]) -> Float[Tensor, "h d l l"]:
        return shifted_rows(line)

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "h d l l"]) -> Float[Tensor, "h d m"]:
        channels, count, length, _ = grad.shape
        padded = functional.pad(grad.flip(2), (0, length))  # rows of 2 l, read as rows of 2 l - 1
        area = 2 * length * length
        strides = (count * area, area, 2 * length - 1, 1)
        return padded.as_strided((channels, count, length, 2 * length - 1), strides).sum(2)


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
    """The matrix of one convolution: entry (i, j) is kernel[i - j] forwards, kernel[j - i] backwards."""
    return stacked_matrices(kernel[None], (direction,), periodic)
