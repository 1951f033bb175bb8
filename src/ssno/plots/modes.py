"""Learned modes, kernels and memory of a model beside their initial values: the figures of `ssno inspect`."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from ssno.evaluation.inspection import MOST, ONE_FOLD, RunInspection, System
from ssno.plots.style import Figure, ink, look, palette

MOST_COLUMNS = 4
BINS = 60
RIDGE_HEIGHT = 0.95  # in units of the distance between two ridges


def inspection_figures(found: RunInspection) -> dict[str, tuple[str, Callable[[], Figure]]]:
    """All figures of an inspection by file name, each with a description and drawn on request."""
    figures: dict[str, tuple[str, Callable[[], Figure]]] = {}
    for axis in found.axes():
        now, before = found.along(axis)
        if axis == "time":
            figures["memory"] = ("Weight of the last frames in the memory", partial(memory_weights, now[0], before[0]))
            continue
        length, name = now[0].unit * now[0].kernel.shape[1], axis.replace(" ", "-")
        words = f"Damping, wavelength and decay length of the modes along {axis}"
        figures[f"modes-{name}"] = (words, partial(mode_ridges, now, before, length=length))
        figures[f"kernels-{name}"] = (f"Kernels of the layers along {axis}", partial(kernel_panels, now, before))
    return figures


def kernel_panels(systems: Sequence[System], initial: Sequence[System]) -> Figure:
    """Root mean square kernel of every layer along one axis, over the physical distance in both directions.

    Shaded is the reach of the median channel: 63 % and 95 % of the kernel's absolute sum. Dashed: the initial kernel.
    """
    layers = list(dict.fromkeys(system.layer for system in systems))
    columns = min(MOST_COLUMNS, len(layers))
    rows = -(-len(layers) // columns)
    with look():
        figure = Figure(figsize=(2.6 * columns + 0.6, 2.2 * rows + 0.6))
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for number, axes in enumerate(grid.flat):
            if number >= len(layers):
                axes.set_visible(False)
                continue
            mine = [(a, b) for a, b in zip(systems, initial, strict=True) if a.layer == layers[number]]
            _two_sided(axes, mine)
            axes.set_title(f"layer {layers[number]}", fontsize=9)
        figure.supxlabel(f"distance along {systems[0].axis}", fontsize=9)
        figure.supylabel("kernel, rms over channels", fontsize=9)
        figure.suptitle("kernels: 63 % and 95 % of their absolute sum shaded, initial kernels dashed", fontsize=10)
        return figure


def _two_sided(axes: Axes, pairs: list[tuple[System, System]]) -> None:
    """A forward scan sees earlier points (negative distances), a backward scan later ones."""
    colour = palette()[0]
    axes.axvline(0, color=ink(), linewidth=0.6)
    axes.set_xlim(*(-1.02 * pairs[0][0].positions[-1].item(), 1.02 * pairs[0][0].positions[-1].item()))
    for now, before in pairs:
        sign = -1 if now.direction == "forward" else 1
        positions = sign * now.positions.numpy()
        values, started = now.envelope.numpy(), before.envelope.numpy()
        for fraction, alpha in ((MOST, 0.18), (ONE_FOLD, 0.35)):
            inside = np.abs(positions) <= now.reach(fraction).median().item()
            axes.fill_between(positions[inside], values[inside], color=colour, alpha=alpha, linewidth=0)
        axes.plot(positions, values, color=colour, linewidth=1.3)
        axes.plot(positions, started, color=ink(), linewidth=0.9, linestyle="--", alpha=0.7)
    axes.set_ylim(bottom=0)


def memory_weights(memory: System, initial: System) -> Figure:
    """Weight of each of the last K frames in the memory, as a fraction of the kernel's absolute sum.

    Bars are means over channels, whiskers their interquartile range, dashes the initial memory. Age 0 is the newest
    frame.
    """
    shares, started = memory.shares.numpy(), initial.shares.numpy()
    ages = memory.positions.numpy()
    colour = palette()[0]
    with look():
        figure = Figure(figsize=(max(3.8, 1.0 + 0.5 * len(ages)), 2.8))
        axes = figure.subplots()
        lower, upper = np.quantile(shares, [0.25, 0.75], axis=0)
        middle = shares.mean(0)
        whiskers = np.maximum(0, [middle - lower, upper - middle])
        error = {"ecolor": ink(), "elinewidth": 1, "alpha": 0.7}
        axes.bar(ages, middle, width=0.7 * memory.unit, color=colour, alpha=0.75, yerr=whiskers, error_kw=error)
        for age, height in zip(ages, started.mean(0), strict=True):
            edge = 0.42 * memory.unit
            axes.plot([age - edge, age + edge], [height, height], color=ink(), linestyle="--", linewidth=1.2)
        label = "age of the frame" + (" (frames)" if memory.unit == 1 else " (time)")
        axes.set(xlabel=label, ylabel="fraction of the kernel", ylim=(0, None), xticks=ages)
        axes.grid(axis="x", visible=False)
        figure.suptitle("memory: weight of the last frames (initial dashed)", fontsize=10)
        return figure


def mode_ridges(systems: Sequence[System], initial: Sequence[System], *, length: float) -> Figure:
    """Distributions of damping, wavelength and decay length along one axis: a ridge per layer, both directions.

    `length` is the extent of the axis, marked beside the grid spacing.
    """
    if not systems or {s.axis for s in systems} != {systems[0].axis}:
        raise ValueError(f"`systems` must run along one axis, got {sorted({s.axis for s in systems})}.")
    layers = list(dict.fromkeys(system.layer for system in systems))
    marks = {"grid spacing": systems[0].unit, "axis": length}
    panels = {
        "damping (initially 0.5)": ([s.damping for s in systems], [s.damping for s in initial], {}),
        "wavelength": ([s.wavelengths for s in systems], [s.wavelengths for s in initial], marks),
        "decay length": ([s.decay_lengths for s in systems], [s.decay_lengths for s in initial], marks),
    }
    with look():
        figure = Figure(figsize=(9.5, 1.5 + 0.6 * len(layers)))
        row = figure.subplots(1, 3, sharey=True)
        for axes, (title, (now, before, lines)) in zip(row, panels.items(), strict=True):
            grouped = [[_of(layer, systems, values) for layer in layers] for values in (now, before)]
            scale = "log" if lines else "linear"
            _ridges(axes, grouped[0], grouped[1], scale=scale)
            axes.set(xlabel=title, xscale=scale, yticks=range(len(layers)), ylim=(len(layers) - 0.8, -1.05))
            axes.grid(axis="y", visible=False)
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="y", length=0)
            for (label, position), side in zip(lines.items(), ("right", "left"), strict=False):
                axes.axvline(position, color=ink(), linewidth=0.8, linestyle=":")
                place = axes.get_xaxis_transform()  # above the ridges, which would hide it
                axes.text(position, 1.01, label, fontsize=7, va="bottom", ha=side, color="0.5", transform=place)
        row[0].set_yticklabels([layer if not layer.isdigit() else f"layer {layer}" for layer in layers])
        figure.suptitle(f"modes along {systems[0].axis}: learned (colour) and initial (dashed)")
        return figure


def _of(layer: str, systems: Sequence[System], values: Sequence[Tensor]) -> Float[np.ndarray, " n"]:
    return torch.cat([v.flatten() for v, s in zip(values, systems, strict=True) if s.layer == layer]).numpy()


def _ridges(axes: Axes, learned: list[np.ndarray], initial: list[np.ndarray], *, scale: str) -> None:
    everything = np.concatenate([*learned, *initial])
    usable = everything[np.isfinite(everything) & (everything > 0)]
    if not len(usable):  # undamped modes: nothing to show
        axes.text(0.5, 0.5, "none", transform=axes.transAxes, ha="center", color="0.5")
        return
    low, high = np.quantile(usable, [0.005, 0.995])
    edges = (np.geomspace if scale == "log" else np.linspace)(0.8 * low, 1.2 * high, BINS + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    colour = palette()[0]
    for position, (now, before) in enumerate(zip(learned, initial, strict=True)):
        shapes = [_density(values, edges) for values in (now, before)]
        tallest = max(shapes[0].max(), 1e-12)
        heights = [position - RIDGE_HEIGHT * np.minimum(shape / tallest, 1.0) for shape in shapes]
        axes.fill_between(centres, position, heights[0], color=colour, alpha=0.55, linewidth=0, zorder=10 + position)
        axes.plot(centres, heights[0], color=colour, linewidth=1, zorder=10 + position)
        axes.plot(centres, heights[1], color=ink(), linewidth=0.9, linestyle="--", alpha=0.7, zorder=10 + position)


def _density(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """A histogram smoothed over neighbouring bins, as a fraction of all values."""
    counts, _ = np.histogram(values, bins=edges)
    kernel = np.array([1, 4, 6, 4, 1]) / 16
    return np.convolve(counts / max(1, len(values)), kernel, mode="same")
