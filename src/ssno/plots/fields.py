"""A few trajectories at a glance: space-time in one dimension, frames in two, middle planes in three.

Every field has one colour scale for all its panels, symmetric about zero if the field changes sign. Where values are
not finite, panels are grey.

Axes: n trajectory, t frame, c field, then the space axes.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from ssno.data.units import NO_UNITS, PhysicalUnits, labelled, measured
from ssno.plots.style import NO_DATA, PLAIN, Figure, Labels, colours, difference_colours, few_ticks, look

# Two-dimensional forecasts: truth, forecast and difference at a few times.
#
# Axes: s predicted frame, then the grid (x, y). Pictures have x to the right and y upwards.

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


# Space-time pictures of one-dimensional trajectories: truth, forecast, difference.
#
# Axes: t frame, x grid point.

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


# A few trajectories at a glance: space-time in one dimension, frames in two, middle planes in three.

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
