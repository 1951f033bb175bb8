"""The kernels that a model applies: how far each layer looks, and how the memory weighs the past."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ssno.evaluation.inspection import MOST, ONE_FOLD, System
from ssno.plots.style import Figure, ink, look, palette

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
