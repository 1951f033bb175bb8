"""Apply a kernel along an axis: the same linear map in several exact ways.

    causal       y[l] = sum_{m <= l} kernel[l - m] x[m]          direction="forward"
    anti-causal  y[l] = sum_{m >= l} kernel[m - l] x[m]          direction="backward"
    circular     indices modulo the length                        periodic=True
    two-way      causal with one kernel plus anti-causal with another

`method` is "toeplitz" (one matrix product per channel: fastest for short axes and many lines), "fft" (for long axes and
few lines) or "auto". The recurrence that defines the result, and its streaming form, live in `ssno.ssm.recurrence`.

Axes: h channel, l grid point, b line (everything the map does not touch). Lines come last: that is the layout in
which the matrix product needs no copy.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Direction = Literal["forward", "backward"]
Method = Literal["auto", "fft", "toeplitz"]


def choose_method(length: int, lines: int, device: torch.device) -> Method:
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
    method: Method = "auto",
) -> Float[Tensor, "h l b"]:
    """Convolve every line with its channel's kernel, in one direction."""
    length, lines = x.shape[1:]
    if method == "auto":
        method = choose_method(length, lines, x.device)
    if method == "toeplitz":
        return toeplitz(kernel, direction=direction, periodic=periodic) @ x
    if method == "fft":
        transform_length = length if periodic else 2 * length
        spectrum = torch.fft.rfft(kernel, n=transform_length)
        return _filter(x, spectrum if direction == "forward" else spectrum.conj(), transform_length)
    raise ValueError(f"`method` must be 'auto', 'fft' or 'toeplitz', got {method!r}.")


def convolve_two_way(
    x: Float[Tensor, "h l b"],
    ahead: Float[Tensor, "h l"],
    back: Float[Tensor, "h l"],
    *,
    periodic: bool = False,
    method: Method = "auto",
) -> Float[Tensor, "h l b"]:
    """Causal convolution with `ahead` plus anti-causal convolution with `back`, for the price of one."""
    length, lines = x.shape[1:]
    if method == "auto":
        method = choose_method(length, lines, x.device)
    if method == "toeplitz":
        matrix = toeplitz(ahead, direction="forward", periodic=periodic)
        return (matrix + toeplitz(back, direction="backward", periodic=periodic)) @ x
    if method == "fft":
        transform_length = length if periodic else 2 * length
        spectrum = torch.fft.rfft(ahead, n=transform_length) + torch.fft.rfft(back, n=transform_length).conj()
        return _filter(x, spectrum, transform_length)
    raise ValueError(f"`method` must be 'auto', 'fft' or 'toeplitz', got {method!r}.")


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


def _filter(x: Float[Tensor, "h l b"], spectrum: Tensor, transform_length: int) -> Float[Tensor, "h l b"]:
    """Multiply the spectrum of every line. Lines are brought innermost-last for the transform and back."""
    lines = x.transpose(1, 2)  # h b l
    filtered = torch.fft.irfft(torch.fft.rfft(lines, n=transform_length) * spectrum[:, None], n=transform_length)
    return filtered[..., : x.shape[1]].transpose(1, 2)
