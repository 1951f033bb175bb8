"""Forecasters side by side on the same trajectories."""

from collections.abc import Mapping
from dataclasses import dataclass

from rich.table import Table

from ssno.data.normalise import fit
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
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
    """A table for the terminal."""
    table = Table(title=title, title_justify="left")
    table.add_column("forecast by")
    table.add_column("parameters", justify="right")
    for name in ("rel_l2", "rel_l2_onestep"):
        table.add_column(name, justify="right")
    table.add_column("error, best = 1", justify="right")
    best = rows[0].scores.means["rel_l2"]
    for row in rows:
        means = row.scores.means
        ratio = means["rel_l2"] / best if best else float("nan")
        table.add_row(
            row.name,
            f"{row.parameters:,}",
            f"{means['rel_l2']:.4f}",
            f"{means['rel_l2_onestep']:.4f}",
            f"{ratio:.1f}",
        )
    return table
