"""Run the trials of an experiment: each once, several side by side, interrupted ones from where they stopped.

A trial is done when its folder holds `trial.json`. With several cores each run is a process of its own with one thread,
which on small models gets more done than one run with many threads. Ctrl-C, SIGTERM and a time to stop let every run
save itself; the same call goes on from there. A run that diverges is a result, not an accident: its errors are
infinite.
"""

import math
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from ssno.base.device import threads
from ssno.base.provenance import provenance
from ssno.data.datasets import Plan, build_plan, folder_name
from ssno.data.generation import generate
from ssno.data.load import DataOptions
from ssno.data.manifest import MANIFEST
from ssno.data.solve_shards import GenerationCost
from ssno.data.splits import Split
from ssno.data.trajectories import Trajectories
from ssno.data.windows import dataset_conventions
from ssno.evaluation.evaluate import evaluate
from ssno.evaluation.horizon import long_forecasts
from ssno.evaluation.record import Evaluation
from ssno.forecasting.cloud_scores import CLOUD_METRICS
from ssno.models.operator import count_parameters
from ssno.paper.results import Results, TrialResult, curve_of
from ssno.paper.trial import Trial
from ssno.paper.trivial import unit_interval_factor
from ssno.runs.checkpoint import LAST, has_checkpoint
from ssno.runs.load import load_forecaster
from ssno.runs.log import Silent, read_log
from ssno.runs.run import read_run
from ssno.training.estimate import estimate
from ssno.training.processes import TrainingDiverged
from ssno.training.task import task_for
from ssno.training.train import train

# The status of a campaign. Nothing is measured or trained: finished runs give their time, running ones their step, and
# a run that has not begun is taken to need as long per step as others of its kind, if there are any.


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
    """Numbers of runs; seconds left on one core, and how many runs have no estimate."""

    runs: int
    finished: int
    begun: int
    seconds_left: float
    without_estimate: int


def kind_of(trial: Trial) -> tuple[object, ...]:
    """Runs of one kind cost the same per step."""
    run, train = trial.run, trial.run.train
    config = {name: value for name, value in run.model.to_json().items() if name != "modes"}
    described = (repr(config), run.data.name, run.data.resolution)
    return (*described, train.batch_size, train.precision, train.grids, train.unroll)


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
    left = [standing for standing in chosen if not standing.finished]
    times = [
        rates[kind] * max(0, standing.steps - standing.done)
        for standing in left
        if (kind := kind_of(standing.trial)) in rates and standing.steps is not None
    ]
    begun = sum(standing.begun for standing in chosen)
    return Status(len(chosen), len(chosen) - len(left), begun, sum(times, 0.0), len(left) - len(times))


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


# Running.

Advance = Callable[[float, float], None]
KEPT = (
    "rel_l2",
    "rel_l2_anomaly",
    "rel_l2_normalised",
    "rel_l2_onestep",
    "spectral_error/low",
    "spectral_error/mid",
    "spectral_error/high",
    *CLOUD_METRICS,
    "volume_mse/p",
    "surface_mse/p",
)
LONG_TESTED = 32
"""Test trajectories of long forecasts."""
UNIT_INTERVAL, BEST_VALID, SECONDS = "rel_l2_unit_interval", "rel_l2_best_valid", "seconds_per_forecast"
POLL_SECONDS = 2.0


class Terminated(KeyboardInterrupt):
    """SIGTERM, which has to be passed on to the workers."""


def missing_data(trials: Iterable[Trial]) -> dict[Path, Plan]:
    """The datasets that have to be made, or finished, before these trials can run: where, and what."""
    trials = list(trials)
    needed = dict(plan_of(trial.run.data) for trial in trials)
    needed |= dict(found for trial in trials if (found := longer_plan(trial)))
    # one that was interrupted goes on
    return {folder: plan for folder, plan in needed.items() if not (folder / MANIFEST).is_file()}


def plan_of(data: DataOptions, counts: Mapping[Split, int] | None = None, **options: Any) -> tuple[Path, Plan]:
    """Where a generated dataset is, and how it is made."""
    if data.viscosity is not None:
        options["viscosity"] = data.viscosity
    plan = build_plan(data.name, data.preset, counts=counts, **options)  # type: ignore[arg-type]
    return Path("data") / folder_name(plan.problem, str(data.preset)), plan


