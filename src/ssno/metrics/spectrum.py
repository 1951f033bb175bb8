"""Energy by scale: how much of a field lives at each wavenumber.

    E(k) = sum over modes with |k| in the shell around k of  |u_k|^2 / N^2,     N number of grid points

so that the sum over all shells is the mean square of the field (Parseval). Shells are as wide as the smallest
wavenumber of the axes, 2 pi / length; the first holds the mean. Axes should be periodic.

Axes: b trajectory, t frame, c field, s shell.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base.device import float64
from ssno.base.multiples import in_units
from ssno.metrics.spectral import half_spectrum_weights


def energy_spectrum(
    fields: Float[Tensor, "b t c *grid"], *, spacing: Sequence[float | int]
) -> tuple[Float[Tensor, " s"], Float[Tensor, "b t c s"]]:
    """Wavenumbers (radians per length) of the shells up to the smallest Nyquist wavenumber, and their energies."""
    grid = fields.shape[3:]
    if len(spacing) != len(grid):
        raise ValueError(f"`spacing` must have one number per axis of the grid {tuple(grid)}, got {tuple(spacing)}.")
    lengths = [points * step for points, step in zip(grid, spacing, strict=True)]
    width = 2 * math.pi / max(lengths)
    fields = float64(fields)
    dtype, device = fields.dtype, fields.device
    square = torch.zeros((), dtype=dtype, device=device)
    for axis, (points, step) in enumerate(zip(grid, spacing, strict=True)):
        frequency = torch.fft.rfftfreq if axis == len(grid) - 1 else torch.fft.fftfreq
        square = (
            square[..., None] + (2 * math.pi * frequency(points, d=float(step), dtype=dtype, device=device)).square()
        )
    shell = (square.sqrt() / width).round().long().flatten()
    dims = tuple(range(3, fields.ndim))
    power = torch.fft.rfftn(fields, dim=dims).abs().square() * half_spectrum_weights(grid[-1], device=device)
    energy = torch.zeros(*fields.shape[:3], int(shell.max()) + 1, dtype=dtype, device=device)
    energy.index_add_(3, shell, power.flatten(3) / math.prod(grid) ** 2)
    shells = int(in_units(math.pi / max(spacing), width)) + 1
    return width * torch.arange(shells, dtype=dtype, device=device), energy[..., :shells]
