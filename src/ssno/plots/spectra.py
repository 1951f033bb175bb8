"""Spectra: does a forecast keep the energy of every scale?"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from ssno.data.units import labelled, measured
from ssno.plots.style import Figure, ink, logarithmic, look, palette

TRUTH = "truth"
DECADES = 10  # below the largest value; deeper is rounding
ABOVE_TRUTH = 1e3
"""How far above the truth a picture reaches: forecasts that run away leave it."""


def spectra(
    wavenumbers: Float[np.ndarray, " s"],
    energies: Mapping[str, Float[np.ndarray, "t s"]],
    *,
    times: Sequence[float],
    field: str = "u",
    time_unit: str = "",
    length_unit: str = "",
) -> Figure:
    """Energy over wavenumber at a few times, one panel each; the truth in ink, forecasts in colour.

    `energies` maps "truth" and the names of forecasts to energies per frame, averaged over trajectories.
    """
    shown = np.unique(np.linspace(0, len(times) - 1, 3).round().astype(int)).tolist()
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
            logarithmic(axes)
            axes.set_title(measured(f"t = {times[frame]:.3g}", time_unit), fontsize=9)
        top = max(float(np.nanmax(values[np.isfinite(values)], initial=1e-30)) for values in energies.values())
        if TRUTH in energies:
            top = min(top, ABOVE_TRUTH * float(energies[TRUTH].max()))
        low = min(float(values[values > 0].min(initial=top)) for values in energies.values())
        if top > 0:
            row[0].set_ylim(max(low / 2, top * 10.0**-DECADES), top * 3)
        row[0].set_ylabel("energy")
        row[-1].legend(fontsize=8)
        figure.suptitle(f"spectrum of {field} along the forecast", fontsize=10)
        return figure
