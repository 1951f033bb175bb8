"""Errors of models against how much they were trained: trajectories seen above, seconds below, and where it leads."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from ssno.evaluation.power_law import PowerLaw
from ssno.plots.style import Figure, ink, look, palette
from ssno.plots.summary import plain_numbers


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
