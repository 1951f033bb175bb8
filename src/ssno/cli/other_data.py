"""Words of warning: data on another grid, or with another time step, than those a run was trained on."""

from collections.abc import Sequence

from ssno.cli.main import say
from ssno.runs.folder import RunFolder

STEP_TOLERANCE = 0.01  # of a time step: times stored as rounded decimals still agree


def warn_of_other_grid(run: RunFolder, points: Sequence[int]) -> None:
    """Say so if a forecast on `points` leaves the grid of the training data."""
    if run.grid is not None and run.grid != tuple(points):
        here, there = (" x ".join(map(str, grid)) for grid in (points, run.grid))
        asked = " ".join(map(str, run.grid))
        say(
            f"ssno: WARNING: these data have {here} points, {run.name} was trained on {there}. Errors on another grid "
            f"can be far larger (docs/any-grid.md); --points {asked} asks for the grid of training."
        )


def warn_of_other_step(run: RunFolder, times: Sequence[float]) -> None:
    """Say so if frames at `times` are not as far apart as those of the training data."""
    if run.time_step is None or len(times) < 2:
        return
    step = float(times[1]) - float(times[0])
    if abs(step - run.time_step) > STEP_TOLERANCE * run.time_step:
        say(
            f"ssno: WARNING: frames of these data are {step:.4g} apart, those {run.name} was trained on "
            f"{run.time_step:.4g}. Every step of the forecast is one of training; --time-index START:STOP:STEP chooses "
            "frames."
        )
