"""Where the kernels of a layer are not zero: a boolean matrix (output, input) over the points of a grid, per layer.

One rule per kind of layer, found by type. Supports of all channels are joined, because the criterion asks whether some
setting of the channel mixing lets information through.

Axes: p = q grid point, all axes flattened in row-major order; p the output, q the input; l point along one axis.
"""

import math
from functools import reduce, singledispatch
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from ssno.layers.head import Head
from ssno.layers.linear_ssm import LinearSSM, LinearSweep
from ssno.layers.pointwise import Pointwise
from ssno.layers.s4d import S4DBlock
from ssno.layers.scan import AxisSweep, TwoWayScan
from ssno.layers.spectral import SpectralConvolution
from ssno.layers.sweeps import FlattenedSweep, OneWaySweep, ParallelSweep
from ssno.models.baselines.ffno import FFNO, FactorisedLayer
from ssno.models.baselines.fno import FourierBlock, FourierOperator
from ssno.models.scanning import ScanOperator
from ssno.ssm.convolution import Direction, toeplitz

Grid = tuple[int, ...]
Support = Bool[Tensor, "p q"]

POINTWISE = (Pointwise, Head, nn.GELU, nn.ReLU, nn.SiLU, nn.Tanh, nn.Identity)


def then(first: Support, second: Support) -> Support:
    """The support of two layers in sequence: an output sees what the points it sees have seen."""
    return (second.float() @ first.float()) > 0


def same(grid: Grid) -> Support:
    """The support of a pointwise map."""
    return torch.eye(math.prod(grid), dtype=torch.bool)


def model_supports(model: nn.Module, grid: Grid) -> list[Support]:
    """The supports of a model's layers, in order, residuals included. A lone layer is a model of one."""
    if isinstance(model, ScanOperator | FourierOperator):
        return [support(block, grid) for block in (*model.blocks_before, *model.blocks_after)]
    if isinstance(model, FFNO):
        *residual, last = (support(layer, grid) for layer in (*model.layers_before, *model.layers_after))
        return [*(layer | same(grid) for layer in residual), last]
    if isinstance(model, nn.Sequential):
        return [matrix for layer in model for matrix in model_supports(layer, grid)]
    return [support(model, grid)]


@singledispatch
def support(layer: nn.Module, grid: Grid) -> Support:
    """The support of one layer."""
    if isinstance(layer, POINTWISE):
        return same(grid)
    raise TypeError(
        f"There is no rule for the kernels of a {type(layer).__name__}. Use `seen_in_jacobian`, which needs none."
    )


@support.register
def _(layer: S4DBlock, grid: Grid) -> Support:
    return _line(layer.taps(grid[0]).ne(0).any(0), layer.direction, periodic=layer.boundary != "zero")


@support.register
def _(layer: TwoWayScan, grid: Grid) -> Support:
    both = support(layer.ahead, grid) | support(layer.back, grid)
    return both | same(grid) if layer.copies_of_input else both


@support.register
def _(layer: AxisSweep, grid: Grid) -> Support:
    return reduce(then, _axes(layer.scans, grid))


@support.register
def _(layer: OneWaySweep, grid: Grid) -> Support:
    return reduce(then, (axis | same(grid) for axis in _axes(layer.scans, grid)))


@support.register
def _(layer: ParallelSweep, grid: Grid) -> Support:
    return reduce(torch.logical_or, _axes(layer.scans, grid), same(grid))


@support.register
def _(layer: FlattenedSweep, grid: Grid) -> Support:
    points, axes = math.prod(grid), len(grid)
    passes = []
    for turn, scan in enumerate(layer.scans):
        order = [(axis - turn) % axes for axis in range(axes)]
        line = torch.arange(points).view(grid).permute(order).flatten()  # grid point at each place of the line
        place = line.argsort()
        passes.append(support(scan, (points,))[place][:, place] | same(grid))
    return reduce(then, passes)


@support.register
def _(layer: LinearSSM, grid: Grid) -> Support:
    return _line(layer.kernel(grid[0]).ne(0).any(0).any(0), layer.direction, periodic=layer.boundary != "zero")


@support.register
def _(layer: LinearSweep, grid: Grid) -> Support:
    return reduce(torch.logical_or, _axes(layer.layers, grid))


@support.register
def _(layer: SpectralConvolution, grid: Grid) -> Support:
    """Its impulse response, moved to every point of the periodic grid."""
    channels = layer.weight.shape[-2]
    impulses = torch.zeros(channels, math.prod(grid), channels, dtype=layer.weight.dtype)
    impulses[:, 0] = torch.eye(channels)  # one channel per frame
    kernel = layer(impulses.unflatten(1, grid)).ne(0).any(-1).any(0)
    shifts = torch.cartesian_prod(*map(torch.arange, grid)).view(-1, len(grid))
    moved = [kernel.roll(tuple(shift), dims=tuple(range(len(grid)))).flatten() for shift in shifts.tolist()]
    return torch.stack(moved, dim=1)


@support.register
def _(layer: FactorisedLayer, grid: Grid) -> Support:
    return reduce(torch.logical_or, _axes(layer.convolutions, grid))


@support.register
def _(layer: FourierBlock, grid: Grid) -> Support:
    return support(layer.convolution, grid) | same(grid)


@support.register(nn.Conv1d)
@support.register(nn.Conv2d)
@support.register(nn.Conv3d)
def _(layer: nn.Conv1d | nn.Conv2d | nn.Conv3d, grid: Grid) -> Support:
    """A short kernel, moved to every point; what falls off the grid comes back if the padding is circular."""
    kind: Any = type(layer)
    pattern = kind(1, 1, layer.kernel_size, padding=layer.padding, padding_mode=layer.padding_mode, bias=False)
    pattern.weight.data = layer.weight.ne(0).any(0).any(0)[None, None].float()
    impulses = torch.eye(math.prod(grid)).view(-1, 1, *grid)
    return pattern(impulses).gt(0.5).flatten(1).T


def _axes(layers: nn.ModuleList, grid: Grid) -> list[Support]:
    """One layer per axis: the support of each, spread over the grid by Kronecker products with identities."""
    matrices = []
    for axis, layer in enumerate(layers):
        factors = [torch.eye(points, dtype=torch.uint8) for points in grid]
        factors[axis] = support(layer, (grid[axis],)).to(torch.uint8)
        matrices.append(reduce(torch.kron, factors).bool())
    return matrices


def _line(taps: Bool[Tensor, " l"], direction: Direction, *, periodic: bool) -> Support:
    return toeplitz(taps[None].float(), direction=direction, periodic=periodic)[0] > 0
