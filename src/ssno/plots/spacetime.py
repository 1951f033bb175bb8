"""Space-time pictures of one-dimensional trajectories: truth, forecast, difference.

Axes: t frame, x grid point.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from ssno.plots.style import DIFFERENCE_MAP, FIELD_MAP, NO_DATA, Figure, look

LABEL_BOX = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5}


def forecast_panels(
    truth: Float[np.ndarray, "t x"],
    forecast: Float[np.ndarray, "s x"],
    *,
    times: Sequence[float],
    length: float,
    field: str = "u",
    title: str = "",
) -> Figure:
    """Truth, forecast and difference side by side. The forecast covers the last s frames; before it, frames are given.

    Truth and forecast share one colour scale; the difference has its own, printed beside it.
    """
    given = len(truth) - len(forecast)
    shown = np.concatenate([truth[:given], forecast])
    scale = float(np.abs(truth[np.isfinite(truth)]).max(initial=0.0))
    difference = np.abs(shown - truth)
    worst = float(difference[np.isfinite(difference)].max(initial=0.0))
    panels = [
        ("truth", truth, FIELD_MAP, scale),
        ("forecast", shown, FIELD_MAP, scale),
        ("forecast - truth", shown - truth, DIFFERENCE_MAP, max(worst, 1e-12 * scale)),
    ]
    with look():
        figure = Figure(figsize=(10, 3.6))
        for axes, (name, values, colours, limit) in zip(figure.subplots(1, 3, sharey=True), panels, strict=True):
            image = draw(axes, values, times=times, length=length, colours=colours, limit=limit)
            axes.set(title=name, xlabel="x")
            if 0 < given < len(truth):
                edge = (times[given - 1] + times[given]) / 2
                axes.axhline(edge, color="k", linewidth=1, linestyle="--")
                if name == "forecast":
                    axes.text(length * 0.02, edge, "given above", va="bottom", fontsize=8, bbox=LABEL_BOX)
            figure.colorbar(image, ax=axes, shrink=0.9)
        figure.axes[0].set_ylabel("time")
        figure.suptitle(title or f"{field} in space and time")
        return figure


def draw(
    axes: Axes, values: Float[np.ndarray, "t x"], *, times: Sequence[float], length: float, colours: str, limit: float
) -> AxesImage:
    """One space-time image, time running downwards."""
    step = (times[-1] - times[0]) / max(1, len(times) - 1)
    extent = (0.0, length, times[-1] + step / 2, times[0] - step / 2)
    axes.grid(False)
    axes.set_facecolor(NO_DATA)
    return axes.imshow(
        values, aspect="auto", extent=extent, cmap=colours, vmin=-limit, vmax=limit, interpolation="nearest"
    )
