"""Bring periodic fields from one grid to another of the same box: the trigonometric polynomial through their points.

Exact for every wave that both grids resolve; waves that the new grid does not resolve are cut. On an even number of
points the highest wave is shared by both signs, so it is halved on the way to a finer grid and loses its sine part on
the way to a coarser one.

Axes: any leading ones, then the grid.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


def resample(field: Float[Tensor, "..."], grid: Sequence[int]) -> Float[Tensor, "..."]:
    """The field on `grid` points along its last axes."""
    for dim, points in zip(range(-len(grid), 0), grid, strict=True):
        if field.shape[dim] != points:
            field = _along(field.movedim(dim, -1), points).movedim(-1, dim)
    return field


def _along(lines: Float[Tensor, "... l"], points: int) -> Float[Tensor, "... m"]:
    if lines.numel() == 0:  # no fields, which the transform refuses
        return lines.new_zeros(*lines.shape[:-1], points)
    modes = torch.fft.rfft(lines, norm="forward")
    fewer = min(lines.shape[-1], points)
    kept = modes[..., : fewer // 2 + 1]
    if fewer % 2 == 0:
        highest = kept[..., -1:]
        highest = highest / 2 if points > fewer else 2 * highest.real.to(highest.dtype)
        kept = torch.cat([kept[..., :-1], highest], dim=-1)
    return torch.fft.irfft(kept, n=points, norm="forward")
