"""Pictures of the field of view: one panel per model, coloured where information arrives, blank where it never can."""

from collections.abc import Mapping

from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from ssno.theory.field_of_view import FieldOfView

BLIND, SEEN, ACCENT = "#f1efe9", "#0072B2", "#D55E00"


def plot_field_of_view(views: Mapping[str, FieldOfView]) -> Figure:
    """Show what models see, one panel per name, side by side.

    On one axis a panel is the whole table: row = output point, column = input point; the row of the middle output is
    framed. On two axes it is a map of the inputs that the middle output (the square) can depend on; the share in the
    title always counts all pairs of points.
    """
    if not views:
        raise ValueError("`views` is empty. Give at least one named field of view.")
    if {len(view.grid) for view in views.values()} not in ({1}, {2}):
        grids = ", ".join(str(view.grid) for view in views.values())
        raise ValueError(f"`views` must all have one grid axis, or all two, got grids {grids}.")
    figure = Figure(figsize=(0.6 + 2.15 * len(views), 3.3), layout="constrained")
    panels = figure.subplots(1, len(views), squeeze=False)[0]
    colours = ListedColormap([BLIND, SEEN])
    for panel, (name, view) in zip(panels, views.items(), strict=True):
        middle = tuple(points // 2 for points in view.grid)
        on_a_line = len(view.grid) == 1
        table = view.reached if on_a_line else view.inputs_of(*middle)
        # Maps have x to the right and y up; tables have the first output on top.
        panel.imshow(
            table.numpy() if on_a_line else table.numpy().T,
            cmap=colours,
            vmin=0,
            vmax=1,
            interpolation="nearest",
            origin="upper" if on_a_line else "lower",
        )
        if on_a_line:
            panel.add_patch(Rectangle((-0.5, middle[0] - 0.5), view.grid[0], 1, fill=False, ec=ACCENT, lw=1.6))
            panel.set_xlabel("input point")
        else:
            panel.plot(*middle, marker="s", ms=6, mfc=ACCENT, mec="white", mew=0.8)
            panel.set_xlabel("input x")
        panel.set_title(f"{name}\n{_percent(view)} of pairs", fontsize=10)
        panel.grid(False)
        panel.spines[:].set_visible(True)
        panel.set_xticks([0, view.grid[0] - 1])
        panel.set_yticks([0, view.grid[-1] - 1])
    panels[0].set_ylabel("output point" if on_a_line else "input y")
    framed = Patch(fill=False, ec=ACCENT, lw=1.6, label="inputs of the middle output")
    crossed = Patch(color=ACCENT, label="the middle output")
    figure.legend(
        handles=[
            Patch(color=SEEN, label="output can depend on input"),
            Patch(facecolor=BLIND, edgecolor="#999", lw=0.6, label="it never can"),
            framed if on_a_line else crossed,
        ],
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    return figure


def _percent(view: FieldOfView) -> str:
    """A share that reads 100 only if it is."""
    return "100 %" if view.full else f"{min(99.9, 100 * view.fraction):.3g} %"
