"""Other data than a run's own (`--data`): how they are read, and words of warning where they differ.

Options that are not given are those of the run's own data (`ssno.data.alike`).
"""

from collections.abc import Sequence
from pathlib import Path

from ssno.cli.main import say
from ssno.data.files.readers.protocol import ReadOptions
from ssno.data.options import DataOptions
from ssno.data.trajectories import Trajectories
from ssno.runs.folder import RunFolder, open_run

TOLERANCE = 0.01  # of a step: times and places stored as rounded decimals still agree


def other_data(run: Path, data: str | None, read: ReadOptions) -> str | DataOptions | None:
    """What `--data` and the options beside it mean for a run; a mere name if nothing else was said."""
    if data is None and read.given:
        raise ValueError(
            f"`--{min(read.given)}` says how to read other data than the run's own. Name them with --data."
        )
    return data if data is None or not read.given else open_run(run).alike(data, read)


def warn_of_other_data(run: RunFolder, data: Trajectories, *, points_asked: bool) -> None:
    """Say so if data have another grid, unless it was asked for, or another time step than those of training."""
    points = [axis.points for axis in data.axes]
    if not points_asked:
        warn_of_other_grid(run, points, data.spacing)
    warn_of_copies(run.forecaster.copies(points, spacing=data.spacing))
    warn_of_other_step(run, data.times.tolist())


def warn_of_other_grid(run: RunFolder, points: Sequence[int], spacing: Sequence[float] = ()) -> None:
    """Say so if a forecast on `points` leaves the grid of the training data.

    Bundled checkpoints know only how far apart their points were: they are asked by `spacing`.
    """
    if run.grid is not None and run.grid != tuple(points):
        here, there = (" x ".join(map(str, grid)) for grid in (points, run.grid))
        asked = " ".join(map(str, run.grid))
        say(
            f"ssno: WARNING: these data have {here} points, {run.name} was trained on {there}. Errors on another grid "
            f"can be far larger (docs/any-grid.md); --points {asked} asks for the grid of training."
        )

    trained = run.forecaster.spacing
    known = run.grid is None and trained is not None and len(trained) == len(spacing)
    if known and any(abs(a - b) > TOLERANCE * b for a, b in zip(spacing, trained or (), strict=True)):
        here, there = (" x ".join(f"{step:.4g}" for step in steps) for steps in (spacing, trained or ()))
        say(
            f"ssno: WARNING: points of these data are {here} apart, those {run.name} was trained on {there}. Errors on "
            "another grid can be far larger (docs/any-grid.md)."
        )


def warn_of_copies(copies: Sequence[int]) -> None:
    """Say so if a forecast is made of interleaved copies of the trained grid."""
    if any(count > 1 for count in copies):
        say(
            f"ssno: NOTE: finer than the trained grid: {' x '.join(map(str, copies))} interleaved copies of it, each "
            "forecast by itself: more points, no finer physics (docs/any-grid.md)."
        )


def warn_of_other_step(run: RunFolder, times: Sequence[float]) -> None:
    """Say so if frames at `times` are not as far apart as those of the training data."""
    if run.time_step is None or len(times) < 2:
        return
    step = float(times[1]) - float(times[0])
    if abs(step - run.time_step) > TOLERANCE * run.time_step:
        say(
            f"ssno: WARNING: frames of these data are {step:.4g} apart, those {run.name} was trained on "
            f"{run.time_step:.4g}. Every step of the forecast is one of training; --time-index START:STOP:STEP chooses "
            "frames."
        )
