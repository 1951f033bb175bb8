"""Other data than a run's own (`--data`): how they are read, and words of warning where they differ.

Options that are not given are those of the run's own data (`ssno.data.load`).
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ssno.base.terminal import Console
from ssno.cli.main import say
from ssno.data.load import DataOptions
from ssno.data.readers.registry import ReadOptions
from ssno.data.trajectories import Trajectories
from ssno.forecasting.divergence import Departure, Divergence, ForecastDiverged, divergence_lines, horizon_words
from ssno.runs.open import RunFolder
from ssno.training.processes import EXIT_DIVERGED

# When to stop, as a word on the command line: a time of day, or a while from now.

WHILE = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


def moment(text: str, now: datetime, *, option: str) -> datetime:
    """The next moment at which clocks show a time (06:00), or the one after a while (55m, 1h30m, 90s)."""
    found = WHILE.fullmatch(text)
    if text and found:
        hours, minutes, seconds = (float(part or 0) for part in found.groups())
        return now + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    try:
        wanted = datetime.strptime(text, "%H:%M").time()
    except ValueError:
        raise ValueError(
            f"`{option}` must be a time of day as 06:00, or a while as 55m or 1h30m, got {text!r}."
        ) from None
    at = datetime.combine(now.date(), wanted)
    return at if at > now else at + timedelta(days=1)


SWEEP_TABLE = "comparison.csv"
"""What `ssno sweep` writes beside its runs, and a shell therefore takes for one in runs/contest/*."""

# Which part of the work a job does, as a word on the command line: `--shard 2/8` in a job array.


def parse_part(text: str) -> tuple[int, int]:
    """`"2/4"` as (2, 4)."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"`shard` must be i/n with 1 <= i <= n, as 2/4, got {text!r}.")
    return int(match[1]), int(match[2])


# How far a long command is: a bar with the time left on a terminal, plain lines elsewhere. Always on stderr.

Advance = Callable[[float | int, float | int], None]


@contextmanager
def progress(title: str, *, console: Console | None = None, seconds_between_lines: float = 10.0) -> Iterator[Advance]:
    """Yield a function `advance(done, total)` that shows how far the work is."""
    console = Console(stderr=True) if console is None else console
    if not console.is_terminal:
        yield _Lines(title, console, seconds_between_lines)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left:"), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Lines:
    """Prints a line now and then, and one at the end."""

    def __init__(self, title: str, console: Console, seconds: float):
        self.title, self.console, self.seconds = title, console, seconds
        self.start = self.last = time.monotonic()
        self.finished = False

    def __call__(self, done: float | int, total: float | int) -> None:
        now = time.monotonic()
        if self.finished or (done < total and now - self.last < self.seconds) or done <= 0:
            return
        self.last, self.finished = now, done >= total
        left = (now - self.start) * (total - done) / done
        self.console.print(f"{self.title}: {100 * done / total:.0f} %, {left:.0f} s left", highlight=False)


# What `predict` and `rollout` say about how far to trust a forecast, in the words of `ssno.forecasting.divergence`.


def warn_of_horizon(run: RunFolder, steps: int) -> None:
    """Say before a forecast starts that it is to go further than training did."""
    told = horizon_words(run.trained_steps, steps)
    if told is not None:
        say(f"ssno: {run.name} was {told}. Departures from the range of the training data are reported at the end.")


@contextmanager
def exits_without_frames() -> Iterator[None]:
    """Print the error of a forecast that diverged at its first step, and exit with the code of diverged forecasts."""
    try:
        yield
    except ForecastDiverged as error:
        say(f"ssno: {error}")
        raise SystemExit(EXIT_DIVERGED) from error


def tell(
    divergences: Sequence[Divergence], departures: Sequence[Departure], *, recorded: bool, steps: int, asked: int
) -> None:
    """Print which quantities left the range of the training data when, and which trajectories diverged."""
    lines = [f"! {departure.words(recorded=recorded)}" for departure in departures]
    if departures and not recorded:
        lines.append(
            "  The run has no record of its training data; their range is guessed from the input frames and units."
        )
    lines += divergence_lines(divergences)
    if steps < asked:
        lines.append(
            f"Stopped: only the {steps} of {asked} steps before are written; use --on-divergence continue for all."
        )
    for line in lines:
        Console().print(line, highlight=False, soft_wrap=True)


TOLERANCE = 0.01  # of a step: times and places stored as rounded decimals still agree


def other_data(run: RunFolder, data: str | None, read: ReadOptions) -> str | DataOptions | None:
    """What `--data` and the options beside it mean for a run; the name alone if there are no options."""
    if data is None and read.given:
        raise ValueError(
            f"`--{min(read.given)}` says how to read other data than the run's own. Name them with --data."
        )
    return data if data is None or not read.given else run.alike(data, read)


def warn_of_other_data(run: RunFolder, data: Trajectories, *, resolution_given: bool) -> None:
    """Say so if data have another grid, unless it was asked for, or another time step than those of training."""
    points = [axis.points for axis in data.axes]
    if not resolution_given:
        warn_of_other_grid(run, points, data.spacing)
    warn_of_copies(run.forecaster.copies(points, spacing=data.spacing))
    warn_of_other_step(run, data.times.tolist())


def warn_of_other_grid(run: RunFolder, points: Sequence[int], spacing: Sequence[float] = ()) -> None:
    """Say so if a forecast on `points` leaves the grid of the training data.

    Bundled checkpoints know only how far apart their points were: they are asked by `spacing`.
    """
    if run.grid is not None and run.grid != tuple(points):
        here, there = (" x ".join(map(str, grid)) for grid in (points, run.grid))
        finer = len(points) == len(run.grid) and all(n >= own for n, own in zip(points, run.grid, strict=True))
        advice = f"; --resolution {' '.join(map(str, run.grid))} asks for the grid of training" if finer else ""
        say(
            f"ssno: WARNING: these data have {here} points, {run.name} was trained on {there}. Errors on another grid "
            f"can be far larger (docs/manual/any-grid.md){advice}."
        )

    trained = run.forecaster.spacing
    known = run.grid is None and trained is not None and len(trained) == len(spacing)
    if known and any(abs(a - b) > TOLERANCE * b for a, b in zip(spacing, trained or (), strict=True)):
        here, there = (" x ".join(f"{step:.4g}" for step in steps) for steps in (spacing, trained or ()))
        say(
            f"ssno: WARNING: points of these data are {here} apart, those {run.name} was trained on {there}. Errors on "
            "another grid can be far larger (docs/manual/any-grid.md)."
        )


def warn_of_copies(copies: Sequence[int]) -> None:
    """Say so if a forecast is made of interleaved copies of the trained grid."""
    if any(count > 1 for count in copies):
        say(
            f"ssno: NOTE: finer than the trained grid: {' x '.join(map(str, copies))} interleaved copies of it, each "
            "forecast by itself: more points, no finer physics (docs/manual/any-grid.md)."
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
