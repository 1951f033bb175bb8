"""What a run will cost, measured on a few of its own steps: time, memory, disk. Writes nothing."""

import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import nn

from ssno.data.trajectories import Trajectories
from ssno.models.count import count_parameters
from ssno.training.interruption import TrainingInterrupted
from ssno.training.options import TrainOptions
from ssno.training.reporter import Silent, memory_in_use
from ssno.training.train import train

TRIAL_STEPS = 4


@dataclass(frozen=True)
class Estimate:
    """Expected cost of a training run."""

    parameters: int
    steps: int
    seconds_per_step: float
    seconds: float
    memory_bytes: int
    disk_bytes: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class _Stopwatch(Silent):
    def __init__(self) -> None:
        self.moments = [time.perf_counter()]

    def begin(self, *, step: int, total: int) -> None:
        self.total = total

    def step(self, *, step: int, epoch: int, loss: float, rate: float) -> None:
        self.moments.append(time.perf_counter())


def estimate(
    model: nn.Module, data: Trajectories, valid: Trajectories, options: TrainOptions, **settings: Any
) -> Estimate:
    """Run a few steps in a temporary folder and scale up; evaluations count as forward steps of their data."""
    watch = _Stopwatch()
    with TemporaryDirectory() as folder:
        try:
            settings |= {"options": options, "folder": folder, "stop_after": TRIAL_STEPS, "reporter": watch}
            train(model, data, valid=valid, **settings)
        except TrainingInterrupted:
            pass
        written = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    pace = [after - before for before, after in zip(watch.moments[1:], watch.moments[2:], strict=False)]
    per_step = statistics.median(pace) if pace else watch.moments[-1] - watch.moments[0]
    # A rollout streams: each frame once through the model, forwards only, about a third of a training step.
    evaluations = -(-options.epochs // options.evaluate_every)
    evaluating = evaluations * len(valid) / options.batch_size * per_step * 2 / 3
    kept = options.epochs // options.keep_every if options.keep_every else 0
    return Estimate(
        parameters=count_parameters(model),
        steps=watch.total,
        seconds_per_step=per_step,
        seconds=watch.total * per_step + evaluating,
        memory_bytes=memory_in_use(),
        disk_bytes=written * (2 + kept),
    )
