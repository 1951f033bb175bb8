"""Accuracy against cost: error over operations and error over time, with the front of models worth their price."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from ssno.costs.pareto import CostKind, Point, front
from ssno.plots.style import COLOURS, Figure, look

AXIS_LABELS: dict[CostKind, str] = {
    "gflop": "operations of one prediction (GFLOP)",
    "ms": "time of one prediction (ms)",
}
MARKERS = "osD^vPX*<>"


def pareto_figure(points: Sequence[Point]) -> Figure:
    """Two panels. Points of one model on several grids are joined; the front is drawn in grey beneath."""
    with look():
        figure = Figure(figsize=(10, 4.2))
        panels = figure.subplots(1, 2, sharey=True)
        for axes, kind in zip(panels, AXIS_LABELS, strict=True):
            _draw(axes, points, kind)
        panels[0].set_ylabel("relative error of the rollout")
        panels[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        figure.suptitle("Error against cost")
    return figure


def _draw(axes: Axes, points: Sequence[Point], kind: CostKind) -> None:
    best = front(points, kind)
    axes.step([getattr(p, kind) for p in best], [p.rel_l2 for p in best], where="post", color="0.8", lw=6, zorder=0)
    for index, name in enumerate(dict.fromkeys(point.name for point in points)):
        mine = sorted((p for p in points if p.name == name), key=lambda p: getattr(p, kind))
        style = {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}
        axes.plot([getattr(p, kind) for p in mine], [p.rel_l2 for p in mine], label=name, lw=1, **style)  # type: ignore[arg-type]
        for point in mine:
            where = (getattr(point, kind), point.rel_l2)
            axes.annotate(point.grid, where, xytext=(4, 4), textcoords="offset points", fontsize=7, color="0.4")
    axes.set(xscale="log", yscale="log", xlabel=AXIS_LABELS[kind])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
