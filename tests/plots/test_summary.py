"""Pictures of results over seeds can be read: titles stand apart, axes have numbers."""

from itertools import pairwise

from matplotlib.backends.backend_agg import FigureCanvasAgg

from ssno.plots.summary import seed_dots


def test_long_titles_of_narrow_panels_stand_apart() -> None:
    groups = {
        f"TorusVisForce, {given} context": {"K = 4": [0.7, 0.8], "K = 0": [1.1]} for given in ("all", "no", "some")
    }
    figure = seed_dots(groups, ylabel="error")
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    boxes = [panel.title.get_window_extent(renderer) for panel in figure.axes]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_an_axis_that_spans_little_has_several_numbers() -> None:
    figure = seed_dots({"all": {"a": [0.6, 0.7], "b": [1.1]}}, ylabel="error")
    (panel,) = figure.axes
    low, high = panel.get_ylim()
    assert sum(low <= tick <= high for tick in panel.get_yticks()) >= 3
