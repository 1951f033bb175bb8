"""Space-time pictures of one-dimensional trajectories: truth, forecast, difference.

Axes: t frame, x grid point.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from ssno.data.units import labelled
from ssno.plots.labels import PLAIN, Labels
from ssno.plots.scales import colours, difference_colours
from ssno.plots.style import NO_DATA, Figure, look

LABEL_BOX = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5}


def forecast_panels(
    truth: Float[np.ndarray, "t x"],
    forecast: Float[np.ndarray, "s x"],
    *,
    times: Sequence[float],
    length: float,
    labels: Labels = PLAIN,
) -> Figure:
    """Truth, forecast and difference side by side. The forecast covers the last s frames; before it, frames are given.

    Truth and forecast share one colour scale; the difference has its own, printed beside it.
    """
    given = len(truth) - len(forecast)
    shown = np.concatenate([truth[:given], forecast])
    usual = colours(truth)
    panels = [
        ("truth", truth, usual, labels.scale),
        ("forecast", shown, usual, labels.scale),
        ("forecast - truth", shown - truth, difference_colours(shown, truth), "difference"),
    ]
    with look():
        figure = Figure(figsize=(10, 3.6))
        for axes, (name, values, scale, told) in zip(figure.subplots(1, 3, sharey=True), panels, strict=True):
            image = draw(axes, values, times=times, length=length, scale=scale)
            axes.set(title=name, xlabel=labels.axes[0])
            if 0 < given < len(truth):
                edge = (times[given - 1] + times[given]) / 2
                axes.axhline(edge, color="k", linewidth=1, linestyle="--")
                if name == "forecast":
                    axes.text(length * 0.02, edge, "given above", va="bottom", fontsize=8, bbox=LABEL_BOX)
            figure.colorbar(image, ax=axes, shrink=0.9, label=told)
        figure.axes[0].set_ylabel(labelled("time", labels.time_unit))
        figure.suptitle(labels.above(figure, f"{labels.field} in space and time"), fontsize=10)
        return figure


def draw(
    axes: Axes,
    values: Float[np.ndarray, "t x"],
    *,
    times: Sequence[float],
    length: float,
    scale: tuple[str, float, float],
) -> AxesImage:
    """One space-time image, time running downwards; `scale` as `colours` gives it."""
    step = (times[-1] - times[0]) / max(1, len(times) - 1)
    extent = (0.0, length, times[-1] + step / 2, times[0] - step / 2)
    axes.grid(False)
    axes.set_facecolor(NO_DATA)
    colour_map, low, high = scale
    return axes.imshow(
        values, aspect="auto", extent=extent, cmap=colour_map, vmin=low, vmax=high, interpolation="nearest"
    )
