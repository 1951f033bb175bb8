"""Forecasters side by side on the same trajectories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from ssno.base.amounts import number
from ssno.data.normalise import fit
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.evaluation.tables import ResultTable
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.scores import Scores, score
from ssno.models.count import count_parameters
from ssno.models.registry import model_config

TRIVIAL = ("persistence", "linear")


@dataclass(frozen=True)
class Row:
    """One forecaster's name, size and scores."""

    name: str
    parameters: int
    scores: Scores


def trivial_forecasters(data: Trajectories, window: Window) -> dict[str, Forecaster]:
    """What any model must beat: the last frame again, and a straight line through the last two."""
    channels = {
        "in_channels": len(data.fields) + len(data.context_fields),
        "out_channels": len(data.fields),
        "n_dims": len(data.axes),
    }
    normalisers = fit(data.select(indices=range(1)), "none")
    return {
        name: Forecaster(model_config(name)(**channels).build(), normalisers=normalisers, window=window)
        for name in TRIVIAL
    }


def compare(forecasters: Mapping[str, Forecaster], data: Trajectories) -> list[Row]:
    """Score every forecaster on the same trajectories, best first."""
    rows = [Row(name, count_parameters(f.model), score(f, data)) for name, f in forecasters.items()]
    return sorted(rows, key=lambda row: row.scores.means["rel_l2"])


def as_table(rows: list[Row], *, title: str) -> Table:
    """A table for the terminal: a line per forecaster, its error beside that of the best."""
    best = rows[0].scores.means["rel_l2"]
    lines = []
    for row in rows:
        rollout, onestep = (row.scores.means[name] for name in ("rel_l2", "rel_l2_onestep"))
        ratio = rollout / best if best else float("nan")
        lines.append((row.name, f"{row.parameters:,}", f"{rollout:.4f}", f"{onestep:.4f}", f"{ratio:.1f}"))
    headings = ("forecast by", "parameters", "rel_l2", "rel_l2_onestep", "error, best = 1")
    return ResultTable(title, headings, tuple(lines)).terminal()


def metric_sheet(rows: Sequence[Row], *, title: str) -> ResultTable:
    """All metrics: a line per metric, a column per forecaster."""
    names = dict.fromkeys(name for row in rows for name in row.scores.means)
    lines = [("parameters", *(number(row.parameters) for row in rows))]
    lines += [(name, *(number(row.scores.means.get(name)) for row in rows)) for name in names]
    lines.append(("forecasts that ran away", *(str(len(row.scores.runaways)) for row in rows)))
    return ResultTable(title, ("", *(row.name for row in rows)), tuple(lines))
