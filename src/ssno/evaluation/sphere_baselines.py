"""Scores of forecasts on a sphere, and baselines for them: area-weighted errors, energy and mass, step by step.

    rel_l2_area(t)          mean over trajectories of |p - u| / |u|, all fields, z-scored units, area-weighted points
    rel_l2_area_squared(t)  the mean of its square, which some public scripts print
    energy_ratio(t)         mean of |p| / |u|: below 1 a forecast loses energy, above 1 it gains energy
    mass_drift(t)           mean of |<Phi>(p) - <Phi>(u)| in standard deviations, < > the mean over the sphere

In physical units the mean geopotential, 500 times its standard deviation, would dominate. The mean forecast scores 1,
and a forecast with the right variance but no correlation sqrt 2. `project` truncates every predicted frame to the
degrees of the data before it is fed back.

Baselines, as rules from one frame to the next:

    mean                zero in normalised units; scores 1
    persistence         the same frame again
    zonal-linear        one matrix per order m over fields and degrees, by least squares: linear dynamics with Coriolis
    equivariant-linear  one 3 x 3 matrix per degree l, the same for all m: linear dynamics that ignore latitude
    coarse-solver       the equations with fewer degrees

The public shallow-water data are almost linear: a network that does not beat `zonal-linear` there has not learned the
operator. `equivariant-linear` cannot represent Coriolis, and measures what that costs.

Axes: b trajectory, t step, c field, then colatitude and longitude; n pair of frames, l degree, m order.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ssno.base.formatting import number
from ssno.data.normalise import AffineMap
from ssno.data.trajectories import Trajectories
from ssno.evaluation.tables import ResultTable
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.metrics import frame_errors, weighted
from ssno.models.ssno_sphere import low_passed
from ssno.pde.problems.shallow_water import ShallowWater
from ssno.pde.sphere import ShallowWaterEquations
from ssno.transforms.sphere import transform_of

STEPS = (1, 10, 20, 50, 100)
Next = Callable[[Tensor], Tensor]
"""From a normalised frame (b c lat lon) to the next one."""


@dataclass(frozen=True)
class SphereScores:
    """Means over trajectories, one number per predicted step, by name; per field as `rel_l2_area/NAME`."""

    values: Mapping[str, tuple[float, ...]]

    def at(self, name: str, step: int) -> float:
        """A number at a step, counted from 1."""
        return self.values[name][step - 1]

    def to_json(self) -> dict[str, list[float]]:
        """Plain lists."""
        return {name: list(values) for name, values in self.values.items()}


def score_on_sphere(forecaster: Forecaster, data: Trajectories, *, project: bool = False) -> SphereScores:
    """Roll a forecaster out from its input frames to the end of the trajectories."""
    frames = data.read(range(len(data)))
    truth = forecaster.units(frames.state).encode(frames.state)
    inputs = forecaster.window.plan(truth.shape[1]).input_frames
    known = truth.new_zeros(len(truth), len(inputs), 0, *truth.shape[3:])
    with torch.inference_mode():
        first = truth[:, inputs.start : inputs.stop]
        state = forecaster.eval().start(first, known)

        def step(frame: Tensor) -> Tensor:
            nonlocal state
            frame, state = forecaster.step(frame, known[:, 0], state)
            return low_passed(frame) if project else frame

        return score_steps(step, first[:, -1], truth[:, inputs.stop :], data)


def score_rule(rule: Next, data: Trajectories, truth: Float[Tensor, "b t c lat lon"]) -> SphereScores:
    """Scores of a Markovian rule on normalised frames, from frame 0."""
    return score_steps(rule, truth[:, 0], truth[:, 1:], data)


def score_steps(
    step: Next, first: Float[Tensor, "b c lat lon"], truth: Float[Tensor, "b t c lat lon"], data: Trajectories
) -> SphereScores:
    """Score step by step, with one frame in memory; values that are not finite count as infinite."""
    weight = data.quadrature_weights
    if weight is None:
        raise ValueError(f"`data` has the geometry {data.geometry.name!r}, but area-weighted scores need a sphere.")
    collected: dict[str, list[float]] = {}
    frame = first
    for true in truth.unbind(1):
        frame = step(frame)
        for name, values in frame_scores(frame, true, area=weight, fields=data.fields).items():
            mean = torch.where(values.isfinite(), values, torch.inf).double().mean()
            collected.setdefault(name, []).append(float(mean))
    return SphereScores({name: tuple(values) for name, values in collected.items()})


def frame_scores(
    forecast: Float[Tensor, "b c lat lon"], truth: Float[Tensor, "b c lat lon"], *, area: Tensor, fields: Sequence[str]
) -> dict[str, Float[Tensor, " b"]]:
    """All scores of one predicted frame, per trajectory, in normalised units."""
    p, u = forecast[:, None], truth[:, None]
    error = frame_errors(p, u, area=area)[:, 0]
    norms = [torch.linalg.vector_norm(weighted(field, area).flatten(1), dim=1) for field in (p, u)]
    mass = ((forecast - truth)[:, 0] * area.to(forecast)).sum((-1, -2)).abs()
    scores = {"rel_l2_area": error, "rel_l2_area_squared": error**2}
    scores |= {
        f"rel_l2_area/{name}": frame_errors(p[:, :, [c]], u[:, :, [c]], area=area)[:, 0]
        for c, name in enumerate(fields)
    }
    return scores | {"energy_ratio": norms[0] / norms[1], "mass_drift": mass}


def sphere_table(title: str, rows: Mapping[str, SphereScores], *, steps: Sequence[int] = STEPS) -> ResultTable:
    """A row per forecast: its error at some steps, and its energy at the last."""
    headings = ("forecast by", *(f"t = {step}" for step in steps), f"energy at {steps[-1]}")
    return ResultTable(title, headings, tuple(_lines(rows, steps)))


def _lines(rows: Mapping[str, SphereScores], steps: Sequence[int]) -> Iterator[tuple[str, ...]]:
    for name, scores in rows.items():
        errors = (number(scores.at("rel_l2_area", step)) for step in steps)
        yield name, *errors, number(scores.at("energy_ratio", steps[-1]))


Rule = Callable[[Float[Tensor, "b c lat lon"]], Float[Tensor, "b c lat lon"]]


def mean_rule(frame: Float[Tensor, "b c lat lon"]) -> Float[Tensor, "b c lat lon"]:
    """Predict the mean of the training data."""
    return torch.zeros_like(frame)


def persistence_rule(frame: Float[Tensor, "b c lat lon"]) -> Float[Tensor, "b c lat lon"]:
    """Predict the same frame again."""
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
