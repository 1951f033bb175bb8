"""Results over seeds: every seed a dot, means as bars or lines; distributions as histograms."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TypeVar

import numpy as np
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from ssno.plots.style import Figure, ink, look, palette

LETTERS_PER_COLUMN = 8
"""Characters of a title above a column."""
NARROW = 4.0
"""A logarithmic axis that spans less than this factor has the ticks of a linear one."""
BINS = 80
LINEAR = MaxNLocator(6, steps=[1, 2, 5, 10])
Part = TypeVar("Part")


def filled(parts: Mapping[str, Part]) -> dict[str, Part]:
    """The entries that are not empty."""
    return {name: part for name, part in parts.items() if part}


def seed_dots(groups: Mapping[str, Mapping[str, Sequence[float]]], *, ylabel: str) -> Figure:
    """One panel per group; inside, one column per name: a bar at the mean, a dot for every seed. Logarithmic."""
    groups = filled(groups)
    with look():
        widths = [max(2, len(columns)) for columns in groups.values()]
        figure = Figure(figsize=(1.4 + 0.75 * sum(widths), 3.8))
        panels = figure.subplots(1, len(groups), squeeze=False, width_ratios=widths, sharey=True)[0]
        for panel, (group, columns) in zip(panels, groups.items(), strict=True):
            for place, values in enumerate(columns.values()):
                known = np.asarray([value for value in values if np.isfinite(value)])
                colour = palette()[place % len(palette())]
                if len(known):
                    panel.hlines(known.mean(), place - 0.3, place + 0.3, color=colour, linewidth=3, alpha=0.6)
                    panel.plot(np.full(len(known), place), known, "o", color=colour, markersize=5)
                else:
                    panel.text(place, 0.5, "diverged", rotation=90, transform=panel.get_xaxis_transform(), ha="center")
            panel.set_xticks(range(len(columns)), list(columns), rotation=35, ha="right")
            words = fill(group, LETTERS_PER_COLUMN * max(2, len(columns)), break_long_words=False)
            panel.set(title=words, yscale="log", xlim=(-0.6, len(columns) - 0.4))
            plain_numbers(panel.yaxis)
            panel.grid(axis="x", visible=False)
        panels[0].set_ylabel(ylabel)
        return figure


def seed_lines(
    panels: Mapping[str, Mapping[str, Mapping[float, Sequence[float]]]],
    *,
    xlabel: str,
    ylabel: str,
    xscale: str = "linear",
    ticks: Sequence[float] | None = None,
) -> Figure:
    """One panel per name, one line per label through the means over seeds; every seed a dot. Logarithmic y axis.

    A label has one style in all panels; when colours run out, they repeat with dashes.
    """
    panels = filled({name: filled(lines) for name, lines in panels.items()})
    labels = list(dict.fromkeys(label for lines in panels.values() for label in lines))
    with look():
        figure = Figure(figsize=(1.2 + 3.0 * len(panels), 3.8 + 0.25 * -(-len(labels) // (2 * len(panels)))))
        row = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        shown = {}
        for axes, (name, lines) in zip(row, panels.items(), strict=True):
            for label, points in lines.items():
                again, place = divmod(labels.index(label), len(palette()))
                colour, dashes = palette()[place], ("-", "--", ":")[min(again, 2)]
                places = list(points)
                (shown[label],) = axes.plot(places, [np.mean(points[x]) for x in places], dashes, color=colour)
                for x in places:
                    axes.plot([x] * len(points[x]), points[x], "o", color=colour, markersize=4)
            axes.set(title=name, xlabel=xlabel, xscale=xscale, yscale="log")
            plain_numbers(axes.yaxis)
            if ticks is not None:
                axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
                axes.minorticks_off()
        row[0].set_ylabel(ylabel)
        handles = [shown[label] for label in labels]
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 2 * len(panels)))
        return figure


def outlines(panels: Mapping[str, Mapping[str, np.ndarray]], *, xlabel: str, start: float | None = None) -> Figure:
    """Overlaid histograms, one panel per comparison, means marked; `start` marks the initial value.

    The largest 1 % and the smallest 0.2 % of the values are not drawn.
    """
    with look():
        figure = Figure(figsize=(1.0 + 3.3 * len(panels), 3.4))
        row = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (name, groups) in zip(row, panels.items(), strict=True):
            everything = np.concatenate(list(groups.values()))
            low, high = np.quantile(everything, [0.002, 0.99])
            edges = np.linspace(low, high, BINS + 1)
            for place, (label, values) in enumerate(groups.items()):
                colour = palette()[place]
                told = f"{label}, mean {values.mean():.3f}"
                axes.hist(values, bins=edges, density=True, histtype="stepfilled", alpha=0.35, color=colour, label=told)
                axes.axvline(values.mean(), color=colour, linewidth=1.6)
            if start is not None:
                axes.axvline(start, color=ink(), linewidth=0.9, linestyle=":", label=f"initial, {start:g}")
            axes.set(title=name, xlabel=xlabel, yticks=[])
            axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.2))
        row[0].set_ylabel("density")
        return figure


def learning_curves(panels: Mapping[str, Mapping[str, Sequence[tuple[int, float]]]], *, ylabel: str) -> Figure:
    """Validation error over epochs, one panel per name, one line per label."""
    panels = filled(panels)
    with look():
        figure = Figure(figsize=(1.2 + 3.6 * len(panels), 3.6))
        row = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, (name, lines) in zip(row, panels.items(), strict=True):
            for place, (label, curve) in enumerate(lines.items()):
                if not curve:  # it diverged before it was ever scored
                    continue
                axes.plot(
                    *zip(*curve, strict=True),
                    marker="o",
                    markersize=3,
                    color=palette()[place % len(palette())],
                    label=label,
                )
            axes.set(title=name, xlabel="epoch", yscale="log")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            plain_numbers(axes.yaxis)
        row[0].set_ylabel(ylabel)
        row[-1].legend()
        return figure


class RoundNumbers(LogLocator):
    """Ticks of a logarithmic axis; where it is narrow, those of a linear one."""

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """The ticks between two values."""
        narrow = 0 < vmin < vmax < NARROW * vmin
        return list(LINEAR.tick_values(vmin, vmax) if narrow else super().tick_values(vmin, vmax))


def plain_numbers(axis: Axis) -> None:
    """Label a logarithmic axis 0.1, 0.2, 0.5 instead of by powers of ten."""
    axis.set_major_locator(RoundNumbers(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
