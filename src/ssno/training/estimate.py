"""What a run will cost: memory counted on parts of it, time and disk measured on a few steps of it. Writes nothing.

Memory comes first (`ssno.training.memory`). A run that does not fit is not tried, and time and disk stay unknown.
"""

import statistics
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import nn

from ssno.data.trajectories import Trajectories
from ssno.data.windows import Alignment, Window
from ssno.models.count import count_parameters
from ssno.runs.options import TrainOptions
from ssno.runs.unrolling import check_frames
from ssno.training.interruption import TrainingInterrupted
from ssno.training.memory import forecast_memory, free_memory, resident
from ssno.training.reporter import Silent, memory_in_use
from ssno.training.train import forecaster_for, seen_frames, train

TRIAL_STEPS = 4


@dataclass(frozen=True)
class Estimate:
    """Expected cost of a training run."""

    parameters: int
    steps: int
    memory_bytes: int
    free_memory_bytes: int
    seconds_per_step: float | None = None
    seconds: float | None = None
    disk_bytes: int | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class _Stopwatch(Silent):
    def __init__(self) -> None:
        self.moments = [time.perf_counter()]

    def step(self, *, step: int, epoch: int, loss: float, rate: float) -> None:
        self.moments.append(time.perf_counter())


def estimate(
    model: nn.Module,
    data: Trajectories,
    valid: Trajectories,
    options: TrainOptions,
    *,
    window: Window | None = None,
    alignment: Alignment = "same",
) -> Estimate:
    """Count the memory of a run, then do a few of its steps in a temporary folder and scale up.

    Evaluations count as forward steps of their data. With several stages of unrolling, time is that of the first.
    """
    window = window or Window(size=seen_frames(model))
    check_frames(options.rollout.stages(options.epochs), window, len(data.times))
    forecaster = forecaster_for(model, data, options, window=window, alignment=alignment)
    cost = Estimate(
        parameters=count_parameters(model),
        steps=options.epochs * -(-len(data) // options.batch_size),
        memory_bytes=forecast_memory(forecaster, data, valid, options),
        free_memory_bytes=free_memory(),
    )
    if cost.memory_bytes - resident() > cost.free_memory_bytes:
        return cost
    watch = _Stopwatch()
    with TemporaryDirectory() as folder:
        settings: dict[str, Any] = {"window": window, "alignment": alignment, "stop_after": TRIAL_STEPS}
        with suppress(TrainingInterrupted):
            train(model, data, valid=valid, options=options, folder=folder, reporter=watch, **settings)
        written = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    pace = [after - before for before, after in zip(watch.moments[1:], watch.moments[2:], strict=False)]
    per_step = statistics.median(pace) if pace else watch.moments[-1] - watch.moments[0]
    # A rollout streams: each frame once through the model, forwards only, about a third of a training step.
    evaluations = -(-options.epochs // options.evaluate_every)
    evaluating = evaluations * len(valid) / options.batch_size * per_step * 2 / 3
    kept = options.epochs // options.keep_every if options.keep_every else 0
    return replace(
        cost,
        # A compiler in the process has needs of its own, which the trial has shown.
        memory_bytes=max(cost.memory_bytes, memory_in_use()) if options.compile else cost.memory_bytes,
        seconds_per_step=per_step,
        seconds=cost.steps * per_step + evaluating,
        disk_bytes=written * (2 + kept),
    )
