"""Two-dimensional forecasts: truth, forecast and difference at a few times.

Axes: s predicted frame, then the grid (x, y). Pictures have x to the right and y upwards.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from ssno.plots.gallery import colours
from ssno.plots.style import DIFFERENCE_MAP, NO_DATA, Figure, look

COLUMNS = 5


def frame_panels(
    truth: Float[np.ndarray, "s x y"],
    forecast: Float[np.ndarray, "s x y"],
    *,
    times: Sequence[float],
    lengths: Sequence[float],
    field: str = "u",
    title: str = "",
) -> Figure:
    """Rows truth, forecast, difference; columns evenly spaced frames, the last among them.

    Truth and forecast share the truth's colours; the difference has its own, symmetric about zero.
    """
    shown = np.unique(np.linspace(0, len(times) - 1, COLUMNS).round().astype(int)).tolist()
    difference = forecast - truth
    finite = difference[np.isfinite(difference)]
    limit = max(float(np.abs(finite).max(initial=0.0)), 1e-12)
    field_map, low, high = colours(truth)
    rows = [
        ("truth", truth, field_map, low, high),
        ("forecast", forecast, field_map, low, high),
        ("forecast - truth", difference, DIFFERENCE_MAP, -limit, limit),
    ]
    extent = (0.0, float(lengths[0]), 0.0, float(lengths[1]))
    with look():
        figure = Figure(figsize=(1.75 * len(shown) + 1.3, 5.6))
        grid = figure.subplots(3, len(shown), squeeze=False, sharex=True, sharey=True)
        for axes_row, (name, values, colour_map, bottom, top) in zip(grid, rows, strict=True):
            for axes, frame in zip(axes_row, shown, strict=True):
                axes.grid(False)
                axes.set_facecolor(NO_DATA)
                image = axes.imshow(
                    values[frame].T[::-1],
                    extent=extent,
                    cmap=colour_map,
                    vmin=bottom,
                    vmax=top,
                    interpolation="nearest",
                )
                axes.set(xticks=[], yticks=[])
            axes_row[0].set_ylabel(name)
            figure.colorbar(image, ax=list(axes_row), shrink=0.9, pad=0.01)
        for axes, frame in zip(grid[0], shown, strict=True):
            axes.set_title(f"t = {times[frame]:.3g}", fontsize=9)
        figure.suptitle(title or f"{field}: forecast against truth")
        return figure
