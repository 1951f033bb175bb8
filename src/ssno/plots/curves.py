"""Curves: training, error along a forecast, calibration of ensembles, spectra, error against cost."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from ssno.data.units import labelled, measured
from ssno.evaluation.cost_table import CostKind, Point, front
from ssno.evaluation.record import Calibration
from ssno.plots.style import COLOURS, Figure, evenly_spaced, ink, logarithmic, look, palette

# Axes: n trajectory or seed, t frame, m ensemble member, x grid point, k wavenumber.

COLUMNS = 4


class Band(NamedTuple):
    """A curve and the range around it."""

    middle: Sequence[float] | np.ndarray
    lower: Sequence[float] | np.ndarray
    upper: Sequence[float] | np.ndarray


def band_of(values: Float[np.ndarray, "n t"]) -> Band:
    """The mean of several curves, and their interquartile range."""
    lower, upper = np.quantile(values, [0.25, 0.75], axis=0)
    return Band(values.mean(0), lower, upper)


def error_bands(
    times: Sequence[float],
    bands: Mapping[str, Band],
    *,
    given_until: float | None = None,
    label: str = "relative ℓ₂ error",
    time_label: str = "time",
    title: str = "rollout error",
) -> Figure:
    """Error over time with its spread, one colour per forecaster; the time of the input frames is shaded."""
    with look():
        figure = Figure(figsize=(6.5, 3.6))
        axes = figure.subplots()
        for (name, band), colour in zip(bands.items(), palette() * len(bands), strict=False):
            axes.fill_between(times, band.lower, band.upper, color=colour, alpha=0.2, linewidth=0)
            axes.plot(times, band.middle, color=colour, label=name, marker="o", markersize=2.5)
        if given_until is not None:
            late = 2 * given_until > times[-1]  # data that begin long after 0
            left = given_until - 0.2 * (times[-1] - given_until) if late else 0.0
            axes.axvspan(left, given_until, color="0.5", alpha=0.15, linewidth=0, label="input", zorder=0)
            axes.set_xlim(left=left)
        axes.set(title=title, xlabel=time_label, ylabel=label)
        logarithmic(axes)
        axes.legend(fontsize=8)
        return figure


def ensemble_bands(
    positions: Float[np.ndarray, " x"],
    members: Float[np.ndarray, "m t x"],
    truth: Float[np.ndarray, "t x"],
    *,
    times: Sequence[float],
    field: str = "u",
    axis: str = "x",
    time_unit: str = "",
) -> Figure:
    """Mean of an ensemble with one and two standard deviations around it, and the truth, at a few times."""
    if len(members) < 2:
        raise ValueError(f"`members` must hold at least 2 forecasts to have a spread, got {len(members)}.")
    shown = evenly_spaced(len(times), COLUMNS)
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
            axes.set_title(measured(f"t = {times[frame]:.3g}", time_unit), fontsize=9)
            axes.set_xlabel(axis)
        row[0].set_ylabel(field)
        row[0].legend(fontsize=7)
        figure.suptitle("ensemble: mean, one and two standard deviations", fontsize=10)
        return figure


def loss_curves(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Training loss and validation error over epochs; `runs` maps names to the lines of their metrics.jsonl.

    An epoch without a number (not validated, or damaged) is left out.
    """
    with look():
        figure = Figure(figsize=(7, 3.6))
        left, right = figure.subplots(1, 2, sharex=True)
        for name, lines in runs.items():
            for axes, what in ((left, "train_loss"), (right, "rel_l2")):
                known = [line for line in lines if line["kind"] == "epoch" and isinstance(line.get(what), int | float)]
                epochs, values = [line["epoch"] + 1 for line in known], [line[what] for line in known]
                axes.plot(epochs, values, label=name, marker="o", markersize=2.5)
        left.set(title="training loss (one step)", xlabel="epoch")
        right.set(title="validation rel_l2 (rollout)", xlabel="epoch")
        logarithmic(left)
        logarithmic(right)
        right.legend()
        return figure


def calibration_plot(
    calibration: Calibration, *, times: Sequence[float] | None = None, time_label: str = "time"
) -> Figure:
    """Left: observed coverage of central intervals over their probability. Right: spread and error of every frame.

    Below the diagonal, or with a spread below the error, the ensemble is overconfident.
    """
    steps = range(1, len(calibration.spread) + 1)
    with look():
        figure = Figure(figsize=(7.6, 3.3))
        left, right = figure.subplots(1, 2)
        colour, other = palette()[:2]
        left.plot([0, 1], [0, 1], color=ink(), linestyle="--", linewidth=1)
        left.fill_between([0, 1], [0, 1], color="0.5", alpha=0.12, linewidth=0)
        left.plot([0, *calibration.nominal], [0, *calibration.observed], color=colour, marker="o", markersize=4)
        left.text(0.97, 0.05, "overconfident", ha="right", color="0.5", transform=left.transAxes)
        left.text(0.03, 0.92, "underconfident", color="0.5", transform=left.transAxes)
        left.set(xlabel="nominal coverage", ylabel="observed coverage", xlim=(0, 1), ylim=(0, 1))
        left.set_title("coverage")
        along = list(steps) if times is None else list(times)
        right.plot(along, calibration.error, color=other, label="error of the mean", marker="o", markersize=3)
        right.plot(along, calibration.spread, color=colour, label="spread", marker="o", markersize=3)
        right.set(xlabel="step" if times is None else time_label, ylabel="normalised units", ylim=(0, None))
        right.set_title(f"spread over error: {calibration.ratio:.2f}")
        right.legend(fontsize=8)
        return figure


