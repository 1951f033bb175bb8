"""The supports of the kernels of layers: a boolean matrix (output, input) over the points of a grid, per layer.

The support of a function is the closure of where it is not zero. Sums of damped waves (state-space layers) and of
Fourier modes (spectral layers) are analytic: they vanish everywhere or at isolated points only, so their support is the
whole line as soon as one wave has a weight, however strongly it is damped. Nothing is computed that could underflow or
be blurred by rounding; of short kernels, whose taps are parameters, a tap counts if it is not exactly zero.

One rule per kind of layer, found by type. Supports of all channels are joined, because the criterion asks whether some
setting of the channel mixing lets information through.

Axes: p = q grid point, all axes flattened in row-major order; p the output, q the input; l point along one axis.
"""

import math
from functools import reduce, singledispatch
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ssno.layers.head import ChannelMLP
from ssno.layers.linear_ssm import LinearSSM, LinearSweep
from ssno.layers.pointwise import Pointwise
from ssno.layers.product import ProductAxialScan, ProductScan
from ssno.layers.s4d import S4DBlock
from ssno.layers.spectral import SpectralConvolution
from ssno.layers.sweeps import AxialScan, BidirectionalScan, ParallelAxialScan, RasterScan, UnidirectionalScan
from ssno.models.baselines.ffno import FFNO, FactorisedLayer
from ssno.models.baselines.fno import FourierBlock, FourierOperator
from ssno.models.ssno import ScanOperator
from ssno.ssm.convolution import Direction
from ssno.ssm.kernel import ENDS

Grid = tuple[int, ...]
Support = Bool[Tensor, "p q"]

POINTWISE = (Pointwise, ChannelMLP, nn.GELU, nn.ReLU, nn.SiLU, nn.Tanh, nn.Identity)


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
    """The skip alone reaches the point itself."""
    weight = layer.modes.weight()
    waves = _any_wave(layer.modes.frequency, weight.re, weight.im)
    return _line(grid, layer.direction, waves=waves, periodic=layer.boundary not in ENDS, skip=bool(layer.skip.any()))


@support.register
def _(layer: BidirectionalScan, grid: Grid) -> Support:
    both = support(layer.ahead, grid) | support(layer.back, grid)
    return both | same(grid) if layer.residual_weight else both


@support.register
def _(layer: ProductScan, grid: Grid) -> Support:
    """A product hears what its factors hear."""
    return support(layer.ahead, grid) | support(layer.back, grid) | same(grid)


@support.register
def _(layer: AxialScan | ProductAxialScan, grid: Grid) -> Support:
    return reduce(then, _axes(layer.scans, grid))


@support.register
def _(layer: UnidirectionalScan, grid: Grid) -> Support:
    return reduce(then, (axis | same(grid) for axis in _axes(layer.scans, grid)))


@support.register
def _(layer: ParallelAxialScan, grid: Grid) -> Support:
    return reduce(torch.logical_or, _axes(layer.scans, grid), same(grid))


@support.register
def _(layer: RasterScan, grid: Grid) -> Support:
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
    """Mode n mixes channels by the matrix C_n B_n, of which every entry is the weight of a wave."""
    (c, b), frequency = map(torch.view_as_complex, (layer.output_weight, layer.input_weight)), layer.frequency
    weight = torch.einsum("on,ni->oin", c, b)
    waves = _any_wave(frequency.expand(weight.shape), weight.real, weight.imag)
    return _line(grid, layer.direction, waves=waves, periodic=layer.boundary != "zero")


@support.register
def _(layer: LinearSweep, grid: Grid) -> Support:
    return reduce(torch.logical_or, _axes(layer.layers, grid))


@support.register
def _(layer: SpectralConvolution, grid: Grid) -> Support:
    """Everything if any mode has a weight; of the mean (the first mode of the first corner) the real part counts."""
    counted = layer.weight.ne(0)
    counted[(0,) * (1 + layer.axes)][..., 1] = False
    return same(grid).fill_(bool(counted.any()))


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
    pattern = kind(
        *(1, 1, layer.kernel_size),
        stride=layer.stride,
        padding=layer.padding,
        dilation=layer.dilation,
        padding_mode=layer.padding_mode,
        bias=False,
    )
    pattern.weight.data = layer.weight.ne(0).any(0).any(0)[None, None].float()
    reached = pattern(torch.eye(math.prod(grid)).view(-1, 1, *grid)).gt(0.5)
    if reached.shape[2:] != grid:
        raise ValueError(
            f"`layer` takes a grid of {grid} points to {tuple(reached.shape[2:])}; a field of view is between equal "
            'grids. Give the convolution stride 1 and padding="same".'
        )
    return reached.flatten(1).T


def _axes(layers: nn.ModuleList, grid: Grid) -> list[Support]:
    """One layer per axis: the support of each, spread over the grid by Kronecker products with identities."""
    matrices = []
    for axis, layer in enumerate(layers):
        factors = [torch.eye(points, dtype=torch.uint8) for points in grid]
        factors[axis] = support(layer, (grid[axis],)).to(torch.uint8)
        matrices.append(reduce(torch.kron, factors).bool())
    return matrices


def _any_wave(frequency: Float[Tensor, "*rows n"], re: Float[Tensor, "*rows n"], im: Float[Tensor, "*rows n"]) -> bool:
    """Whether any row of  Re sum_n weight_n exp(-(damping_n + i frequency_n) x)  has a wave; at frequency 0 no sine."""
    return bool((re.ne(0) | (im.ne(0) & frequency.ne(0))).any())


def _line(grid: Grid, direction: Direction, *, waves: bool, periodic: bool, skip: bool = False) -> Support:
    """A scan along one axis: all points on its side, or all there are on a circle; without waves the skip alone."""
    if not waves:
        return same(grid) & skip
    everything = torch.ones(grid[0], grid[0], dtype=torch.bool)
    if periodic:
        return everything
    return everything.tril() if direction == "forward" else everything.triu()
