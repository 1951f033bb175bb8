"""A power law through errors at several budgets, what it says about a larger one, and a figure of both.

    log error = a + b (x - x̄),  x = log n                                            least squares
    at x*:  a + b (x* - x̄)  ±  t_{0.975, m-2} sqrt(s_a² + (x* - x̄)² s_b²)            95 % interval

s_a and s_b are the standard errors of a and b. The interval is of the mean error at n*, if the law goes on: it says
nothing about a law that bends.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from scipy import stats

from ssno.plots.style import Figure, ink, look, palette
from ssno.plots.summary import plain_numbers


class Extrapolated(NamedTuple):
    """A mean with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PowerLaw:
    """error = factor n^exponent, with standard errors of the exponent and of the mean of log error."""

    exponent: float
    exponent_error: float
    level: float
    """Mean of log error."""
    level_error: float
    centre: float
    """Mean of log n."""
    count: int

    @property
    def factor(self) -> float:
        return math.exp(self.level - self.exponent * self.centre)

    def at(self, n: float | int) -> Extrapolated:
        """The mean error at n with its 95 % interval; the interval is infinite with two points."""
        ahead = math.log(n) - self.centre
        value = math.exp(self.level + self.exponent * ahead)
        if self.count < 3:
            return Extrapolated(value, 0.0, math.inf)
        width = math.hypot(self.level_error, self.exponent_error * ahead)
        reach = math.exp(float(stats.t.ppf(0.975, self.count - 2)) * width)
        return Extrapolated(value, value / reach, value * reach)


def fit_power_law(n: Sequence[float | int], errors: Sequence[float]) -> PowerLaw:
    """Least squares in logarithms."""
    if len(n) != len(errors) or len(set(n)) < 2:
        raise ValueError(f"`errors` must belong to at least two different `n`, got {list(errors)} at {list(n)}.")
    if not all(math.isfinite(value) and value > 0 for value in (*n, *errors)):
        raise ValueError(f"`n` and `errors` must be positive and finite, got {list(n)} and {list(errors)}.")
    x = np.log(np.asarray(n, dtype=float))
    line = stats.linregress(x - x.mean(), np.log(errors))
    return PowerLaw(line.slope, line.stderr, line.intercept, line.intercept_stderr, float(x.mean()), len(x))


class Rung(NamedTuple):
    """One run: trajectories seen, seconds of training, error."""

    trajectories: int
    seconds: float
    error: float


def budget_curves(
    panels: Mapping[str, Mapping[str, Sequence[Rung]]],
    ends: Mapping[str, tuple[int, Mapping[str, PowerLaw]]],
    *,
    ylabel: str,
    printed: Mapping[str, float],
) -> Figure:
    """A column per problem, a colour per model, a dot per run.

    Laws are drawn as far as `ends` say, with their intervals, and `printed` values stand there as stars.
    """
    with look():
        figure = Figure(figsize=(1.4 + 3.6 * len(panels), 6.4))
        grid = figure.subplots(2, len(panels), squeeze=False, sharey="col")
        for column, (name, models) in enumerate(panels.items()):
            for place, (label, rungs) in enumerate(models.items()):
                _dots(grid[0, column], [(rung.trajectories, rung.error) for rung in rungs], label, place)
                _dots(grid[1, column], [(rung.seconds, rung.error) for rung in rungs], label, place)
            if name in ends:
                end, laws = ends[name]
                for label, law in laws.items():
                    first = min(rung.trajectories for rung in models[label])
                    _law(grid[0, column], law, first, end, list(models).index(label))
                if name in printed:
                    grid[0, column].plot(end, printed[name], "*", color=ink(), markersize=11, label="SS-NO, printed")
            grid[0, column].set(title=name, xlabel="trajectories seen")
            grid[1, column].set(xlabel="seconds of training")
            for axes in grid[:, column]:
                axes.set(xscale="log", yscale="log")
                plain_numbers(axes.yaxis)
        for axes in grid[:, 0]:
            axes.set_ylabel(ylabel)
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        return figure


def _dots(axes: Axes, points: Sequence[tuple[float | int, float]], label: str, place: int) -> None:
    if points:
        axes.plot(*zip(*points, strict=True), "o", color=palette()[place], markersize=5, label=label)


def _law(axes: Axes, law: PowerLaw, first: int, end: int, place: int) -> None:
    x = np.geomspace(first, end, 60)
    found = [law.at(n) for n in x]
    axes.plot(x, [one.value for one in found], color=palette()[place], linewidth=1.2)
    axes.fill_between(x, [one.low for one in found], [one.high for one in found], color=palette()[place], alpha=0.15)
