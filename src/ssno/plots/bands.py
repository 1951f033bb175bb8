"""Curves with bands: errors with their spread over trajectories or seeds, ensembles with their uncertainty.

Axes: n trajectory or seed, t frame, m member, x grid point.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ssno.plots.style import Figure, ink, logarithmic, look, palette

COLUMNS = 4


class Band(NamedTuple):
    """A curve and the range around it."""

    middle: Sequence[float] | np.ndarray
    lower: Sequence[float] | np.ndarray
    upper: Sequence[float] | np.ndarray


def band_of(values: Float[np.ndarray, "n t"]) -> Band:
    """The mean of several curves, and the range that holds the middle half of them."""
    lower, upper = np.quantile(values, [0.25, 0.75], axis=0)
    return Band(values.mean(0), lower, upper)


def error_bands(
    times: Sequence[float],
    bands: Mapping[str, Band],
    *,
    given_until: float | None = None,
    label: str = "relative ℓ₂ error",
    time_label: str = "time",
    title: str = "error along the forecast",
) -> Figure:
    """Error over time with its spread, one colour per forecaster; the time that was given is shaded."""
    with look():
        figure = Figure(figsize=(6.5, 3.6))
        axes = figure.subplots()
        for (name, band), colour in zip(bands.items(), palette() * len(bands), strict=False):
            axes.fill_between(times, band.lower, band.upper, color=colour, alpha=0.2, linewidth=0)
            axes.plot(times, band.middle, color=colour, label=name, marker="o", markersize=2.5)
        if given_until is not None:
            axes.axvspan(0, given_until, color="0.5", alpha=0.15, linewidth=0, label="given", zorder=0)
            axes.set_xlim(left=0)
        axes.set(title=title, xlabel=time_label, ylabel=label)
        logarithmic(axes)
        axes.legend(loc="lower right", fontsize=8)
        return figure


def ensemble_bands(
    positions: Float[np.ndarray, " x"],
    members: Float[np.ndarray, "m t x"],
    truth: Float[np.ndarray, "t x"],
    *,
    times: Sequence[float],
    field: str = "u",
) -> Figure:
    """Mean of an ensemble with one and two standard deviations around it, and the truth, at a few times."""
    if len(members) < 2:
        raise ValueError(f"`members` must hold at least 2 forecasts to have a spread, got {len(members)}.")
    shown = np.unique(np.linspace(0, len(times) - 1, COLUMNS).round().astype(int)).tolist()
    mean, spread = members.mean(0), members.std(0, ddof=1)
    with look():
        figure = Figure(figsize=(2.6 * len(shown) + 0.6, 2.7))
        row = np.atleast_1d(np.asarray(figure.subplots(1, len(shown), sharey=True)))
        colour = palette()[0]
        for axes, frame in zip(row, shown, strict=True):
            for width, alpha in ((2, 0.18), (1, 0.3)):
                low, high = mean[frame] - width * spread[frame], mean[frame] + width * spread[frame]
                axes.fill_between(positions, low, high, color=colour, alpha=alpha, linewidth=0)
            axes.plot(positions, mean[frame], color=colour, label=f"mean of {len(members)}")
            axes.plot(positions, truth[frame], color=ink(), linewidth=1, linestyle="--", label="truth")
            axes.set_title(f"t = {times[frame]:.3g}", fontsize=9)
            axes.set_xlabel("x")
        row[0].set_ylabel(field)
        row[0].legend(fontsize=7)
        figure.suptitle("ensemble: mean, one and two standard deviations", fontsize=10)
        return figure
