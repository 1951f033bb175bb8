"""Forecasts on a sphere, step by step: errors weighed by area, how much energy they have, how much mass they lose.

    rel_l2_area(t)          mean over trajectories of |p - u| / |u|, all fields, z-scored units, points weighed by area
    rel_l2_area_squared(t)  the mean of its square, which some public scripts print
    energy_ratio(t)         mean of |p| / |u|: below 1 a forecast has died down, above 1 it has run up
    mass_drift(t)           mean of |<Phi>(p) - <Phi>(u)| in standard deviations, < > the mean over the sphere

In physical units the mean geopotential, 500 times its standard deviation, would swamp everything. The mean forecast
scores 1 and a forecast with the right variance and no correlation sqrt 2. `project` cuts every predicted frame to the
degrees that the data have before it is used again, for any model alike.

Axes: b trajectory, t step, c field, then colatitude and longitude.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base.amounts import number
from ssno.data.trajectories import Trajectories
from ssno.evaluation.tables import ResultTable
from ssno.forecasting.area import areas
from ssno.forecasting.forecaster import Forecaster
from ssno.metrics.relative import frame_errors, weighed
from ssno.models.ssno_sphere import low_passed

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
    """Roll a forecaster out from its given frames to the end of the trajectories."""
    frames = data.read(range(len(data)))
    truth = forecaster.units(frames.state).encode(frames.state)
    given = forecaster.window.plan(truth.shape[1]).given
    known = truth.new_zeros(len(truth), len(given), 0, *truth.shape[3:])
    with torch.inference_mode():
        first = truth[:, given.start : given.stop]
        state = forecaster.eval().start(first, known)

        def step(frame: Tensor) -> Tensor:
            nonlocal state
            frame, state = forecaster.step(frame, known[:, 0], state)
            return low_passed(frame) if project else frame

        return score_steps(step, first[:, -1], truth[:, given.stop :], data)


def score_rule(rule: Next, data: Trajectories, truth: Float[Tensor, "b t c lat lon"]) -> SphereScores:
    """Scores of a Markovian rule on normalised frames, from frame 0."""
    return score_steps(rule, truth[:, 0], truth[:, 1:], data)


def score_steps(
    step: Next, first: Float[Tensor, "b c lat lon"], truth: Float[Tensor, "b t c lat lon"], data: Trajectories
) -> SphereScores:
    """Step by step, so that only one frame is held; what is not finite counts as infinite."""
    weight = areas(data)
    if weight is None:
        raise ValueError(f"`data` has a {data.grid_type} grid, but these scores are for a sphere.")
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
    norms = [torch.linalg.vector_norm(weighed(field, area).flatten(1), dim=1) for field in (p, u)]
    mass = ((forecast - truth)[:, 0] * area.to(forecast)).sum((-1, -2)).abs()
    scores = {"rel_l2_area": error, "rel_l2_area_squared": error**2}
    scores |= {
        f"rel_l2_area/{name}": frame_errors(p[:, :, [c]], u[:, :, [c]], area=area)[:, 0]
        for c, name in enumerate(fields)
    }
    return scores | {"energy_ratio": norms[0] / norms[1], "mass_drift": mass}


def sphere_sheet(title: str, rows: Mapping[str, SphereScores], *, steps: Sequence[int] = STEPS) -> ResultTable:
    """A line per forecast: its error at some steps, and its energy at the last."""
    headings = ("forecast by", *(f"t = {step}" for step in steps), f"energy at {steps[-1]}")
    return ResultTable(title, headings, tuple(_lines(rows, steps)))


def _lines(rows: Mapping[str, SphereScores], steps: Sequence[int]) -> Iterator[tuple[str, ...]]:
    for name, scores in rows.items():
        errors = (number(scores.at("rel_l2_area", step)) for step in steps)
        yield name, *errors, number(scores.at("energy_ratio", steps[-1]))
