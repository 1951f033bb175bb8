"""Images of fields: space-time in one dimension, frames in two, middle planes in three.

Every field has one colour scale for all its panels, symmetric about zero if the field changes sign; a forecast has that
of its truth, the difference one of its own. Points that are not finite are grey.

Axes: n trajectory, t frame, s predicted frame, c field, then the grid. Frames have x to the right and y upwards.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from ssno.data.trajectories import Trajectories
from ssno.data.units import NO_UNITS, PhysicalUnits, labelled, measured
from ssno.plots.geometries import sphere_panels
from ssno.plots.style import (
    PLAIN,
    Figure,
    Labels,
    colours,
    comparison,
    evenly_spaced,
    few_ticks,
    labels_of,
    look,
    show_image,
)

FRAMES, FIELDS = 5, 4
LABEL_BOX = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5}


def frame_panels(
    truth: Float[np.ndarray, "s x y"],
    forecast: Float[np.ndarray, "s x y"],
    *,
    times: Sequence[float],
    lengths: Sequence[float],
    labels: Labels = PLAIN,
) -> Figure:
    """Rows truth, forecast, difference; columns evenly spaced frames."""
    shown = evenly_spaced(len(times), FRAMES)
    extent = (0.0, float(lengths[0]), 0.0, float(lengths[1]))
    aspect: Literal["equal", "auto"] = "equal" if 0.25 <= lengths[0] / lengths[1] <= 4 else "auto"
    with look():
        tall = float(np.clip(1.65 * lengths[1] / lengths[0], 0.95, 1.65))
        figure = Figure(figsize=(1.75 * len(shown) + 1.9, 3 * tall + 1.05))
        grid = figure.subplots(3, len(shown), squeeze=False)
        for axes_row, (name, values, scale, told) in zip(grid, comparison(truth, forecast, labels), strict=True):
            for axes, frame in zip(axes_row, shown, strict=True):
                few_ticks(axes)
                if axes not in grid[:, 0]:  # ticks are slow, and those at the edges hold for all
                    axes.set(yticks=[])
                if axes not in grid[-1]:
                    axes.set(xticks=[])
                image = show_image(axes, values[frame].T[::-1], scale, extent=extent, aspect=aspect)
            axes_row[0].set_ylabel(f"{name}\n{labels.axes[1]}")
            figure.colorbar(image, ax=list(axes_row), shrink=0.9, pad=0.01, label=told)
        for axes, frame in zip(grid[0], shown, strict=True):
            axes.set_title(labels.at(times[frame]), fontsize=9)
        for axes in grid[-1]:
            axes.set_xlabel(labels.axes[0])
        figure.suptitle(labels.above(figure, f"{labels.field}: forecast against truth"), fontsize=10)
        return figure


def forecast_panels(
    truth: Float[np.ndarray, "t x"],
    forecast: Float[np.ndarray, "s x"],
    *,
    times: Sequence[float],
    length: float,
    labels: Labels = PLAIN,
) -> Figure:
    """Space-time images, time running downwards: truth, forecast and difference.

    The forecast covers the last s frames; those before it are the input.
    """
    given = len(truth) - len(forecast)
    shown = np.concatenate([truth[:given], forecast])
    extent, panels = _spacetime_extent(times, length), comparison(truth, shown, labels)
    with look():
        figure = Figure(figsize=(10, 3.6))
        for axes, (name, values, scale, told) in zip(figure.subplots(1, 3, sharey=True), panels, strict=True):
            image = show_image(axes, values, scale, extent=extent)
            axes.set(title=name, xlabel=labels.axes[0])
            if 0 < given < len(truth):
                edge = (times[given - 1] + times[given]) / 2
                axes.axhline(edge, color="k", linewidth=1, linestyle="--")
                if name == "forecast":
                    axes.text(
                        length * 0.02, edge, "input above", va="bottom", fontsize=8, color="#111111", bbox=LABEL_BOX
                    )
            figure.colorbar(image, ax=axes, shrink=0.9, label=told)
        figure.axes[0].set_ylabel(labelled("time", labels.time_unit))
        figure.suptitle(labels.above(figure, f"{labels.field} in space and time"), fontsize=10)
        return figure


def _spacetime_extent(times: Sequence[float] | np.ndarray, length: float) -> tuple[float, float, float, float]:
    half = (times[-1] - times[0]) / max(1, len(times) - 1) / 2 or 0.5
    return (0.0, length, float(times[-1] + half), float(times[0] - half))


def still_picture(
    data: Trajectories,
    truth: Float[np.ndarray, "t *grid"],
    forecast: Float[np.ndarray, "s *grid"],
    *,
    times: Sequence[float],
    labels: Labels,
) -> Figure:
    """The figure that suits the grid of `data`: a forecast of the last frames beside the truth.

    In one dimension the input frames are drawn too; of a box, planes that `as_drawn` gives.
    """
    lengths = [axis.length for axis in data.axes]
    if len(lengths) == 1:
        return forecast_panels(truth, forecast, times=times, length=lengths[0], labels=labels)
    truth, times = truth[-len(forecast) :], times[-len(forecast) :]
    if data.geometry.map_axes:
        return sphere_panels(truth, forecast, times=times, labels=labels)
    return frame_panels(truth, forecast, times=times, lengths=lengths, labels=labels)


class DrawnField(NamedTuple):
    """A field in one or two dimensions, as pictures show it, and what it is called in names of files."""

    name: str
    values: list[np.ndarray]
    labels: Labels


def as_drawn(data: Trajectories, *states: Float[np.ndarray, "..."]) -> list[DrawnField]:
    """The fields of some arrays of frames, channels before the grid, as pictures show them.

    Of a box they are the middle plane of the last axis and, of a velocity, the vorticity seen along it: the largest
    magnitude along each line of sight.
    """
    last, channels, box = data.axes[-1], -1 - len(data.axes), len(data.axes) == 3
    planes = [np.take(state, last.points // 2, axis=-1) if box else state for state in states]
    middle = f"middle {last.name}" if box else ""
    found = [
        DrawnField(name, [np.take(s, c, channels + box) for s in planes], replace(labels_of(data, c), where=middle))
        for c, name in enumerate(data.fields)
    ]
    if box and (flow := velocity_channels(data.fields, [axis.name for axis in data.axes])):
        lengths = [axis.length for axis in data.axes]
        seen = [np.fmax.reduce(vorticity_magnitude(np.take(s, flow, channels), lengths), axis=-1) for s in states]
        labels = Labels("|vorticity|", labels_of(data).axes, data.units.time, where=f"seen along {last.name}")
        found.append(DrawnField("vorticity", seen, labels))
    return found


class Panel(NamedTuple):
    """One image, first row on top; `extent` is left, right, bottom, top."""

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
    """Trajectories at a glance: the first four fields and, in two and three dimensions, five frames.

    In three dimensions the middle planes of every field and, of a velocity, the vorticity seen through the box: the
    largest magnitude along each line of sight. `names` are the space axes, `numbers` the indices of the trajectories.
    """
    dimensions = state.ndim - 3
    if dimensions not in (1, 2, 3):
        raise ValueError(f"`state` must have 1 to 3 space axes after (n, t, c), got shape {state.shape}.")
    numbers = list(range(len(state))) if numbers is None else numbers
    flow = velocity_channels(fields, names) if dimensions == 3 else None
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
    if flow is not None:
        spin = vorticity_magnitude(state[:, :, flow], lengths)
        for cut in (2, 1, 0):
            seen = spin.max(axis=2 + cut)[:, :, None]
            across, up = (name for axis, name in enumerate(names) if axis != cut)
            sides = [length for axis, length in enumerate(lengths) if axis != cut]
            for n in range(len(state)):
                words = f"|vorticity|, trajectory {numbers[n]}\nseen along {names[cut]}: {up} over {across}"
                panels = _frames(seen[n], 0, "", times, sides, (across, up), None, units.time)
                rows.append([panel._replace(label=words, channel=len(scales)) for panel in panels])
        scales.append(("magma", 0.0, float(np.nanmax(spin, initial=1e-12))))
    with look():
        figure = Figure(figsize=(2.3 * len(rows[0]) + 1.4, 2.1 * len(rows) + 0.8))
        grid = figure.subplots(len(rows), len(rows[0]), squeeze=False, sharex=dimensions < 3, sharey="row")
        for position, (axes_row, row) in enumerate(zip(grid, rows, strict=True)):
            for axes, panel in zip(axes_row, row, strict=True):
                aspect: Literal["auto", "equal"] = "auto" if dimensions == 1 else "equal"
                image = show_image(axes, panel.image, scales[panel.channel], extent=panel.extent, aspect=aspect)
                if position == 0:
                    axes.set_title(panel.title, fontsize=9)
            axes_row[0].set_ylabel(row[0].label, fontsize=9)
            figure.colorbar(image, ax=list(axes_row), shrink=0.9, pad=0.01)
        if dimensions < 3:
            figure.supxlabel(names[0], fontsize=9)
        figure.suptitle(title)
        return figure


def velocity_channels(fields: Sequence[str], names: Sequence[str]) -> list[int] | None:
    """The channels of `velocity_x`, `velocity_y` and `velocity_z`, whatever the axes are called; None without them."""
    wanted = [f"velocity_{name}" for name in names]
    return [list(fields).index(name) for name in wanted] if set(wanted) <= set(fields) else None


def vorticity_magnitude(
    velocity: Float[np.ndarray, "*n 3 x y z"], lengths: Sequence[float]
) -> Float[np.ndarray, "*n x y z"]:
    """|curl u| by differences of neighbours, across the edges as in a periodic box."""

    def slope(component: int, axis: int) -> np.ndarray:
        values, step = velocity[..., component, :, :, :], 2 * lengths[axis] / velocity.shape[axis - 3]
        return (np.roll(values, -1, axis - 3) - np.roll(values, 1, axis - 3)) / step

    pairs = ((2, 1), (0, 2), (1, 0))
    return np.sqrt(sum((slope(i, j) - slope(j, i)) ** 2 for i, j in pairs))


def _spacetime(
    state: np.ndarray, channel: int, label: str, times: np.ndarray, length: float, numbers: Sequence[int]
) -> list[Panel]:
    """A field of every trajectory, time running downwards."""
    extent = _spacetime_extent(times, length)
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
    left = [axis for axis in range(frames.ndim - 2) if axis != cut]
    horizontal, vertical = left
    planes = frames[:, channel]
    if cut is not None:
        planes = np.take(planes, planes.shape[cut + 1] // 2, axis=cut + 1)
        label = f"{label}\nmiddle {names[cut]}: {names[vertical]} over {names[horizontal]}"
    else:
        label = f"{label}\n\n{names[vertical]}"
    extent = (0.0, float(lengths[horizontal]), 0.0, float(lengths[vertical]))
    return [
        Panel(planes[t].T[::-1], extent, measured(f"t = {times[t]:.3g}", time_unit), label, channel)
        for t in evenly_spaced(len(frames), FRAMES)
    ]
