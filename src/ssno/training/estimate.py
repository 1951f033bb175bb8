"""What a run will cost: memory counted on parts of it, time and disk measured on a few steps of it. Writes nothing.

Memory comes first (`ssno.training.memory_forecast`). A run that does not fit is not tried, and its time and disk stay
unknown.
"""

import statistics
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ssno.base.device import choose_device
from ssno.base.process_memory import free_memory, held, most_held
from ssno.models.count import count_parameters
from ssno.training.compilation import compiles
from ssno.training.interruption import TrainingInterrupted
from ssno.training.memory_forecast import forecast_memory
from ssno.training.reporter import Silent
from ssno.training.task import Task
from ssno.training.train import perform

TRIAL_STEPS = 4


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
    def __init__(self) -> None:
        self.moments = [time.perf_counter()]

    def step(self, *, step: int, epoch: int, loss: float, rate: float) -> None:
        self.moments.append(time.perf_counter())


def estimate(task: Task) -> Estimate:
    """Count the memory of a run, then do a few of its steps in a temporary folder and scale up.

    Evaluations count as forward steps of their data. With several stages of unrolling, time is that of the first.
    """
    options = task.options
    cost = Estimate(
        parameters=count_parameters(task.forecaster.model),
        steps=options.epochs * -(-len(task.data) // options.batch_size),
        memory_bytes=forecast_memory(task),
        free_memory_bytes=free_memory(),
    )
    if cost.memory_bytes - held() > cost.free_memory_bytes:
        return cost
    on = {points: trial(replace(task, options=replace(options, grids=(points,)))) for points in options.grids}
    per_step, written = trial(task) if not on else (statistics.mean(pace for pace, _ in on.values()), on[max(on)][1])
    # A rollout streams: each frame once through the model, forwards only, about a third of a training step.
    evaluations = -(-options.epochs // options.evaluate_every)
    on_own_grid = on[max(on)][0] * task.data.axes[0].points / max(on) if on else per_step
    evaluating = evaluations * len(task.valid) / options.batch_size * on_own_grid * 2 / 3
    kept = options.epochs // options.keep_every if options.keep_every else 0
    return replace(
        cost,
        # A compiler in the process has needs of its own, which the trial has shown.
        memory_bytes=max(cost.memory_bytes, most_held())
        if compiles(options.compile, choose_device())
        else cost.memory_bytes,
        seconds_per_step=per_step,
        seconds_on={points: pace for points, (pace, _) in on.items()} or None,
        seconds=cost.steps * per_step + evaluating,
        disk_bytes=written * (2 + kept),
    )


def trial(task: Task) -> tuple[float, int]:
    """Seconds of a step, from a few of them, and bytes that they leave behind."""
    watch = _Stopwatch()
    with TemporaryDirectory() as folder:
        with suppress(TrainingInterrupted):
            perform(task, folder=Path(folder), reporter=watch, stop_after=TRIAL_STEPS)
        written = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    pace = [after - before for before, after in zip(watch.moments[1:], watch.moments[2:], strict=False)]
    return statistics.median(pace) if pace else watch.moments[-1] - watch.moments[0], written
