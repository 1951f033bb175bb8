"""Bring periodic fields from one grid to another of the same box: the only resampler of the library.

The trigonometric polynomial through the old points, cut to the waves that the new grid holds, at the new points:

    v_i = sum_{|k| <= min(N, M)/2} u_k exp(2 pi i k x_i)        from N to M points of an axis of length 1

Exact for every wave that both grids resolve. On an even number of points the highest wave has no sine, (-1)^i is its
cosine: it counts half for k and half for -k. So a finer grid gets that cosine, and a coarser even grid gets the cosine,
seen from its own points, of the wave that becomes its highest; the sine vanishes on all its points. To a finer grid and
back is the identity for every field, and two steps to ever coarser grids are the same as one.

Readers (`ssno.data.reduction`), forecasts on a working grid (`ssno.forecasting.rollout`) and solver baselines
(`ssno.evaluation.resample`) call it, so that a perfect forecast has no error.

Axes: any leading ones, then the grid.
"""

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