def longer_plan(trial: Trial) -> tuple[Path, Plan] | None:
    """The first test trajectories, solved until the end of long forecasts; None if the data are stationary chaos."""
    if not trial.long_steps or trial.run.data.segment is not None:
        return None
    _, usual = plan_of(trial.run.data)
    frames, counts = len(usual.problem.times), usual.counts["test"]
    used = len(range(frames)[dataset_conventions(trial.run.data.name).frames_of(frames)])
    more = -(-(trial.long_steps + trial.run.window.size) // used)
    longer: dict[Split, int] = {"train": 0, "valid": 0, "test": min(LONG_TESTED, counts)}
    folder, plan = plan_of(trial.run.data, longer, frames=more * frames)
    return folder.with_name(f"{folder.name}-{more}-times"), plan


def long_data(trial: Trial) -> Trajectories:
    """Test trajectories for long forecasts."""
    data, found = trial.run.data, longer_plan(trial)
    if found is None:
        data = replace(data, segment=None)
    else:
        usual = dataset_conventions(data.name).time_index
        data = replace(data, path=str(found[0]), time_index=f"::{usual.step or 1}")
    test = data.load("test")
    return test.select(indices=range(min(LONG_TESTED, len(test))))


def make_data(trials: Iterable[Trial], report: Callable[[str], None], advance: Advance) -> None:
    """Generate the datasets that are missing."""
    for folder, plan in missing_data(trials).items():
        report(f"generating {folder}")
        generate(plan, folder, report=advance)


def estimate_data(trials: Iterable[Trial]) -> dict[Path, GenerationCost]:
    """What making the missing datasets would cost; nothing is written."""
    return {folder: generate(plan, folder, dry_run=True).forecast for folder, plan in missing_data(trials).items()}


def run_trials(
    trials: Sequence[Trial], folder: Path, *, cores: int | None, advance: Advance, until: datetime | None = None
) -> Results:
    """Do what is not done yet and return everything; runs still going `until` then save themselves and stop.

    `cores` runs go side by side, one thread each; None runs one after the other with all of torch's threads.
    """
    todo = [trial for trial in dict.fromkeys(trials) if not is_done(trial, folder)]
    with stopped_at(until):
        if cores is not None and cores > 1:
            _side_by_side(todo, folder, workers=cores, advance=advance)
        else:
            with threads(cores):
                for done, trial in enumerate(todo):
                    advance(done, len(todo))
                    run_task(trial, folder)
            advance(len(todo), len(todo))
    return collect(trials, folder)


@contextmanager
def stopped_at(until: datetime | None) -> Iterator[None]:
    """Inside this context SIGTERM stops what runs, and comes by itself at a given time."""
    previous = signal.signal(signal.SIGTERM, _terminate)
    seconds = 0.0 if until is None else max(0.0, (until - datetime.now()).total_seconds())
    clock = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGTERM))
    clock.daemon = True
    try:
        if until is not None:
            clock.start()
        yield
    finally:
        clock.cancel()
        signal.signal(signal.SIGTERM, previous)


def _check(future: Future[None]) -> None:
    """Raise what a worker raised, or an error that it died."""
    try:
        future.result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "A worker process died. The usual causes are too little memory (see `dmesg`; lower `--jobs`), and a "
            'program of your own that calls `main()` without `if __name__ == "__main__":` before it.'
        ) from error


