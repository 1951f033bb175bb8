"""What `predict` and `rollout` say about how far to trust a forecast, in the words of `ssno.forecasting.watch`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ssno.base.terminal import Console
from ssno.cli.main import say
from ssno.forecasting.runaway import Divergence, ForecastDiverged
from ssno.forecasting.watch import Departure, horizon_words
from ssno.runs.folder import RunFolder
from ssno.training.interruption import EXIT_DIVERGED

LISTED = 8  # troubles that are printed; --json has them all


def warn_of_horizon(run: RunFolder, steps: int) -> None:
    """Say before a forecast starts that it is to go further than training did."""
    told = horizon_words(run.trained_steps, steps)
    if told is not None:
        say(f"ssno: {run.name} was {told}. What leaves the training data on the way is named at the end.")


@contextmanager
def exits_without_frames() -> Iterator[None]:
    """A forecast of which nothing is worth keeping says so and ends with the code of all that diverge."""
    try:
        yield
    except ForecastDiverged as error:
        say(f"ssno: {error}")
        raise SystemExit(EXIT_DIVERGED) from error


def tell(
    runaways: Sequence[Divergence], departures: Sequence[Departure], *, recorded: bool, steps: int, asked: int
) -> None:
    """When each quantity first left the training data, which trajectories ran away, and what was kept."""
    lines = [f"! {departure.words(recorded=recorded)}" for departure in departures]
    if departures and not recorded:
        lines.append("  This run has no record of its training data: given frames and units stand in for it.")
    lines += [f"! {runaway.words()}" for runaway in runaways[:LISTED]]
    if len(runaways) > LISTED:
        lines.append(f"! and {len(runaways) - LISTED} more; --json lists them all")
    if steps < asked:
        lines.append(f"Stopped there: the {steps} of {asked} steps before are kept; --on-divergence continue goes on.")
    for line in lines:
        Console().print(line, highlight=False, soft_wrap=True)
