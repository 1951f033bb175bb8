"""A word of warning: data on another grid than the one a run was trained on."""

from collections.abc import Sequence

from ssno.cli.main import say
from ssno.runs.folder import RunFolder


def warn_of_other_grid(run: RunFolder, points: Sequence[int]) -> None:
    """Say so if a forecast on `points` leaves the grid of the training data."""
    if run.grid is not None and run.grid != tuple(points):
        here, there = (" x ".join(map(str, grid)) for grid in (points, run.grid))
        asked = " ".join(map(str, run.grid))
        say(
            f"ssno: WARNING: these data have {here} points, {run.name} was trained on {there}. Errors on another grid "
            f"can be far larger (docs/any-grid.md); --points {asked} asks for the grid of training."
        )
