"""What a run will cost: memory counted on parts of it, time measured on these or on whole steps. Writes nothing.

Memory comes first (`ssno.training.estimate`). A run that does not fit is not tried, and its time and disk stay
unknown.
"""

import itertools
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from ssno.base.device import choose_device
from ssno.base.memory import free_memory, held, most_held, peak_memory
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.scores import score
from ssno.models.operator import count_parameters
from ssno.runs.log import Silent
from ssno.runs.options import Stage, TrainOptions, Unrolling
from ssno.training.batches import prepare
from ssno.training.loop import run_task
from ssno.training.objective import Objective, compiles, optimiser_bytes
from ssno.training.processes import TrainingInterrupted
from ssno.training.task import Task

# How much memory a run will hold, counted on parts of it that are known to fit.
#
# Training steps and evaluations of growing size are run while every tensor's storage is counted from its first
# appearance to its end, in forward and backward passes and inside custom functions alike. Growth stops at the run's own
# size or at a budget, beyond which memory is taken to be linear in trajectories and in frames:
#
#     forecast = process before + optimiser, averages, best weights + the largest of  held * step, evaluation, saving
#
# The first term is read from the operating system after a small step, when all libraries are loaded. `held` is what the
# C library adds by not giving freed pages back at once: more where steps are freed and made anew between tensors that
# stay, as recomputed ones are. Both factors are fitted to the cases of `benchmarks.memory`, which measures how well
# they do.

HELD, HELD_RECOMPUTED = 1.25, 1.6
BUDGET = 2**29


