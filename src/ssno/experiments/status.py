"""How far a campaign is: which runs are done, which are under way, and when the rest will be.

Nothing is measured or trained: finished runs say how long they took, runs under way how far they are, and a run that
has not begun takes as long per step as others of its kind. A kind that was never run has no estimate.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ssno.data.options import DataOptions
from ssno.experiments.results import TrialResult
from ssno.experiments.trial import Trial
from ssno.runs.log import read_log


@dataclass(frozen=True)
class Standing:
    """One run: steps done and in all (None if its data are missing), seconds spent, and whether it has its result."""

    trial: Trial
    finished: bool
    done: int
    steps: int | None
    seconds: float

    @property
    def begun(self) -> bool:
        return self.done > 0 and not self.finished


@dataclass(frozen=True)
class Status:
    """Of several runs: how many, finished, begun; seconds left on one core, and how many have no estimate."""

    runs: int
    finished: int
    begun: int
    seconds_left: float
    unforeseen: int


def kind_of(trial: Trial) -> tuple[object, ...]:
    """Runs of one kind cost the same per step."""
    run = trial.run
    config = run.model.to_json()
    config.pop("modes", None)
    train = run.train
    return repr(config), run.data.name, run.data.points, train.batch_size, train.precision, train.grids, train.rollout


def standings(trials: Iterable[Trial], folder: Path) -> list[Standing]:
    """Where every run stands, each once."""
    return [_standing(trial, folder / trial.name) for trial in dict.fromkeys(trials)]


def status(trials: Iterable[Trial], known: Sequence[Standing]) -> Status:
    """Some of the runs together; `known` are those from which times per step are taken."""
    rates: dict[tuple[object, ...], float] = {}
    for standing in known:
        if standing.done and standing.seconds:
            rates[kind_of(standing.trial)] = standing.seconds / standing.done
    wanted = set(trials)
    chosen = [standing for standing in known if standing.trial in wanted]
    seconds, unforeseen = 0.0, 0
    for standing in chosen:
        rate = rates.get(kind_of(standing.trial))
        if standing.finished:
            continue
        if rate is None or standing.steps is None:
            unforeseen += 1
        else:
            seconds += rate * max(0, standing.steps - standing.done)
    finished = sum(standing.finished for standing in chosen)
    return Status(len(chosen), finished, sum(standing.begun for standing in chosen), seconds, unforeseen)


def steps_of(trial: Trial) -> int:
    """Optimiser steps of a run."""
    return trial.run.train.epochs * -(-_trajectories(trial.run.data) // trial.run.train.batch_size)


def steps_done(place: Path) -> int:
    """Steps that a running trial has logged."""
    lines = read_log(place)
    return int(lines[-1]["step"]) if lines else 0


def _standing(trial: Trial, place: Path) -> Standing:
    try:
        steps = steps_of(trial)
    except FileNotFoundError:
        steps = None
    if TrialResult.exists(place):
        seconds = TrialResult.read(place).seconds
        return Standing(trial, True, steps or 0, steps, seconds)
    epochs = [line for line in read_log(place) if line["kind"] == "epoch" and "seconds" in line]
    if not epochs:
        return Standing(trial, False, steps_done(place), steps, 0.0)
    return Standing(trial, False, int(epochs[-1]["step"]), steps, float(epochs[-1]["seconds"]))


@cache
def _trajectories(options: DataOptions) -> int:
    return len(options.load("train"))