def _side_by_side(todo: Sequence[Trial], folder: Path, *, workers: int, advance: Advance) -> None:
    context = multiprocessing.get_context("spawn")
    steps = {trial: steps_of(trial) for trial in todo}
    with ProcessPoolExecutor(workers, mp_context=context, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        waiting: dict[Future[None], Trial] = {}
        total, queue = sum(steps.values()), deque(todo)
        try:
            while waiting or queue:
                while queue and len(waiting) < workers:  # no more: a worker told to stop would begin the next one
                    trial = queue.popleft()
                    waiting[pool.submit(run_task, trial, folder)] = trial
                finished, _ = wait(waiting, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in finished:
                    _check(future)
                    del waiting[future]
                under_way = sum(
                    steps[trial] - min(steps[trial], steps_done(folder / trial.name)) for trial in waiting.values()
                ) + sum(steps[trial] for trial in queue)
                advance(total - under_way, total)
        except BaseException as stopped:
            if isinstance(stopped, Terminated):  # Ctrl-C reaches the workers by itself
                for worker in multiprocessing.active_children():
                    worker.terminate()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def run_task(trial: Trial, folder: Path) -> None:
    """Train, or go on training, and judge on test trajectories."""
    place = folder / trial.name
    resume = has_checkpoint(place / LAST)
    try:
        train(trial.run, folder=place, resume=resume, overwrite=not resume, reporter=Silent())
        values = judged(evaluate(place, trajectories=trial.tested, write=False), trial)
        if trial.long_steps:
            forecaster = load_forecaster(place)
            values |= long_forecasts(forecaster, long_data(trial), steps=trial.long_steps).values()
    except TrainingDiverged:
        values = dict.fromkeys((*KEPT, UNIT_INTERVAL), float("inf"))
    lines = read_log(place)  # a run may diverge before its first line
    curve = curve_of(lines)
    values[BEST_VALID] = min((error for _, error in curve), default=float("inf"))
    seconds = max((line["seconds"] for line in lines if "seconds" in line), default=0.0)
    parameters = count_parameters(trial.run.build_model())
    TrialResult(values, curve, parameters, seconds, torch.get_num_threads(), provenance()).store(place)


def judged(evaluation: Evaluation, trial: Trial) -> dict[str, float]:
    """The metrics of an evaluation that tables need, and the error in the units of the paper's [0, 1] scaling."""
    means = evaluation.scores.means
    values = {name: error for name, error in means.items() if name in KEPT or name.startswith("rel_l2/")}
    values[SECONDS] = evaluation.seconds or float("nan")
    single = len(evaluation.fields) == 1  # several fields have several factors
    if single and not dataset_conventions(trial.run.data.name).geometry.is_steady:
        values[UNIT_INTERVAL] = means["rel_l2"] * unit_interval_factor(trial.run.data, trial.run.window)
    return values


def metric_names(trials: Iterable[Trial]) -> list[str]:
    """The metrics that `judged` gives for these trials, known before they run."""
    trials = list(trials)
    tests = [data.load("test") for data in {trial.run.data for trial in trials}]
    clouds = any(test.geometry.has_wall for test in tests)
    names = [name for name in KEPT if clouds or name.partition("/")[0] not in CLOUD_METRICS]
    if clouds or any(trial.run.data.segment for trial in trials):
        names.remove("rel_l2_anomaly")  # there is no climatology (`ssno.data.envelope`)
    names += dict.fromkeys(f"rel_l2/{field}" for test in tests if len(test.fields) > 1 for field in test.fields)
    single = any(len(test.fields) == 1 and not test.geometry.is_steady for test in tests)
    return [*names, *([UNIT_INTERVAL] if single else []), BEST_VALID, SECONDS]


def collect(trials: Sequence[Trial], folder: Path) -> Results:
    """The results of all trials that are done."""
    done = [trial for trial in dict.fromkeys(trials) if is_done(trial, folder)]
    return Results({trial: TrialResult.read(folder / trial.name) for trial in done}, folder)


def is_done(trial: Trial, folder: Path) -> bool:
    """Whether a trial has a result, of a run with this very description."""
    place = folder / trial.name
    if not TrialResult.exists(place) or read_run(place) != trial.run:
        return False
    if not trial.long_steps:
        return True
    known = TrialResult.read(place).values
    return known.get("long/steps") == trial.long_steps or not math.isfinite(known["rel_l2"])


def estimate_trials(trials: Sequence[Trial], folder: Path) -> Iterator[tuple[Trial, float | None]]:
    """Seconds of every unfinished trial on one thread, each kind of run measured once; None without its data."""
    known: dict[tuple[object, ...], float] = {}
    for trial in dict.fromkeys(trials):
        if is_done(trial, folder):
            continue
        if missing_data([trial]):
            yield trial, None
            continue
        run, kind = trial.run, kind_of(trial)
        if kind not in known:
            unroll = run.train.unroll
            stages = max(len(unroll.teacher_forcing), len(unroll.frames), len(unroll.pushforward))
            options = replace(run.train, epochs=stages, evaluate_every=stages)
            cost = estimate(task_for(replace(run, train=options)))
            known[kind] = cost.seconds_per_step or float("nan")
        yield trial, known[kind] * steps_of(trial)
