"""Bring periodic fields from one grid to another of the same box: the only resampler of the library.

The trigonometric polynomial through the old points, cut to the waves that the new grid holds, at the new points:

    v_i = sum_{|k| <= min(N, M)/2} u_k exp(2 pi i k x_i)        from N to M points of an axis of length 1

Exact for every wave that both grids resolve. On an even number of points the highest wave has no sine, (-1)^i is its
cosine: it counts half for k and half for -k. So a finer grid gets that cosine, and a coarser even grid gets the cosine,
seen from its own points, of the wave that becomes its highest; the sine vanishes on all its points. To a finer grid and
back is the identity for every field, and two steps to ever coarser grids are the same as one.

Readers (`ssno.data.grids`), forecasts on a working grid (`ssno.forecasting.rollout`) and solver baselines
(`ssno.evaluation.solver`) call it, so that a perfect forecast has no error.

Axes: any leading ones, then the grid.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


def resample(
    field: Float[Tensor, "..."], grid: Sequence[int], *, shift: Sequence[float] | None = None
) -> Float[Tensor, "..."]:
    """The field on `grid` points along its last axes; the new points start `shift` lengths of the box later."""
    shifts = [0.0] * len(grid) if shift is None else shift
    for dim, points, later in zip(range(-len(grid), 0), grid, shifts, strict=True):
        if field.shape[dim] != points or later:
            field = _along(field.movedim(dim, -1), points, later).movedim(-1, dim)
    return field


def _along(lines: Float[Tensor, "... l"], points: int, later: float) -> Float[Tensor, "... m"]:
    if lines.numel() == 0:  # no fields, which the transform refuses
        return lines.new_zeros(*lines.shape[:-1], points)
    old = lines.shape[-1]
    modes = torch.fft.rfft(lines, norm="forward")[..., : min(old, points) // 2 + 1]
    if old % 2 == 0 and points >= old:
        modes[..., -1] /= 2
    if later:
        angle = 2 * torch.pi * later * torch.arange(modes.shape[-1], device=lines.device, dtype=lines.dtype)
        modes = modes * torch.polar(torch.ones_like(angle), angle)
    if points % 2 == 0 and points <= old:
        modes[..., -1] = 2 * modes[..., -1].real  # k and -k fall together
    return torch.fft.irfft(modes, n=points, norm="forward")


# The cosine transform (DCT-II) of values at the centres of N cells between two walls, by one FFT of N points.
#
#     X_k = sum over n of  x_n cos(pi k (2 n + 1) / (2 N)),        k = 0 ... N - 1
#
#     mean of x^2 = (X_0^2 + 2 X_1^2 + ... + 2 X_{N-1}^2) / N^2    (Parseval)
#
# Even values of n come first, then odd ones backwards; the FFT of these, turned by exp(-i pi k / 2 N), has X as its
# real part (Makhoul 1980).


def cosine_transform(values: Float[Tensor, "..."], *, dim: int) -> Float[Tensor, "..."]:
    """The transform along one axis."""
    points, device = values.shape[dim], values.device
    number = torch.arange(points, device=device)
    order = torch.cat([number[::2], number[1::2].flip(0)])
    angle = -math.pi / (2 * points) * number.to(values.dtype)
    turn = torch.polar(torch.ones_like(angle), angle)
    modes = torch.fft.fft(values.index_select(dim, order), dim=dim)
    return (modes.movedim(dim, -1) * turn).real.movedim(-1, dim)
