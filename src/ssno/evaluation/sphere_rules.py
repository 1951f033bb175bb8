"""Forecasts on a sphere that cost next to nothing and say what a network's score is worth.

| name | the next frame | knows |
|---|---|---|
| mean | zero in normalised units; scores 1 | nothing |
| persistence | the same again | today |
| zonal-linear | one matrix per order m over fields and degrees, by least squares | linear dynamics, Coriolis included |
| equivariant-linear | one 3 x 3 matrix per degree l, the same for all m | linear dynamics, blind to latitude |
| coarse-solver | the equations with fewer degrees | everything but the small scales |

The public shallow-water data are almost linear: a network that does not beat `zonal-linear` there has not learned the
operator. What is blind to latitude cannot know Coriolis, which is what `equivariant-linear` measures.

Axes: n pair of frames, b trajectory, c field, l degree, m order.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ssno.data.normalise import AffineMap
from ssno.pde.equations.shallow_water import ShallowWaterEquations
from ssno.pde.problems.shallow_water import ShallowWater
from ssno.transforms.sphere import transform_of

Rule = Callable[[Float[Tensor, "b c lat lon"]], Float[Tensor, "b c lat lon"]]


def mean_rule(frame: Float[Tensor, "b c lat lon"]) -> Float[Tensor, "b c lat lon"]:
    """The mean of the training data."""
    return torch.zeros_like(frame)


def persistence_rule(frame: Float[Tensor, "b c lat lon"]) -> Float[Tensor, "b c lat lon"]:
    """The same again."""
    return frame


def zonal_linear(frames: Float[Tensor, "b t c lat lon"], *, degrees: int) -> Rule:
    """Per order m the matrix over fields and degrees l >= m that fits all one-step changes of training frames best."""
    before, after = pairs(frames, degrees)
    maps = []
    for m in range(degrees):
        x, y = (part[:, :, m:, m].flatten(1) for part in (before, after))
        maps.append(fitted(x, y))

    def step(modes: Complex[Tensor, "b c l m"]) -> Complex[Tensor, "b c l m"]:
        result = torch.zeros_like(modes)
        for m, matrix in enumerate(maps):
            column = modes[:, :, m:, m]
            result[:, :, m:, m] = (column.flatten(1) @ matrix).view(column.shape)
        return result

    return in_modes(step, degrees)


def equivariant_linear(frames: Float[Tensor, "b t c lat lon"], *, degrees: int) -> Rule:
    """Per degree l one matrix over fields, the same for all orders, fitted as in `zonal_linear`."""
    before, after = pairs(frames, degrees)
    maps = []
    for l in range(degrees):
        x, y = (part[:, :, l, : l + 1].transpose(1, 2).flatten(0, 1) for part in (before, after))
        maps.append(fitted(x, y))
    stacked = torch.stack(maps)
    return in_modes(lambda modes: torch.einsum("bclm,lcd->bdlm", modes, stacked), degrees)


def coarse_solver(problem: ShallowWater, *, nlat: int, units: AffineMap) -> Rule:
    """The problem solved with the degrees of a coarser grid, frame by frame, on the problem's own grid."""
    coarse = replace(problem, nlat=nlat, step=None)
    equations = ShallowWaterEquations(coarse.degrees)
    following = coarse.next_frame(equations)
    transform = transform_of(problem.nlat, 2 * problem.nlat, coarse.degrees, torch.float64)

    def rule(frame: Float[Tensor, "b c lat lon"]) -> Float[Tensor, "b c lat lon"]:
        physical = units.decode(frame[:, None].double())[:, 0]
        state = transform.analyse(physical).permute(3, 2, 1, 0).contiguous()  # m l c b
        solved = transform.synthesise(following(state).permute(3, 2, 1, 0))
        return units.encode(solved[:, None])[:, 0].to(frame)

    return rule


def pairs(frames: Float[Tensor, "b t c lat lon"], degrees: int) -> tuple[Tensor, Tensor]:
    """Coefficients (n, c, l, m) of all frames but the last, and of those that follow, float64."""
    transform = transform_of(frames.shape[-2], frames.shape[-1], degrees, torch.float64)
    modes = transform.analyse(frames.double())
    return modes[:, :-1].flatten(0, 1), modes[:, 1:].flatten(0, 1)


def fitted(x: Complex[Tensor, "n i"], y: Complex[Tensor, "n o"]) -> Complex[Tensor, "i o"]:
    """The matrix that takes rows of x to rows of y with the least squared error; columns are scaled first."""
    scale = x.abs().square().mean(0).sqrt().clamp_min(1e-300)[:, None]
    return torch.linalg.lstsq(x / scale.t(), y, driver="gelsd").solution / scale


def in_modes(step: Callable[[Tensor], Tensor], degrees: int) -> Rule:
    """A rule on frames from one on coefficients."""

    def rule(frame: Float[Tensor, "b c lat lon"]) -> Float[Tensor, "b c lat lon"]:
        transform = transform_of(frame.shape[-2], frame.shape[-1], degrees, torch.float64)
        return transform.synthesise(step(transform.analyse(frame.double()))).to(frame)

    return rule
