"""From an entry to rows: build, check the answers, take turns, compare.

All contestants run once per round (`ssno.evaluation.cost`), so the ratio to the reference can be taken round by
round: what slows the machine for a second slows both. Reported are medians and quartiles of times and of these ratios.
Entries with useful work have one more contestant, a large matrix product: its fastest round is the peak.
"""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from benchmarks.entry import Entry, Goal, TimedCall, difference
from benchmarks.peak import SIZE, matrix_product
from ssno.base.device import threads
from ssno.evaluation.cost import Timing, time_interleaved

LEAST_ROUNDS = 7
PEAK = "sgemm"


class WrongAnswer(RuntimeError):
    """A contestant does not compute what it should, so its time means nothing."""


@dataclass(frozen=True)
class Row:
    """One contestant of one entry; times in ms per unit of work, ratio = time of the reference / own time."""

    entry: str
    contestant: str
    reference: str
    ms: float
    ms_lower: float
    ms_upper: float
    rounds: int
    ratio: float
    ratio_lower: float
    ratio_upper: float
    error: float | None
    gflop_per_s: float | None
    peak_gflop_per_s: float | None
    fraction: float | None
    exponent: float | None
    goal: str
    met: bool | None
    threads: int


def measure(entry: Entry, *, least_rounds: int = LEAST_ROUNDS) -> list[Row]:
    """Check, time and compare the contestants of one entry."""
    with threads(entry.threads):
        tasks = dict(entry.build())
        try:
            if entry.reference not in tasks:
                raise ValueError(f"{entry.name}: the reference {entry.reference!r} is not among {list(tasks)}.")
            errors = {name: checked(entry, name, task) for name, task in tasks.items()}
            runs = {name: task.run for name, task in tasks.items()}
            if entry.gflop is not None:
                runs[PEAK] = matrix_product(SIZE)
            times = time_interleaved(runs, budget=entry.seconds, least_rounds=least_rounds, warm_up=1)
        finally:
            for task in tasks.values():
                task.close()
        return rows_of(entry, tasks, times, errors, torch.get_num_threads())


def checked(entry: Entry, name: str, task: TimedCall) -> float | None:
    """The relative difference from the expected answer; raises `WrongAnswer` if it is too large."""
    if task.expected is None:
        return None
    answer = task.run()
    error = difference(answer if task.fetch is None else task.fetch(), task.expected())
    allowed = entry.tolerance if task.tolerance is None else task.tolerance
    if not error <= allowed:
        raise WrongAnswer(
            f"{entry.name}: {name!r} differs from the expected answer by {error:.2g} (relative), allowed are "
            f"{allowed:g}. Not timed."
        )
    return error


def rows_of(
    entry: Entry,
    tasks: Mapping[str, TimedCall],
    times: Mapping[str, Timing],
    errors: Mapping[str, float | None],
    thread_count: int,
) -> list[Row]:
    """Put the measured times of an entry into rows."""
    peak = None if entry.gflop is None else 2e-9 * SIZE**3 / min(times[PEAK].seconds)
    per_unit = {name: [second / task.amount for second in times[name].seconds] for name, task in tasks.items()}
    exponent = None if entry.growth is None else growth_exponent(per_unit, start=entry.growth.start)
    rows = []
    for name in tasks:
        timing = Timing(tuple(per_unit[name]))
        ratios = Timing(tuple(a / b for a, b in zip(per_unit[entry.reference], per_unit[name], strict=True)))
        speed = None if entry.gflop is None else entry.gflop / times[name].median
        fraction = None if speed is None or peak is None else speed / peak
        goal = entry.goals.get(name, Goal())
        met = goal.met(ratios.median, fraction) if str(goal) else None
        words = str(goal)
        if entry.growth is not None and name == list(tasks)[-1]:
            assert exponent is not None
            met, words = exponent <= entry.growth.at_most, f"exponent <= {entry.growth.at_most:g}"
        rows.append(
            Row(
                entry=entry.name,
                contestant=name,
                reference=entry.reference,
                ms=1e3 * timing.median,
                ms_lower=1e3 * timing.quartiles[0],
                ms_upper=1e3 * timing.quartiles[1],
                rounds=len(timing.seconds),
                ratio=ratios.median,
                ratio_lower=ratios.quartiles[0],
                ratio_upper=ratios.quartiles[1],
                error=errors[name],
                gflop_per_s=speed,
                peak_gflop_per_s=peak,
                fraction=fraction,
                exponent=exponent if entry.growth is not None and name == list(tasks)[-1] else None,
                goal=words,
                met=met,
                threads=entry.threads or thread_count,
            )
        )
    return rows


def growth_exponent(seconds: Mapping[str, list[float]], *, start: int) -> float:
    """The slope of log time over log size, by least squares, from size `start` on; sizes are the names."""
    points = [
        (math.log(int(size)), math.log(statistics.median(values)))
        for size, values in seconds.items()
        if int(size) >= start
    ]
    return statistics.linear_regression(*zip(*points, strict=True)).slope
