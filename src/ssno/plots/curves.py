"""Curves: how a model learned, and how its error grows along a forecast."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ssno.plots.style import Figure, logarithmic, look


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
                axes.plot([line["epoch"] + 1 for line in known], [line[what] for line in known], label=name)
        left.set(title="training loss (one step)", xlabel="epoch")
        right.set(title="validation rel_l2 (rollout)", xlabel="epoch")
        logarithmic(left)
        logarithmic(right)
        right.legend()
        return figure


def error_over_time(
    times: Sequence[float], errors: Mapping[str, Sequence[float]], *, given_until: float | None = None
) -> Figure:
    """Relative error of each predicted frame, one line per model; the given frames are shaded."""
    with look():
        figure = Figure(figsize=(6.5, 3.8))
        axes = figure.subplots()
        for name, values in errors.items():
            axes.plot(times, np.asarray(values), label=name, marker="o", markersize=3)
        if given_until is not None:
            axes.axvspan(0, given_until, color="0.5", alpha=0.15, linewidth=0, label="given", zorder=0)
            axes.set_xlim(left=0)
        axes.set(title="error along the forecast", xlabel="time", ylabel="relative ℓ₂ error")
        logarithmic(axes)
        axes.legend(loc="lower right")
        return figure
