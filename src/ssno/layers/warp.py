"""Features carried along learned displacements: the semi-Lagrangian part of a spatial block.

    d   = D y + d0                                      one displacement for each head, in cells of the learned grid
    out = C w,   w_head(p) = (V x)_head(p + d_head(p))  V, C: maps of channels

A flow moves what is at one point to another, often many cells away in one time step. Kernels have the same shape
everywhere; what is read here is elsewhere at every point. y is the scan of the block (`ssno.layers.axial`), so a
displacement may depend on the whole field, as a velocity does on the vorticity. Flower (arXiv 2603.04430) builds a
network of such heads alone.

Between points values are interpolated linearly along every axis. On a grid that consists of copies of the learned one
(`ssno.ssm.resolution`) each copy is interpolated by itself, as it was in training. Periodic axes wrap; at other ends
the last value is read.

Axes: h channel (heads x c), a grid axis, p grid point, b frame. Fields are (h, *grid, b); inside, channels come last,
so that one read fetches a head.
"""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.layers.block import DiscretisedKernels
from ssno.native import operations
from ssno.native.engine import fused, plain
from ssno.native.operations import WarpGrid, gradients
from ssno.ssm.kernel import PERIODIC, WALLS

START = 0.1, 0.3
"""How large the last map and the map to displacements start, in units of a linear layer's usual start."""


class Warp(nn.Module):
    """Read features at displaced points: the sum of `heads` fields, each with displacements of its own."""

    def __init__(self, channels: int, *, axes: int, heads: int):
        super().__init__()
        if channels % heads:
            raise ValueError(
                f"`block.warp_heads` must divide the channels of the network: {heads} does not divide {channels}."
            )
        self.values = nn.Linear(channels, channels, bias=False)
        self.displacements = nn.Linear(channels, heads * axes)
        self.out = nn.Linear(channels, channels)
        self.heads = heads
        with torch.no_grad():
            for linear, size in zip((self.out, self.displacements), START, strict=True):
                linear.weight.mul_(size)

    def forward(
        self, x: Float[Tensor, "h *grid b"], y: Float[Tensor, "h *grid b"], grid: WarpGrid
    ) -> Float[Tensor, "h *grid b"]:
        """What is carried to every point; displacements are a map of y."""
        channels, frames = len(x), x.shape[-1]

        def mapped(field: Tensor, linear: nn.Linear) -> Tensor:
            found = field.reshape(channels, -1).t() @ linear.weight.to(field.dtype).t()
            return found.to(linear.weight.dtype).view(-1, frames, self.heads, len(linear.weight) // self.heads)

        displacements = mapped(y, self.displacements) + self.displacements.bias.view(self.heads, -1)
        found = warped(mapped(x, self.values), displacements, grid).view(-1, channels)
        weight = self.out.weight.to(x.dtype)
        return torch.addmm(self.out.bias.to(x.dtype)[:, None], weight, found.to(x.dtype).t()).view(x.shape)


def warp_grid(shape: Sequence[int], weights: Sequence[DiscretisedKernels]) -> WarpGrid:
    """The axes of a grid, from the kernels of the scans along them."""
    copies, periodic, cells = [], [], []
    for points, known in zip(shape, weights, strict=True):
        boundary, sampling = known.blocks[0].boundary, known.sampling
        line = points * (2 if boundary in WALLS else 1)
        spacing = sampling.spacing * sampling.points / line  # in units of the learned one
        copies.append(sampling.copies)
        periodic.append(boundary in PERIODIC)
        cells.append(1 / (spacing * sampling.copies))
    return WarpGrid(tuple(shape), tuple(copies), tuple(periodic), tuple(cells))


def warped(
    values: Float[Tensor, "p b heads c"], displacements: Float[Tensor, "p b heads a"], grid: WarpGrid
) -> Float[Tensor, "p b heads c"]:
    """The values at displaced points."""
    if plain() or not fused(values, displacements):
        return plain_warp(values, displacements, grid)
    if not torch.is_grad_enabled():
        return operations.warp_forward(values, displacements, grid)
    return WarpFunction.apply(values, displacements, grid)


def plain_warp(values: Tensor, displacements: Tensor, grid: WarpGrid) -> Tensor:
    """The same in operations of PyTorch."""
    corners: list[list[tuple[Tensor, Tensor]]] = []  # of every axis: index and weight of the near one and the far one
    step, device = 1, values.device
    for axis, (points, copies) in reversed(list(enumerate(zip(grid.points, grid.copies, strict=True)))):
        cells = points // copies
        shape = [1] * len(grid.points)
        shape[axis] = points
        here = torch.arange(points, device=device).view(shape).expand(grid.points).reshape(-1, 1, 1)
        moved = displacements[..., axis] * grid.cells[axis]
        whole = moved.floor()
        low = torch.div(here, copies, rounding_mode="floor") + whole.nan_to_num(0.0, 0.0, 0.0).clamp(-1e9, 1e9).long()
        ends = (i.remainder(cells) if grid.periodic[axis] else i.clamp(0, cells - 1) for i in (low, low + 1))
        places = [(end * copies + here.remainder(copies)) * step for end in ends]
        part = (moved - whole)[..., None]
        corners.append(list(zip(places, (1 - part, part), strict=True)))
        step *= points
    out = torch.zeros_like(values)
    for corner in itertools.product(*corners):
        place = torch.stack([index for index, _ in corner]).sum(0)
        found = values.gather(0, place[..., None].expand(values.shape))
        for _, weight in corner:
            found = found * weight
        out = out + found
    return out


class WarpFunction(torch.autograd.Function):
    """`warped` in native code."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, displacements: Tensor, grid: WarpGrid) -> Tensor:
        ctx.save_for_backward(values, displacements)
        ctx.grid = grid
        return operations.warp_forward(values, displacements, grid)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        values, displacements = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *gradients(partial(plain_warp, grid=ctx.grid), (values, displacements), grad), None
        return *operations.warp_backward(values, displacements, grad, ctx.grid), None
