"""A few trajectories at a glance: space-time in one dimension, frames in two, middle planes in three.

Every field has one colour scale for all its panels, symmetric about zero if the field changes sign. Where values are
not finite, panels are grey.

Axes: n trajectory, t frame, c field, then the space axes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ssno.data.units import NO_UNITS, PhysicalUnits, measured
from ssno.plots.scales import colours
from ssno.plots.style import NO_DATA, Figure, look

FRAMES, FIELDS = 5, 4


class Panel(NamedTuple):
    """One image: its first row is drawn on top. `extent` is left, right, bottom, top."""

    image: np.ndarray
    extent: tuple[float, float, float, float]
    title: str
    label: str
    channel: int


def gallery(
    state: Float[np.ndarray, "n t c *grid"],
    *,
    fields: Sequence[str],
    times: Float[np.ndarray, " t"],
    lengths: Sequence[float],
    names: Sequence[str] = ("x", "y", "z"),
    numbers: Sequence[int] | None = None,
    title: str = "",
    units: PhysicalUnits = NO_UNITS,
) -> Figure:
    """Draw trajectories. `names` are the space axes, `numbers` what the trajectories are called.

    The first four fields are shown and, in two and three dimensions, five frames.
    """
    dimensions = state.ndim - 3
    if dimensions not in (1, 2, 3):
        raise ValueError(f"`state` must have 1 to 3 space axes after (n, t, c), got shape {state.shape}.")
    numbers = list(range(len(state))) if numbers is None else numbers
    fields = [units.field_label(field) for field in fields[:FIELDS]]
    names = [units.axis_label(name) for name in names]
    if dimensions == 1:
        rows = [
            _spacetime(state, channel, f"{fields[channel]}\n\n{units.time_label}", times, lengths[0], numbers)
            for channel in range(len(fields))
        ]
    else:
        rows = [
            _frames(
                state[n], channel, f"{fields[channel]}, trajectory {numbers[n]}", times, lengths, names, cut, units.time
            )
            for n in range(len(state))
            for channel in range(len(fields))
            for cut in ([None] if dimensions == 2 else [2, 1, 0])
        ]
    scales = [colours(state[:, :, channel]) for channel in range(len(fields))]
    with look():
        figure = Figure(figsize=(2.3 * len(rows[0]) + 1.4, 2.1 * len(rows) + 0.8))
        grid = figure.subplots(len(rows), len(rows[0]), squeeze=False, sharex=dimensions < 3, sharey="row")
        for position, (axes_row, row) in enumerate(zip(grid, rows, strict=True)):
            for axes, panel in zip(axes_row, row, strict=True):
                colour_map, low, high = scales[panel.channel]
                axes.grid(False)
                axes.set_facecolor(NO_DATA)
                image = axes.imshow(
                    panel.image,
                    extent=panel.extent,
                    cmap=colour_map,
                    vmin=low,
                    vmax=high,
                    aspect="auto" if dimensions == 1 else "equal",
                    interpolation="nearest",
                )
                if position == 0:
                    axes.set_title(panel.title, fontsize=9)
            axes_row[0].set_ylabel(row[0].label, fontsize=9)
            figure.colorbar(image, ax=list(axes_row), shrink=0.9, pad=0.01)
        if dimensions < 3:
            figure.supxlabel(names[0], fontsize=9)
        figure.suptitle(title)
        return figure


def _spacetime(
    state: np.ndarray, channel: int, label: str, times: np.ndarray, length: float, numbers: Sequence[int]
) -> list[Panel]:
    """A field of every trajectory, time running downwards."""
    half = (times[-1] - times[0]) / max(1, len(times) - 1) / 2 or 0.5
    extent = (0.0, length, float(times[-1] + half), float(times[0] - half))
    return [Panel(state[n, :, channel], extent, f"trajectory {numbers[n]}", label, channel) for n in range(len(state))]


def _frames(
    frames: np.ndarray,
    channel: int,
    label: str,
    times: np.ndarray,
    lengths: Sequence[float],
    names: Sequence[str],
    cut: int | None,
    time_unit: str,
) -> list[Panel]:
    """Evenly spaced frames of one trajectory; in three dimensions the middle plane across axis `cut`."""
    shown = np.unique(np.linspace(0, len(frames) - 1, FRAMES).round().astype(int)).tolist()
    left = [axis for axis in range(frames.ndim - 2) if axis != cut]
    horizontal, vertical = left
    planes = frames[:, channel]
    if cut is not None:
        planes = np.take(planes, planes.shape[cut + 1] // 2, axis=cut + 1)
        label = f"{label}\nmiddle {names[cut]}: {names[vertical]} over {names[horizontal]}"
    else:
        label = f"{label}\n\n{names[vertical]}"
    extent = (0.0, float(lengths[horizontal]), 0.0, float(lengths[vertical]))
    return [Panel(planes[t].T[::-1], extent, measured(f"t = {times[t]:.3g}", time_unit), label, channel) for t in shown]
