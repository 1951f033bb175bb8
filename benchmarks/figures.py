"""Pictures of stored rows: cost against every size, and the time of a predicted frame of every model."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator, StrMethodFormatter

from benchmarks.growth import SWEEPS
from benchmarks.rows import Stored
from ssno.plots.style import COLOURS, look, save

PREFIX = "growth-with-"


def draw(rows: Iterable[Stored], folder: Path) -> list[Path]:
    """Write every picture for which there are rows."""
    rows = list(rows)
    drawn = []
    if any(row["entry"].startswith(PREFIX) for row in rows):
        drawn.append(save(growth_figure(rows), folder / "performance-growth.png"))
    if any(row["entry"].startswith("frame-") for row in rows):
        drawn.append(save(frame_figure(rows), folder / "performance-frame.png"))
    return drawn


def growth_figure(rows: Iterable[Stored]) -> Figure:
    """Time of a training step over each size, log-log, with a line of slope 1 through the last point."""
    rows = list(rows)
    sweeps = {name: [row for row in rows if row["entry"] == f"{PREFIX}{name}"] for name in SWEEPS}
    sweeps = {name: mine for name, mine in sweeps.items() if mine}
    with look():
        figure = Figure(figsize=(9.5, 5.6))
        grid = figure.subplots(2, -(-len(sweeps) // 2), squeeze=False).flatten()
        for axes, (name, mine) in zip(grid, sweeps.items(), strict=False):
            sizes, times = [int(row["contestant"]) for row in mine], [row["ms"] for row in mine]
            lower = [row["ms"] - row["ms_lower"] for row in mine]
            upper = [row["ms_upper"] - row["ms"] for row in mine]
            axes.plot(sizes, [times[-1] * size / sizes[-1] for size in sizes], "--", color="0.7", label="linear")
            axes.errorbar(sizes, times, yerr=[lower, upper], marker="o", markersize=4, color=COLOURS[0])
            axes.set(xscale="log", yscale="log", xlabel=SWEEPS[name][0].of, ylabel="ms per step")
            label_sizes(axes, sizes)
            axes.set_title(f"{name}: time ~ size$^{{{mine[-1]['exponent']:.2f}}}$ at the end")
        grid[0].legend()
        for axes in grid[len(sweeps) :]:
            axes.set_visible(False)
        return figure


def frame_figure(rows: Iterable[Stored]) -> Figure:
    """Time per predicted frame over the number of points, one line per model, ours in front."""
    mine = [row for row in rows if row["entry"].startswith("frame-")]
    names = list(dict.fromkeys(row["contestant"] for row in mine))
    others = [name for name in names if not name.startswith("ssno")]
    with look():
        figure = Figure(figsize=(6.5, 4.2))
        axes = figure.subplots()
        for name in [*others, "ssno"]:
            points = [int(row["entry"].split("-")[1].removeprefix("n")) for row in mine if row["contestant"] == name]
            times = [row["ms"] for row in mine if row["contestant"] == name]
            ours = name == "ssno"
            colour = COLOURS[0] if ours else COLOURS[1 + others.index(name) % (len(COLOURS) - 1)]
            axes.plot(points, times, marker="o", markersize=4, label=name, color=colour, linewidth=3 if ours else 1.4)
        axes.set(xscale="log", yscale="log", xlabel="points", ylabel="ms per predicted frame")
        label_sizes(axes, points)
        axes.set_title("one more frame of a forecast, batch 1")
        axes.legend(ncols=2)
        return figure


def label_sizes(axes: Axes, sizes: Sequence[int]) -> None:
    """Mark the measured sizes themselves, every second or third if there are many, and write plain numbers."""
    axes.set_xticks(sizes[:: -(-len(sizes) // 5)], [f"{size:,}" for size in sizes[:: -(-len(sizes) // 5)]])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
