"""What a run will cost: memory counted on parts of it, time measured on these or on whole steps. Writes nothing.

Memory comes first (`ssno.training.memory_forecast`). A run that does not fit is not tried, and its time and disk stay
unknown.
"""

import itertools
import statistics
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ssno.base.device import choose_device
from ssno.base.process_memory import free_memory, held, most_held
from ssno.forecasting.scores import score
from ssno.models.count import count_parameters
from ssno.runs.options import TrainOptions
from ssno.runs.unrolling import Rollout, Stage
from ssno.training.compilation import compiles
from ssno.training.interruption import TrainingInterrupted
from ssno.training.memory_forecast import Spent, forecast_memory, slots_of
from ssno.training.reporter import Silent
from ssno.training.task import Task
from ssno.training.train import run_task

LONG = 0.6
"""Seconds of a step from which on parts of it must do."""
TRIAL_SECONDS, FEWEST_STEPS, MOST_STEPS = 1.0, 3, 20
STAGED = 840
"""Epochs at which the stages of longer runs are looked up."""


@dataclass(frozen=True)
class Estimate:
    """Expected cost of a training run."""

    parameters: int
    steps: int
    memory_bytes: int
    free_memory_bytes: int
    seconds_per_step: float | None = None
    """On several grids: their mean, since all come equally often."""
    seconds_on: dict[int, float] | None = None
    """Of a step on each of several grids, by their points along the first axis."""
    seconds: float | None = None
    disk_bytes: int | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class _Stopwatch(Silent):
    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.moments: list[float] = []

    def step(self, *, step: int, epoch: int, loss: float, rate: float) -> None:
        self.moments.append(self.clock())

    def end(self) -> None:
        self.ended = self.clock()


def estimate(task: Task, *, clock: Callable[[], float] = time.perf_counter) -> Estimate:
    """Count the memory of a run, then measure its steps, evaluations and checkpoints, and scale up.

    Long steps were measured on parts of them while memory was counted: their time is linear in trajectories and frames.
    Short ones are done in a temporary folder, after one that warms up.
    """
    options, spent = task.options, Spent(clock)
    cost = Estimate(
        parameters=count_parameters(task.forecaster.model),
        steps=options.epochs * -(-len(task.data) // options.batch_size),
        memory_bytes=forecast_memory(task, spent=spent),
        free_memory_bytes=free_memory(),
    )
    if cost.memory_bytes - held() > cost.free_memory_bytes:
        return cost
    grids = {points: replace(task, options=replace(options, grids=(points,))) for points in options.grids} or {0: task}
    paces: dict[int, list[float]] = {points: [] for points in grids}
    saving = 0.0
    for stage, share in shares(options).items():
        for points, on_grid in grids.items():
            long = long_step(on_grid, stage, spent)
            seconds, saving = (long, saving) if long > LONG else trial(on_grid, stage, long, clock)
            paces[points].append(share * seconds)
    on = {points: sum(each) for points, each in paces.items()}
    per_step = statistics.mean(on.values())
    evaluations = -(-options.epochs // options.evaluate_every)  # with the best weights every time; one step rehearses
    return replace(
        cost,
        # A compiler in the process has needs of its own, which the trial has shown.
        memory_bytes=max(cost.memory_bytes, most_held())
        if compiles(options.compile, choose_device())
        else cost.memory_bytes,
        seconds_per_step=per_step,
        seconds_on=on if options.grids else None,
        seconds=(1 + cost.steps) * per_step + evaluations * (evaluation(task, spent) + 2 * saving),
        disk_bytes=disk(task),
    )


def shares(options: TrainOptions) -> dict[Stage, float]:
    """The stages of a run with their shares of its epochs; forced frames cost as much as others."""
    looked_at = min(options.epochs, STAGED)
    found = [options.rollout.stage(part * options.epochs // looked_at, options.epochs) for part in range(looked_at)]
    counted = Counter(replace(stage, forcing=float(stage.parallel)) for stage in found)
    return {stage: count / looked_at for stage, count in counted.items()}


def long_step(task: Task, stage: Stage, spent: Spent) -> float:
    """Seconds of a step, from the parts of it that were tried on the grid of the data."""
    axes, options = task.data.axes, task.options
    coarser = (min(options.grids, default=axes[0].points) / axes[0].points) ** len(axes)
    batch = min(options.batch_size, len(task.data))
    return spent.step(stage, batch * slots_of(stage, task.forecaster.window, len(task.data.times))) * coarser


def trial(task: Task, stage: Stage, expected: float, clock: Callable[[], float]) -> tuple[float, float]:
    """Seconds of a step of this stage, the median of some of them, and seconds of saving."""
    watch = _Stopwatch(clock)
    steps = min(MOST_STEPS, max(FEWEST_STEPS, round(TRIAL_SECONDS / max(expected, 1e-6))))
    rollout = Rollout(
        forcing=(stage.forcing,),
        frames=(stage.frames,),
        pushforward=(stage.pushforward,),
        cut=stage.cut if not stage.parallel else 0,
        recompute=stage.recompute and not stage.parallel,
    )
    options = replace(task.options, rollout=rollout, epochs=steps, evaluate_every=steps)
    with TemporaryDirectory() as folder, suppress(TrainingInterrupted):
        run_task(replace(task, options=options), folder=Path(folder), reporter=watch, stop_after=steps)
    paces = [after - before for before, after in itertools.pairwise(watch.moments)]
    return statistics.median(paces) if paces else expected, watch.ended - watch.moments[-1]


def evaluation(task: Task, spent: Spent) -> float:
    """Seconds of an evaluation: of a batch of it once more, if that is short, without counting its memory."""
    count, seconds = max(spent.evaluations.items())
    if seconds <= LONG:
        count = min(len(task.valid), max(1, round(TRIAL_SECONDS / max(seconds / count, 1e-6))), task.options.batch_size)
        chosen, began = task.valid.select(indices=range(count)), spent.clock()
        score(task.forecaster, chosen, batch_size=count)
        seconds = spent.clock() - began
    return seconds / count * len(task.valid)


def disk(task: Task) -> int:
    """Bytes of a finished run: the last and the best checkpoint, those kept on the way, and the best weights twice."""
    options, model = task.options, task.forecaster.model
    weights = sum(value.numel() * value.element_size() for value in model.state_dict().values())
    learned = sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)
    checkpoint = weights + (2 + bool(options.ema)) * learned
    kept = options.epochs // options.keep_every if options.keep_every else 0
    return (2 + kept) * checkpoint + 2 * weights
