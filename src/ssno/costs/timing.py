"""How long things take, measured so that machine noise hits all of them alike.

Each round calls every contestant once, in an order that rotates; a busy moment then spoils one round of all, not all
rounds of one. Reported are median and quartiles, since a mean follows outliers.
"""

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Run = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds of every timed call."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """A quarter of the calls was faster than the first, a quarter slower than the second."""
        if len(self.seconds) < 2:
            return self.seconds[0], self.seconds[0]
        lower, _, upper = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return lower, upper


def time_interleaved(
    runs: Mapping[str, Run], *, budget: float | int, least_rounds: int = 3, most_rounds: int = 200, warm_up: int = 2
) -> dict[str, Timing]:
    """Time every run, taking turns, for about `budget` seconds in all, at least `least_rounds` rounds.

    The first `warm_up` rounds are not counted: caches fill, libraries plan, memory is claimed.
    """
    if not 1 <= least_rounds <= most_rounds:
        raise ValueError(f"`least_rounds` must lie between 1 and most_rounds = {most_rounds}, got {least_rounds}.")
    names = list(runs)
    collected: dict[str, list[float]] = {name: [] for name in names}
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for _ in range(warm_up):
            for name in names:
                runs[name]()
        started = time.perf_counter()
        for done in range(most_rounds):
            if done >= least_rounds and time.perf_counter() - started > budget * done / (done + 1):
                break  # another round would overshoot
            turn = done % max(1, len(names))
            for name in names[turn:] + names[:turn]:
                before = time.perf_counter()
                runs[name]()
                collected[name].append(time.perf_counter() - before)
    finally:
        if collecting:
            gc.enable()
    return {name: Timing(tuple(seconds)) for name, seconds in collected.items()}


def quick_seconds(run: Run, *, rounds: int = 3) -> float:
    """Median seconds of a few calls after one that is not counted: for figures of which the first digit matters."""
    run()
    seconds = []
    for _ in range(rounds):
        before = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - before)
    return statistics.median(seconds)
