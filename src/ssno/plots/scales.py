"""Which colours and limits a field has, in every picture: the one place that decides.

A field that changes sign has a diverging map about zero, one that does not a sequential map over its range. A forecast
has the colours of its truth; its difference from it a diverging map of its own.
"""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ssno.plots.style import DIFFERENCE_MAP, FIELD_MAP

ONE_SIGN_MAP = "viridis"
NEARLY = 0.02
"""A field whose values below (or above) zero reach so little of its range has one sign: undershoot of a solver."""


def colours(values: Float[np.ndarray, "..."]) -> tuple[str, float, float]:
    """Colour map and limits for a field, never empty."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if min(-low, high) > NEARLY * (high - low):
        return FIELD_MAP, -max(-low, high), max(-low, high)
    return (ONE_SIGN_MAP, low, high) if low < high else (ONE_SIGN_MAP, low - 0.5, high + 0.5)


def difference_colours(forecast: Float[np.ndarray, "..."], truth: Float[np.ndarray, "..."]) -> tuple[str, float, float]:
    """Colour map and limits of a difference, at most the truth's range: beyond that a forecast has run away."""
    difference = np.abs(forecast - truth)
    _, low, high = colours(truth)
    limit = min(float(difference[np.isfinite(difference)].max(initial=0.0)), high - low)
    limit = max(limit, 1e-9 * (high - low))
    return DIFFERENCE_MAP, -limit, limit


def few_ticks(axes: Axes) -> None:
    """Numbers at a few places of both axes of a small image."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]))
        axis.set_tick_params(labelsize=8)
