"""Two-dimensional forecasts: truth, forecast and difference at a few times.

Axes: s predicted frame, then the grid (x, y). Pictures have x to the right and y upwards.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float

from ssno.plots.labels import PLAIN, Labels
from ssno.plots.scales import colours, difference_colours, few_ticks
from ssno.plots.style import NO_DATA, Figure, look

COLUMNS = 5


def frame_panels(
    truth: Float[np.ndarray, "s x y"],
    forecast: Float[np.ndarray, "s x y"],
    *,
    times: Sequence[float],
    lengths: Sequence[float],
    labels: Labels = PLAIN,
) -> Figure:
    """Rows truth, forecast, difference; columns evenly spaced frames, the last among them.

    Truth and forecast share the truth's colours; the difference has its own, symmetric about zero.
    """
    shown = np.unique(np.linspace(0, len(times) - 1, COLUMNS).round().astype(int)).tolist()
    usual = colours(truth)
    rows = [
        ("truth", truth, usual, labels.scale),
        ("forecast", forecast, usual, labels.scale),
        ("difference", forecast - truth, difference_colours(forecast, truth), "forecast - truth"),
    ]
    extent = (0.0, float(lengths[0]), 0.0, float(lengths[1]))
    aspect: Literal["equal", "auto"] = "equal" if 0.25 <= lengths[0] / lengths[1] <= 4 else "auto"
    with look():
        tall = float(np.clip(1.65 * lengths[1] / lengths[0], 0.95, 1.65))
        figure = Figure(figsize=(1.75 * len(shown) + 1.9, 3 * tall + 1.05))
        grid = figure.subplots(3, len(shown), squeeze=False)
        for axes_row, (name, values, (colour_map, bottom, top), told) in zip(grid, rows, strict=True):
            for axes, frame in zip(axes_row, shown, strict=True):
                few_ticks(axes)
                if axes not in grid[:, 0]:  # numbers at the edges hold for all; ticks are what takes time
                    axes.set(yticks=[])
                if axes not in grid[-1]:
                    axes.set(xticks=[])
                axes.grid(False)
                axes.set_facecolor(NO_DATA)
                image = axes.imshow(
                    values[frame].T[::-1],
                    extent=extent,
                    cmap=colour_map,
                    vmin=bottom,
                    vmax=top,
                    interpolation="nearest",
                    aspect=aspect,
                )
            axes_row[0].set_ylabel(f"{name}\n{labels.axes[1]}")
            figure.colorbar(image, ax=list(axes_row), shrink=0.9, pad=0.01, label=told)
        for axes, frame in zip(grid[0], shown, strict=True):
            axes.set_title(labels.at(times[frame]), fontsize=9)
        for axes in grid[-1]:
            axes.set_xlabel(labels.axes[0])
        figure.suptitle(labels.above(figure, f"{labels.field}: forecast against truth"), fontsize=10)
        return figure
