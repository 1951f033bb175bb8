"""Errors by scale: the error of a band of wavenumbers relative to what the truth has in that band.

    error(band) = sqrt( sum |p_k - u_k|^2 / sum |u_k|^2 ),   sums over wavenumbers k of the band, frames and fields,

with p_k, u_k the Fourier coefficients of prediction and truth. Wavenumbers are isotropic, |k|^2 = kx^2 + ky^2 + kz^2,
measured as fractions of the smallest Nyquist wavenumber of the axes. Modes beyond it (the corners of a square) count to
the band that reaches to infinity. By default the range is cut into thirds: low, mid, high; k = 0, the mean, is low. One
band over everything gives `rel_l2` (Parseval).

A band in which the truth has less than 1e-6 of its norm holds rounding errors only; it is divided by that instead.
Axes should be periodic: a jump between the two ends of an axis has a spectrum of its own.

Axes: b trajectory, t frame, c field.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base.checks import in_units
from ssno.base.device import device_with_float64, float64
from ssno.forecasting.metrics import over

Band = tuple[float | int, float | int]
THIRDS: Mapping[str, Band] = {"low": (0, 1 / 3), "mid": (1 / 3, 2 / 3), "high": (2 / 3, math.inf)}
NEGLIGIBLE = 1e-6


def spectral_errors(
    prediction: Float[Tensor, "b t c *grid"],
    truth: Float[Tensor, "b t c *grid"],
    *,
    bands: Mapping[str, Band] = THIRDS,
    spacing: Sequence[float | int] | None = None,
) -> dict[str, Float[Tensor, " b"]]:
    """The relative error of each trajectory in each band [lower, upper), as fractions of the Nyquist wavenumber.

    `spacing` is the distance between points along each axis; without it the axes count as equally fine.
    """
    for name, (lower, upper) in bands.items():
        if not 0 <= lower < upper:
            raise ValueError(f"Band {name!r} must be (lower, upper) with 0 <= lower < upper, got {(lower, upper)}.")
    grid = truth.shape[3:]
    if spacing is not None and len(spacing) != len(grid):
        raise ValueError(f"`spacing` must have one number per axis of the grid {tuple(grid)}, got {tuple(spacing)}.")
    device = device_with_float64(truth.device)
    fraction = wavenumbers(grid, spacing=spacing, device=device)
    weight = half_spectrum_weights(grid[-1], device=device)
    dims = tuple(range(3, truth.ndim))

    def power(field: Tensor) -> Tensor:  # b *modes, summed over frames and fields
        return torch.fft.rfftn(float64(field), dim=dims).abs().square().sum((1, 2)) * weight

    wrong, true = power(prediction - truth), power(truth)
    whole = true.flatten(1).sum(1).sqrt()
    errors = {}
    for name, (lower, upper) in bands.items():
        inside = (fraction >= lower) & (fraction < upper)
        scale = true[:, inside].sum(1).sqrt().maximum(NEGLIGIBLE * whole)
        errors[name] = over(wrong[:, inside].sum(1).sqrt(), scale)
    return errors


def wavenumbers(
    grid: Sequence[int], *, spacing: Sequence[float | int] | None = None, device: torch.device | None = None
) -> Float[Tensor, "*modes"]:
    """|k| of every mode of `rfftn`, as a fraction of the smallest Nyquist wavenumber of the axes."""
    steps = [1.0] * len(grid) if spacing is None else [float(step) for step in spacing]
    nyquist = min(0.5 / step for step in steps)
    square = torch.zeros((), dtype=torch.float64, device=device)
    for axis, (points, step) in enumerate(zip(grid, steps, strict=True)):
        frequency = torch.fft.rfftfreq if axis == len(grid) - 1 else torch.fft.fftfreq
        along = frequency(points, d=step, dtype=torch.float64, device=device) / nyquist
        square = square[..., None] + along.square()
    return square.sqrt()


def half_spectrum_weights(points: int, *, device: torch.device | None = None) -> Float[Tensor, " l"]:
    """How many modes of the full spectrum each mode of the last axis of `rfftn` stands for."""
    weight = torch.full((points // 2 + 1,), 2.0, dtype=torch.float64, device=device)
    weight[0] = 1
    if points % 2 == 0:
        weight[-1] = 1
    return weight


# Energy by scale: how much of a field lives at each wavenumber.
#
#     E(k) = sum over modes with |k| in the shell around k of  |u_k|^2 / N^2,     N number of grid points
#
# so that the sum over all shells is the mean square of the field (Parseval). Shells are as wide as the smallest
# wavenumber of the axes, 2 pi / length; the first holds the mean. Axes should be periodic.
#
# Axes: b trajectory, t frame, c field, s shell.


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
