"""How much memory a run will hold, counted on parts of it that are known to fit.

Training steps and evaluations of growing size are run while every tensor's storage is counted from its first appearance
to its end, in forward and backward passes and inside custom functions alike. Growth stops at the run's own size or at a
budget, beyond which memory is taken to be linear in trajectories and in frames:

    forecast = process before + optimiser, averages, best weights + the largest of  held * step, evaluation, saving

The first term is read from the operating system after a small step, when all libraries are loaded. `held` is what the C
library adds by not giving freed pages back at once: more where steps are freed and made anew between tensors that stay,
as recomputed ones are. Both factors are fitted to the cases of `benchmarks.memory`, which measures how well they do.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import torch

from ssno.base.live_memory import peak_memory
from ssno.base.process_memory import held, most_held
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.scores import score
from ssno.runs.unrolling import Stage
from ssno.training.objective import Objective
from ssno.training.prepared import prepare
from ssno.training.task import Task

HELD, HELD_RECOMPUTED = 1.25, 1.6
BUDGET = 2**29


class Spent:
    """What the steps and evaluations that were tried took, by how much they computed."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter):
        self.clock = clock
        self.steps: dict[Stage, dict[int, float]] = {}
        self.evaluations: dict[int, float] = {}

    def step(self, stage: Stage, slots: int) -> float:
        """Seconds of a step with so many slots: on the line through the two largest that were tried.

        Counting memory costs some time for every operation, however large, which the slope does not know. The first
        step of all warms up.
        """
        tried = self.steps[stage]
        warm = sorted(tried.items())[-2:] if len(tried) > 2 else [max(tried.items())]
        (few, short), (many, long) = warm[0], warm[-1]
        return long * slots / many if few == many else long + max(0.0, (long - short) / (many - few)) * (slots - many)


def forecast_memory(task: Task, *, budget: int = BUDGET, spent: Spent | None = None) -> int:
    """Bytes that a process training like this will hold at most; nothing larger than twice `budget` is tried.

    Call it in a young process: what this one holds already counts as needed. `spent` learns what was tried.
    """
    spent = spent or Spent()
    forecaster, valid, options = task.forecaster, task.valid, task.options
    data = task.data if options.workers else task.data.in_memory()
    batch, valid_batch = min(options.batch_size, len(data)), min(options.batch_size, len(valid))
    stages = [replace(stage, forcing=float(stage.parallel)) for stage in options.rollout.stages(options.epochs)]
    plan = forecaster.window.plan(len(data.times))

    @cache
    def step(stage: Stage, trajectories: int, frames: int) -> int:
        part, began = replace(stage, frames=frames), spent.clock()
        peak = peak_memory(lambda: one_step(forecaster, data, part, trajectories, options.points))
        slots = trajectories * slots_of(part, forecaster.window, len(data.times))
        spent.steps.setdefault(stage, {})[slots] = spent.clock() - began
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
            peaks.append(most * (HELD_RECOMPUTED if stage.recompute and not stage.parallel else HELD))
    with torch.random.fork_rng():  # validation has the precision of the weights
        evaluating = HELD * evaluation(1) * valid_batch  # in proportion: too much, which mostly does not matter
        if evaluating > max(peaks):
            evaluating = HELD * extrapolated(evaluation, growing(valid_batch), budget=budget).value
        peaks.append(evaluating)
    forecaster.train()
    weights = sum(p.numel() * p.element_size() for p in forecaster.model.parameters() if p.requires_grad)
    kept = weights * (2 + 1 + bool(options.ema))  # two moments, the best weights, the average
    saving = weights + kept  # a checkpoint is put together in memory
    return max(most_before, before + kept + round(max(*peaks, saving)))


def slots_of(stage: Stage, window: Window, frames: int) -> int:
    """How many slots of a trajectory a step of this stage computes."""
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
