"""Field of view: which inputs can reach which outputs.

A convolutional neural operator is universal if its iterated kernel  kappa_L * ... * kappa_1  has full support: if every
output can depend on every input (the paper's theorem). On a grid a layer is a boolean matrix (output, input), residuals
and pointwise maps add the identity, layers in sequence multiply, layers in parallel add. Two answers are given:

    field_of_view      from the supports of the kernels as functions of a continuous variable, as in the theorem
    seen_in_jacobian   from the derivatives of the model on this grid

They agree unless a kernel is zero at a point of the grid, between points where it is not: a lone cosine of four points'
length connects every second point only, and the Jacobian says so, but its support is the whole line. Kernels of several
waves, drawn or learned, have no such zeros.

Axes: p = q grid point, all axes flattened in row-major order; p the output, q the input.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce, singledispatch
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ssno.layers.axial import (
    AxialScan,
    BidirectionalScan,
    ParallelAxialScan,
    ProductAxialScan,
    ProductScan,
    RasterScan,
    UnidirectionalScan,
)
from ssno.layers.linear_ssm import LinearSSM, LinearSweep
from ssno.layers.memory import S4DBlock
from ssno.layers.pointwise import ChannelMLP, Pointwise
from ssno.layers.spectral import SpectralConvolution
from ssno.models.baselines.fno import FFNO, FNO, FactorisedLayer, FourierBlock
from ssno.models.operator import NeuralOperator
from ssno.models.ssno import SSNO
from ssno.native.engine import use
from ssno.ssm.convolution import Direction
from ssno.ssm.kernel import LINEAR_CONVOLUTION

# The supports of the kernels of layers: a boolean matrix (output, input) over the points of a grid, per layer.
#
# The support of a function is the closure of where it is not zero. Sums of damped waves (state-space layers) and of
# Fourier modes (spectral layers) are analytic: they vanish everywhere or at isolated points only, so their support is
# the whole line as soon as one wave has a weight, however strongly it is damped. Nothing is computed that could
# underflow or be blurred by rounding; of short kernels, whose taps are parameters, a tap counts if it is not exactly
# zero.
#
# One rule per kind of layer, found by type. Supports of all channels are joined, because the criterion asks whether
# some setting of the channel mixing lets information through.
#
# Axes: p = q grid point, all axes flattened in row-major order; p the output, q the input; l point along one axis.

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
    if isinstance(model, SSNO | FNO):
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
    return _line(
        grid,
        layer.direction,
        waves=waves,
        periodic=layer.boundary not in LINEAR_CONVOLUTION,
        skip=bool(layer.skip.any()),
    )


@support.register
def _(layer: BidirectionalScan, grid: Grid) -> Support:
    both = support(layer.ahead, grid) | support(layer.back, grid)
    return both | same(grid) if layer.residual_weight else both


@support.register
def _(layer: ProductScan, grid: Grid) -> Support:
    """A product depends on what its factors depend on."""
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


# Field of view: which inputs can reach which outputs.

ROUNDING = 1e-13  # of the largest derivative


@dataclass(frozen=True)
class FieldOfView:
    """What a model sees on a grid. `reached[p, q]`: whether output p can depend on input q."""

    grid: tuple[int, ...]
    reached: Bool[Tensor, "p q"]

    @property
    def fraction(self) -> float:
        """Share of (output, input) pairs that are connected."""
        return self.reached.double().mean().item()

    @property
    def full(self) -> bool:
        """Whether every output can depend on every input, which makes an architecture universal."""
        return bool(self.reached.all())

    def inputs_of(self, *point: int) -> Bool[Tensor, "*grid"]:
        """The inputs that one output point can depend on, as a map of the grid."""
        if len(point) != len(self.grid) or not all(0 <= i < n for i, n in zip(point, self.grid, strict=True)):
            raise ValueError(f"`point` must index the grid {self.grid}, got {point}.")
        return self.reached.view(*self.grid, *self.grid)[point]


def field_of_view(model: nn.Module, grid: Sequence[int]) -> FieldOfView:
    """The support of the iterated kernel of a model on a grid, from its layers' kernels.

    Knows SS-NO and its variants, FNO, F-FNO, linear state-space layers, and `nn.Sequential` stacks of convolutions and
    pointwise modules; for any other model use `seen_in_jacobian`. Computed on the CPU, wherever the model is.
    """
    _require_grid(grid)
    model = copy.deepcopy(model).cpu()
    return FieldOfView(tuple(grid), reduce(then, model_supports(model, tuple(grid))))


def depth_for_full_view(layer: nn.Module, grid: Sequence[int]) -> int | None:
    """How many copies of a layer in sequence it takes to see everything; None if no number does.

    The number is sharp: one layer less leaves some output blind to some input. A boolean matrix of n points has a full
    power if and only if its power (n - 1)^2 + 1 is full (Wielandt), and then all later ones are; so the smallest is
    found by bisection, from powers of two.
    """
    _require_grid(grid)
    powers = [field_of_view(layer, grid).reached]  # the 2^j-th power at place j
    while not powers[-1].all():
        if 2 ** (len(powers) - 1) > (math.prod(grid) - 1) ** 2:
            return None
        powers.append(then(powers[-1], powers[-1]))
    blind, depth = same(tuple(grid)), 0
    for place, power in reversed(list(enumerate(powers[:-1]))):
        further = then(blind, power)
        if not further.all():
            blind, depth = further, depth + 2**place
    return depth + 1


def seen_in_jacobian(
    model: nn.Module, grid: Sequence[int], *, example: Float[Tensor, "1 ..."] | None = None
) -> FieldOfView:
    """The field of view by differentiation: pairs whose derivative, at a generic input, is not zero.

    `example` is an input whose last axes are the grid; models of this library make their own. The model is copied,
    taken to float64, and its scans to matrix products, in which a zero stays a zero. Derivatives below 1e-13 of the
    largest count as zero: an FFT leaves as much by rounding. Damping of a state-space layer scales what arrives but
    cannot stop it: in the copy it is limited to one 1/e per tenth of the grid, so that nothing is as small as that.
    """
    _require_grid(grid)
    if example is None:
        example = _generic_frames(model, grid)
    if tuple(example.shape[-len(grid) :]) != tuple(grid):
        raise ValueError(f"`example` must end in the axes {tuple(grid)} of the grid, got shape {tuple(example.shape)}.")
    points = math.prod(grid)
    exact = copy.deepcopy(model).cpu().double().eval()
    for module in exact.modules():
        if isinstance(module, S4DBlock):
            module.method = "toeplitz"
            with torch.no_grad():
                limit = math.log(10 / points) - module.modes.log_step[:, None]
                module.modes.log_damping.copy_(torch.minimum(module.modes.log_damping, limit))
    inputs = example.cpu().double().clone().requires_grad_()
    with use("plain"):  # derivatives are taken for many outputs at once
        outputs = exact(inputs).reshape(-1, points)
    generic = torch.linspace(1.0, 2.0, len(outputs), dtype=torch.float64) @ outputs  # some mixture of the channels
    rows = []
    for unit in torch.eye(points, dtype=torch.float64).split(64):
        (slope,) = torch.autograd.grad(generic, inputs, unit, retain_graph=True, is_grads_batched=True)
        rows.append(slope.reshape(len(unit), -1, points).abs().amax(dim=1))
    strength = torch.cat(rows)
    return FieldOfView(tuple(grid), strength > ROUNDING * strength.max())


def _generic_frames(model: nn.Module, grid: Sequence[int]) -> Tensor:
    if not isinstance(model, NeuralOperator):
        raise ValueError(
            f"`example` is needed for a {type(model).__name__}, whose input this function cannot guess. "
            "Give one random input whose last axes are the grid."
        )
    frames = max(1, model.frames_as_channels)
    generator = torch.Generator().manual_seed(0)
    return torch.randn(1, frames, model.config.in_channels, *grid, generator=generator, dtype=torch.float64)


def _require_grid(grid: Sequence[int]) -> None:
    if not grid or min(grid) < 1:
        raise ValueError(f"`grid` must hold the number of points of each axis, got {tuple(grid)}.")