class Spent:
    """What the steps and evaluations that were tried took, by how much they computed."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter):
        self.clock = clock
        self.steps: dict[Stage, dict[int, float]] = {}
        self.evaluations: dict[int, float] = {}

    def step(self, stage: Stage, steps: int) -> float:
        """Seconds of a step with so many time steps: on the line through the two largest that were tried.

        Counting memory costs some time for every operation, however large, which the slope does not know. The first
        step of all warms up.
        """
        tried = self.steps[stage]
        warm = sorted(tried.items())[-2:] if len(tried) > 2 else [max(tried.items())]
        (few, short), (many, long) = warm[0], warm[-1]
        return long * steps / many if few == many else long + max(0.0, (long - short) / (many - few)) * (steps - many)


def forecast_memory(task: Task, *, budget: int = BUDGET, spent: Spent | None = None) -> int:
    """Bytes that a process training like this will hold at most; nothing larger than twice `budget` is tried.

    Call it in a young process: what this one holds already counts as needed. `spent` learns what was tried.
    """
    spent = spent or Spent()
    forecaster, data, valid, options = task.forecaster, task.data, task.valid, task.options
    batch, valid_batch = min(options.batch_size, len(data)), min(options.batch_size, len(valid))
    stages = [replace(stage, teacher_forcing=float(stage.parallel)) for stage in options.unroll.stages(options.epochs)]
    plan = forecaster.window.plan(len(data.times))

    @cache
    def step(stage: Stage, trajectories: int, frames: int) -> int:
        part, began = replace(stage, frames=frames), spent.clock()
        peak = peak_memory(lambda: one_step(forecaster, data, part, trajectories, options.points_per_step))
        steps = trajectories * time_steps(part, forecaster.window, len(data.times))
        spent.steps.setdefault(stage, {})[steps] = spent.clock() - began
        return peak

    @cache
    def evaluation(trajectories: int) -> int:
        chosen, began = valid.select(indices=range(trajectories)), spent.clock()
        peak = peak_memory(lambda: score(forecaster, chosen, batch_size=trajectories))
        spent.evaluations[trajectories] = spent.clock() - began
        return peak

    with torch.random.fork_rng(), forecaster.at(options.precision):
        forecaster.train()
        for stage in stages:
            step(stage, 1, stage.pushforward + 1)
        load_libraries()
        before, most_before = held(), most_held()
        peaks = []
        for stage in dict.fromkeys(stages):
            shortest = stage.pushforward + 1
            lengths = [shortest, *(n for n in growing(stage.frames or len(plan.predicted)) if n > shortest)]
            most = extrapolated_twice(partial(step, stage), growing(batch), lengths, budget=budget)
            peaks.append(most * (HELD_RECOMPUTED if stage.gradient_checkpointing and not stage.parallel else HELD))
    with torch.random.fork_rng():  # validation has the precision of the weights
        evaluating = HELD * evaluation(1) * valid_batch  # in proportion: too much, which mostly does not matter
        if evaluating > max(peaks):
            evaluating = HELD * extrapolated(evaluation, growing(valid_batch), budget=budget).value
        peaks.append(evaluating)
    forecaster.train()
    weights = sum(p.numel() * p.element_size() for p in forecaster.model.parameters() if p.requires_grad)
    kept = optimiser_bytes(forecaster.model, options) + weights * (1 + bool(options.ema))  # best weights, average
    saving = weights + kept  # a checkpoint is put together in memory; more than SOAP's copies of gradients
    return max(most_before, before + kept + round(max(*peaks, saving)))


def time_steps(stage: Stage, window: Window, frames: int) -> int:
    """How many time steps of a trajectory a step of this stage computes."""
    return stage.length(window, frames) - 1


def one_step(forecaster: Forecaster, data: Trajectories, stage: Stage, trajectories: int, points: int = 0) -> None:
    """Forward and backward pass of a batch, without an optimiser."""
    objective, frames, carry = Objective(forecaster), data.read(range(trajectories)), None
    prepared = prepare(forecaster, frames, stage=stage, spacing=data.spacing, points=points)
    for part in range(len(prepared.parts)):
        losses, carry = objective(prepared, part, carry)
        losses.sum().backward()
    forecaster.zero_grad()


def load_libraries() -> None:
    """Take an optimiser step of nothing: torch imports a good part of itself at the first one."""
    nothing = torch.zeros(1, requires_grad=True)
    nothing.grad = torch.zeros(1)
    torch.optim.AdamW([nothing]).step()


def growing(size: int) -> list[int]:
    """1, 2, 4, ... and `size` itself at the end."""
    steps = [1]
    while steps[-1] * 2 < size:
        steps.append(steps[-1] * 2)
    return [*steps, size] if size > 1 else steps


class Growth(NamedTuple):
    """How far measurements went, what the line through the last two says of the end, and its slope."""

    reached: int
    value: float
    slope: float


def extrapolated(measure: Callable[[int], int], sizes: Sequence[int], *, budget: int) -> Growth:
    """`measure` at the last of growing sizes.

    Each measurement says how far the next may go: as far as the line through the last two stays within the budget. The
    second may go beyond, to twice the budget: proportion, all that is known by then, says too much.
    """
    found = {sizes[0]: measure(sizes[0])}

    def slope() -> float:
        if len(found) == 1:  # in proportion: too much rather than too little
            return found[sizes[0]] / sizes[0]
        before, last = list(found)[-2:]
        return (found[last] - found[before]) / (last - before)

    def line(size: int) -> float:
        last = max(found)
        return found[last] + slope() * (size - last)

    while True:
        room = budget * (2 if len(found) == 1 else 1)
        further = [size for size in sizes if size > max(found) and line(size) <= room]
        if not further:
            return Growth(max(found), line(sizes[-1]), slope())
        found[further[-1]] = measure(further[-1])


def extrapolated_twice(
    measure: Callable[[int, int], int], trajectories: Sequence[int], frames: Sequence[int], *, budget: int
) -> int:
    """`measure` at the most trajectories and frames: more trajectories first, on few frames, then more frames.

    That order keeps the number of trajectories true, on which methods and shared costs of a step depend. It leaves
    room for the frames to double at least once.
    """
    wide = extrapolated(lambda count: measure(count, frames[0]), trajectories, budget=budget // 4)
    long = extrapolated(lambda count: measure(wide.reached, count), frames, budget=budget)
    if wide.reached == trajectories[-1]:
        return round(long.value)
    return round(wide.value + long.slope * (frames[-1] - frames[0]) * trajectories[-1] / wide.reached)


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
    found = [options.unroll.stage(part * options.epochs // looked_at, options.epochs) for part in range(looked_at)]
    counted = Counter(replace(stage, teacher_forcing=float(stage.parallel)) for stage in found)
    return {stage: count / looked_at for stage, count in counted.items()}


def long_step(task: Task, stage: Stage, spent: Spent) -> float:
    """Seconds of a step, from the parts of it that were tried on the grid of the data."""
    axes, options = task.data.axes, task.options
    coarser = (min(options.grids, default=axes[0].points) / axes[0].points) ** len(axes)
    batch = min(options.batch_size, len(task.data))
    return spent.step(stage, batch * time_steps(stage, task.forecaster.window, len(task.data.times))) * coarser


def trial(task: Task, stage: Stage, expected: float, clock: Callable[[], float]) -> tuple[float, float]:
    """Seconds of a step of this stage, the median of some of them, and seconds of saving."""
    watch = _Stopwatch(clock)
    steps = min(MOST_STEPS, max(FEWEST_STEPS, round(TRIAL_SECONDS / max(expected, 1e-6))))
    rollout = Unrolling(
        teacher_forcing=(stage.teacher_forcing,),
        frames=(stage.frames,),
        pushforward=(stage.pushforward,),
        truncate=stage.truncate if not stage.parallel else 0,
        gradient_checkpointing=stage.gradient_checkpointing and not stage.parallel,
    )
    options = replace(task.options, unroll=rollout, epochs=steps, evaluate_every=steps)
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
    checkpoint = weights + optimiser_bytes(model, options) + bool(options.ema) * learned
    kept = options.epochs // options.keep_every if options.keep_every else 0
    return (2 + kept) * checkpoint + 2 * weights