TRUTH = "truth"
DECADES = 10  # below the largest value; deeper is rounding
ABOVE_TRUTH = 1e3
"""How far above the truth the axis reaches; diverged forecasts leave it."""


def spectra(
    wavenumbers: Float[np.ndarray, " k"],
    energies: Mapping[str, Float[np.ndarray, "t k"]],
    *,
    times: Sequence[float],
    field: str = "u",
    time_unit: str = "",
    length_unit: str = "",
) -> Figure:
    """Energy over wavenumber at a few times, one panel each; the truth in black, forecasts in colour.

    `energies` maps "truth" and the names of forecasts to energies per frame, averaged over trajectories.
    """
    shown = evenly_spaced(len(times), 3)
    with look():
        figure = Figure(figsize=(3.1 * len(shown) + 0.5, 3.0))
        row = np.atleast_1d(np.asarray(figure.subplots(1, len(shown), sharey=True)))
        for axes, frame in zip(row, shown, strict=True):
            colours = iter(palette() * len(energies))
            for name, values in energies.items():
                true = name == TRUTH
                style = {"color": ink() if true else next(colours), "linewidth": 1.2 if true else 1.8}
                axes.plot(wavenumbers[1:], values[frame, 1:], label=name, zorder=1 if true else 2, **style)
            axes.set(xscale="log", xlabel=labelled("wavenumber", f"rad / {length_unit}" * bool(length_unit)))
            axes.xaxis.set_minor_formatter(NullFormatter())  # on short axes they would overlap
            if len(wavenumbers) > 1 and wavenumbers[-1] < 100 * wavenumbers[1]:
                axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
                axes.xaxis.set_major_formatter("{x:.3g}")
            logarithmic(axes)
            axes.set_title(measured(f"t = {times[frame]:.3g}", time_unit), fontsize=9)
        top = max(float(np.nanmax(values[np.isfinite(values)], initial=1e-30)) for values in energies.values())
        if TRUTH in energies:
            top = min(top, ABOVE_TRUTH * float(energies[TRUTH].max()))
        low = min(float(drawn[drawn > 0].min(initial=top)) for values in energies.values() for drawn in [values[:, 1:]])
        if top > 0:
            row[0].set_ylim(max(low / 2, top * 10.0**-DECADES), top * 3)
        row[0].set_ylabel("energy")
        row[-1].legend(fontsize=8)
        figure.suptitle(f"energy spectrum of {field}", fontsize=10)
        return figure


AXIS_LABELS: dict[CostKind, str] = {
    "gflop": "operations of one prediction (GFLOP)",
    "ms": "time of one prediction (ms)",
}
MARKERS = "osD^vPX*<>"


def pareto_figure(points: Sequence[Point]) -> Figure:
    """Error over operations and over time: points of one model on several grids joined, the Pareto front grey."""
    with look():
        figure = Figure(figsize=(10, 4.2))
        panels = figure.subplots(1, 2, sharey=True)
        for axes, kind in zip(panels, AXIS_LABELS, strict=True):
            _draw(axes, points, kind)
        panels[0].set_ylabel("rel_l2 (rollout)")
        panels[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        figure.suptitle("Error against cost")
    return figure


def _draw(axes: Axes, points: Sequence[Point], kind: CostKind) -> None:
    best = front(points, kind)
    axes.step([getattr(p, kind) for p in best], [p.rel_l2 for p in best], where="post", color="0.8", lw=6, zorder=0)
    for index, name in enumerate(dict.fromkeys(point.name for point in points)):
        mine = sorted((p for p in points if p.name == name), key=lambda p: getattr(p, kind))
        style = {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}
        axes.plot([getattr(p, kind) for p in mine], [p.rel_l2 for p in mine], label=name, lw=1, **style)  # type: ignore[arg-type]
        for point in mine:
            where = (getattr(point, kind), point.rel_l2)
            axes.annotate(point.grid, where, xytext=(4, 4), textcoords="offset points", fontsize=7, color="0.4")
    axes.set(xscale="log", yscale="log", xlabel=AXIS_LABELS[kind])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
