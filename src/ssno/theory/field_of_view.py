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
from functools import reduce

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ssno.layers.s4d import S4DBlock
from ssno.models.operator import NeuralOperator
from ssno.native.engine import use
from ssno.theory.supports import model_supports, same, then

ROUNDING = 1e-13  # of the largest derivative


@dataclass(frozen=True)
class FieldOfView:
    """What a model sees on a grid. `reached[p, q]` says whether output p can depend on input q."""

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
    pointwise modules; of any other model `seen_in_jacobian` tells. Computed on the CPU, wherever the model is.
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
    slots = max(1, model.frames_as_channels)
    generator = torch.Generator().manual_seed(0)
    return torch.randn(1, slots, model.config.in_channels, *grid, generator=generator, dtype=torch.float64)


def _require_grid(grid: Sequence[int]) -> None:
    if not grid or min(grid) < 1:
        raise ValueError(f"`grid` must hold the number of points of each axis, got {tuple(grid)}.")
