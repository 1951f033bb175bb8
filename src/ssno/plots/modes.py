"""What the modes of a model have learned: damping, wavelength and decay length of every layer against the start.

One ridge per layer, learned in colour, initial in outline; one figure per axis.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from ssno.evaluation.inspection import MOST, ONE_FOLD, System
from ssno.plots.style import Figure, ink, look, palette

# The kernels that a model applies: how far each layer looks, and how the memory weighs the past.

MOST_COLUMNS = 4


def kernel_panels(systems: Sequence[System], initial: Sequence[System]) -> Figure:
    """Root mean square kernel of every layer along one axis, behind a point and ahead of it, in physical distance.

    Shaded is the reach of the median channel: 63 % and 95 % of the kernel. The dashed line is where it started.
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
        figure.suptitle("what a point hears: shaded 63 % and 95 % of the kernel, dashed at the start", fontsize=10)
        return figure


def _two_sided(axes: Axes, pairs: list[tuple[System, System]]) -> None:
    """A forward scan hears points before (negative distances), a backward scan points after."""
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
    """How much each of the last K frames weighs in the memory: share of the kernel's absolute sum, channel by channel.

    Bars are means over channels, whiskers the middle half of them, dashes the start. Age 0 is the newest frame.
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
        axes.set(xlabel=label, ylabel="share of the kernel", ylim=(0, None), xticks=ages)
        axes.grid(axis="x", visible=False)
        figure.suptitle("what the memory remembers (dashed: at the start)", fontsize=10)
        return figure


# What the modes of a model have learned: damping, wavelength and decay length of every layer against the start.

BINS = 60
HEIGHT = 0.95  # of a ridge, in units of the distance between two


def mode_ridges(systems: Sequence[System], initial: Sequence[System], *, length: float, unit: str = "") -> Figure:
    """Distributions of damping, wavelength and decay length of the systems along one axis, layer by layer.

    Both directions of a layer count together. `length` is the extent of the axis, marked beside the grid spacing.
    """
    if not systems or {s.axis for s in systems} != {systems[0].axis}:
        raise ValueError(f"`systems` must lie along one axis, got {sorted({s.axis for s in systems})}.")
    layers = list(dict.fromkeys(system.layer for system in systems))
    unit = f" ({unit})" if unit else ""
    marks = {"grid spacing": systems[0].unit, "axis": length}
    panels = {
        "damping (starts at 0.5)": ([s.damping for s in systems], [s.damping for s in initial], {}),
        f"wavelength{unit}": ([s.wavelengths for s in systems], [s.wavelengths for s in initial], marks),
        f"decay length{unit}": ([s.decay_lengths for s in systems], [s.decay_lengths for s in initial], marks),
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
        figure.suptitle(f"modes along {systems[0].axis}: learned (colour) and initial (outline)")
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
        heights = [position - HEIGHT * np.minimum(shape / tallest, 1.0) for shape in shapes]
        axes.fill_between(centres, position, heights[0], color=colour, alpha=0.55, linewidth=0, zorder=10 + position)
        axes.plot(centres, heights[0], color=colour, linewidth=1, zorder=10 + position)
        axes.plot(centres, heights[1], color=ink(), linewidth=0.9, linestyle="--", alpha=0.7, zorder=10 + position)


def _density(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """A histogram smoothed over neighbouring bins, as a share of all values."""
    counts, _ = np.histogram(values, bins=edges)
    kernel = np.array([1, 4, 6, 4, 1]) / 16
    return np.convolve(counts / max(1, len(values)), kernel, mode="same")
