"""Learnable convolution in Fourier space: transform, weigh the lowest modes, transform back.

    y = irFFT[ W rFFT[x] ]          W: one complex matrix (or one number per channel) for each kept mode, zero elsewhere

Along the last axis a real transform keeps wavenumbers 0 ... m-1; along the others it keeps 0 ... m-1 and -m ... -1, so
d axes have 2^(d-1) corners of kept modes. One axis is the factorised layer of F-FNO, used through
`ssno.layers.axial.along`; all axes at once is the layer of FNO. How the transforms are scaled does not matter: the
factors cancel.

Weights are real tensors with a last axis (real, imaginary): they count double, and every optimiser and file takes them.
The imaginary weight of the mean (wavenumber zero on every axis) has no effect, because a real field has a real mean.

Axes: h channel in, g channel out, m mode, b line or frame.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

Initialise = Callable[[Tensor], object]


def positive_uniform(weight: Float[Tensor, "*shape channels 2"]) -> None:
    """FNO's start: uniform in [0, 1), real and imaginary part, over the square of the number of channels."""
    nn.init.uniform_(weight, 0.0, 1.0 / weight.shape[-2] ** 2)


def xavier_normal(weight: Float[Tensor, "corners modes g h 2"]) -> None:
    """F-FNO's start: normal, its variance counting modes and real and imaginary part as a receptive field."""
    _, modes, channels_out, channels_in, parts = weight.shape
    nn.init.normal_(weight, std=math.sqrt(2 / ((channels_in + channels_out) * modes * parts)))


class SpectralConvolution(nn.Module):
    """Convolve over all axes of a grid with kernels given by their lowest Fourier modes.

    Args:
        channels: number of channels h, in and out.
        n_modes: wavenumbers kept along each axis (of either sign, except along the last).
        axes: number of grid axes.
        mix: one matrix over channels per mode; False gives every channel its own kernel, as in FNO-R.
        initialise: fills the weight, (corners, *modes, g, h, 2) or without g.
    """

    def __init__(
        self, channels: int, *, n_modes: int, axes: int, mix: bool = True, initialise: Initialise = positive_uniform
    ):
        super().__init__()
        self.n_modes, self.axes, self.mix = n_modes, axes, mix
        matrix = (channels, channels) if mix else (channels,)
        self.weight = nn.Parameter(torch.empty(2 ** (axes - 1), *(n_modes,) * axes, *matrix, 2))
        initialise(self.weight)

    def forward(self, field: Float[Tensor, "h *grid b"]) -> Float[Tensor, "h *grid b"]:
        """Transform, weigh, transform back."""
        grid = field.shape[1:-1]
        require_points(grid, self.n_modes)
        dims = tuple(range(1, 1 + self.axes))
        spectrum = torch.fft.rfftn(field, dim=dims)
        weighed = torch.zeros_like(spectrum)
        low, high = slice(self.n_modes), slice(-self.n_modes, None)
        corners = itertools.product(*[(low, high)] * (self.axes - 1), (low,))
        for corner, weight in zip(corners, torch.view_as_complex(self.weight), strict=True):
            kept = spectrum[:, *corner].movedim(0, -2)  # *modes h b
            product = weight @ kept if self.mix else weight[..., None] * kept
            weighed[:, *corner] = product.movedim(-2, 0)
        return torch.fft.irfftn(weighed, s=grid, dim=dims)


def most_modes(grid: Sequence[int]) -> int:
    """How many wavenumbers per axis a grid carries, the Nyquist one left out."""
    return max(1, min(grid) // 2)


def require_points(grid: Sequence[int], n_modes: int) -> None:
    """Refuse a grid that carries fewer wavenumbers than a layer keeps."""
    if most_modes(grid) < n_modes:
        raise ValueError(
            f"`frames` has a grid of {' x '.join(map(str, grid))} points, but this model keeps n_modes = {n_modes} "
            f"wavenumbers per axis, which need at least {2 * n_modes} points. Give it a finer grid, or build it with "
            f"`n_modes={most_modes(grid)}` (`config.for_grid(grid)` does that)."
        )
