"""Is an ensemble as uncertain as it says? Coverage against probability, and spread against error over time."""

from collections.abc import Sequence

from ssno.evaluation.calibration import Calibration
from ssno.plots.style import Figure, ink, look, palette


def calibration_plot(calibration: Calibration, *, times: Sequence[float] | None = None) -> Figure:
    """Left: how often the truth lies in intervals of a given probability. Right: spread and error, frame by frame.

    Below the diagonal, or with a spread below the error, the ensemble is too sure of itself.
    """
    steps = range(1, len(calibration.spread) + 1)
    with look():
        figure = Figure(figsize=(7.6, 3.3))
        left, right = figure.subplots(1, 2)
        colour, other = palette()[:2]
        left.plot([0, 1], [0, 1], color=ink(), linestyle="--", linewidth=1)
        left.fill_between([0, 1], [0, 1], color="0.5", alpha=0.12, linewidth=0)
        left.plot([0, *calibration.nominal], [0, *calibration.observed], color=colour, marker="o", markersize=4)
        left.text(0.97, 0.05, "too sure", ha="right", color="0.5", transform=left.transAxes)
        left.text(0.03, 0.92, "too careful", color="0.5", transform=left.transAxes)
        left.set(xlabel="probability of the interval", ylabel="share of true values inside", xlim=(0, 1), ylim=(0, 1))
        left.set_title("coverage")
        along = list(steps) if times is None else list(times)
        right.plot(along, calibration.error, color=other, label="error of the mean", marker="o", markersize=3)
        right.plot(along, calibration.spread, color=colour, label="spread", marker="o", markersize=3)
        right.set(xlabel="step" if times is None else "time", ylabel="normalised units", ylim=(0, None))
        right.set_title(f"spread over error: {calibration.ratio:.2f}")
        right.legend(fontsize=8)
        return figure
