"""The cost of every model: parameters, operations, memory and time of a prediction, a training step and a rollout.

A benchmark case is one task on one grid with one batch size, which all models run in turns. Tasks, on random frames:

    forward   predict the frame after each of four        (batch, 4, 1, *grid) -> the same; its operations are published
    cold      the next frame only, from four frames, by a model that has just been loaded: nothing is cached yet
    warm      the same again: what depends on weights and grid only is cached (`ssno.models.operator`)
    stream    one more frame, with the features of earlier ones cached
    train     forward, mean-square loss, backward, Adam   (operations and memory are counted without Adam)
    rollout   stream a number of frames, started from four

A batch of more than `LARGEST_PART` trajectories, or one that does not fit into the memory limit, runs in equal parts
one after the other, and the row says how large a part was. One part is timed and multiplied; the optimiser's step is
timed by itself and added. Times are measured in rounds: each calls every model once, in an order that rotates, so that
a busy moment affects one round of all models, not all rounds of one. Tables and files are in
`ssno.evaluation.cost_table`.
"""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import torch

from ssno.base import require_one_of
from ssno.base.device import choose_device, synchronise
from ssno.base.memory import peak_memory
from ssno.evaluation.flops import Flops, count_flops, published_flops
from ssno.models.baselines.fno import FNOConfig
from ssno.models.baselines.trivial import TrivialConfig
from ssno.models.config import OperatorConfig
from ssno.models.operator import NeuralOperator, OperatorState, count_parameters
from ssno.models.registry import MODELS, model_config
from ssno.native.engine import Engine, Precision, computing, fused

Run = Callable[[], object]
Workload = Literal["forward", "cold", "warm", "stream", "train", "rollout"]
INPUT_FRAMES = 4
WARM_UP = 1
LARGEST_PART = 4


@dataclass(frozen=True)
class Timing:
    """Seconds of every timed call."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """First and third quartile."""
        lower, upper = np.quantile(self.seconds, [0.25, 0.75]).tolist()
        return lower, upper


def time_interleaved(
    runs: Mapping[str, Run], *, budget: float | int, least_rounds: int = 3, most_rounds: int = 200, warm_up: int = 2
) -> dict[str, Timing]:
    """Time all runs in turns, for about `budget` seconds in total and at least `least_rounds` rounds.

    The first `warm_up` rounds are not counted: caches fill, libraries plan, memory is allocated.
    """
    if not 1 <= least_rounds <= most_rounds:
        raise ValueError(f"`least_rounds` must be between 1 and most_rounds = {most_rounds}, got {least_rounds}.")
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
    """Median seconds of a few calls after one warm-up call: a rough figure."""
    run()
    seconds = []
    for _ in range(rounds):
        before = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - before)
    return statistics.median(seconds)


@dataclass(frozen=True)
class BenchmarkCase:
    """One task, grid, batch size and precision for all models."""

    task: Workload
    grid: tuple[int, ...]
    batch: int = 1
    rollout_frames: int = 22
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        require_one_of("task", self.task, get_args(Workload))
        if not self.grid or min(*self.grid, self.batch, self.rollout_frames) < 1:
            raise ValueError(f"`grid`, `batch` and `rollout_frames` must be at least 1, got {self}.")

    def __str__(self) -> str:
        precision = "" if self.precision == "float32" else f", {self.precision}"
        return f"{self.task}, {' x '.join(map(str, self.grid))} points, batch {self.batch}{precision}"


@dataclass(frozen=True)
class Cost:
    """One row: one model in one benchmark case."""

    model: str
    case: BenchmarkCase
    config: OperatorConfig
    parameters: int
    learnable: int
    part: int
    flops: Flops
    memory: int
    timing: Timing
    engine: str = "torch"
    """The engine that was timed; `flops` are those of plain PyTorch (`ssno.evaluation.flops`)."""
    timed_flops: Flops = field(default_factory=Flops)
    """Operations of the engine that was timed."""

    def to_json(self) -> dict[str, Any]:
        """Plain numbers: operations in units of 10^9, memory in MiB, time in ms with its quartiles."""
        lower, upper = self.timing.quartiles
        kinds = {kind: value for kind, value in asdict(self.flops).items() if kind != "unknown"}
        forward = self.case.task == "forward"
        published = published_flops(self.config, self.case.grid[0]) if forward else None
        return {
            "model": self.model,
            "task": self.case.task,
            "grid": "x".join(map(str, self.case.grid)),
            "batch": self.case.batch,
            "part": self.part,
            "frames": self.case.rollout_frames if self.case.task == "rollout" else 1,
            "parameters": self.parameters,
            "learnable": self.learnable,
            "timed_engine": self.engine,
            "counted_engine": "plain",
            "precision": self.case.precision,
            "gflop": self.flops.total / 1e9,
            "timed_gflop": self.timed_flops.total / 1e9,
            **{f"gflop_{kind}": value / 1e9 for kind, value in kinds.items()},
            "gflop_published": None if published is None else self.case.batch * published / 1e9,
            "memory_mib": self.memory / 2**20,
            "ms": 1e3 * self.timing.median,
            "ms_lower": 1e3 * lower,
            "ms_upper": 1e3 * upper,
            "rounds": len(self.timing.seconds),
            "config": self.config.to_json(),
        }


class BenchmarkEntry:
    """A model in a benchmark case, ready to run."""

    def __init__(self, config: OperatorConfig, case: BenchmarkCase, *, part: int):
        self.device = choose_device()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = config.build().to(self.device)
            frames = torch.randn(part, INPUT_FRAMES, config.in_channels, *case.grid)
            kind = torch.float64 if case.precision == "float64" else torch.float32
            model, self.frames = model.to(kind), frames.to(self.device, kind)
        assert isinstance(model, NeuralOperator)
        self.model = model.train(case.task == "train")
        self.case, self.parts = case, case.batch // part
        self.optimiser = torch.optim.Adam(model.parameters()) if case.task == "train" else None
        self.state: OperatorState | None = None

    def once(self) -> None:
        """The task for one part of the batch, until it is done."""
        with computing(self.model, self.case.precision, device=self.device):
            self._begin()
        synchronise(self.device)

    def _begin(self) -> None:
        task = self.case.task
        if task == "train":
            self.model(self.frames).square().mean().backward()
            return
        with torch.no_grad():
            if task == "forward":
                self.model(self.frames)
                return
            if task in ("cold", "warm"):
                if task == "cold":
                    self.model.train().eval()  # clears the cache
                self.model.predict_next(self.frames)
                return
            if task == "stream":
                self.state = self.model.start(self.frames) if self.state is None else self.state
                self.model.step(self.frames[:, -1], self.state)
                return
            state, frame = self.model.start(self.frames), self.frames[:, -1]
            for _ in range(self.case.rollout_frames):
                frame, state = self.model.step(frame, state)

    def update(self) -> None:
        """The optimiser's step, with whatever gradients there are."""
        if self.optimiser is not None:
            self.optimiser.step()
            synchronise(self.device)

    def total(self, part: Timing) -> Timing:
        """The time of the complete task, from that of one part."""
        update = quick_seconds(self.update) if self.optimiser is not None else 0.0
        self.model.zero_grad()
        return Timing(tuple(self.parts * seconds + update for seconds in part.seconds))

    def memory(self) -> int:
        """Peak memory of one part."""
        found = peak_memory(self.once)
        self.model.zero_grad()
        return found

    def flops(self, engine: Engine) -> Flops:
        """Operations of the complete task with an engine."""
        flops = count_flops(self.once, engine=engine)
        self.model.zero_grad()
        total = {kind: self.parts * value for kind, value in asdict(flops).items() if kind != "unknown"}
        return Flops(**total, unknown=flops.unknown)


def benchmark_models(grid: Sequence[int], names: Sequence[str] = ()) -> dict[str, OperatorConfig]:
    """All trainable models in their published size, with modes fitted to the grid; `names` selects some.

    FNO in 2D is listed twice: with the 32 modes of the published count and with the 8 modes stated in the paper.
    """
    chosen: dict[str, OperatorConfig] = {}
    for name in names or [name for name in MODELS if not isinstance(model_config(name), TrivialConfig)]:
        config = model_config(name, n_dims=len(grid))
        if isinstance(config, TrivialConfig):
            raise ValueError(f"`models` names {name!r}, which has nothing to train and no cost. Leave it out.")
        chosen[name] = config.for_grid(grid)
        fewer = FNOConfig(n_dims=2, n_modes=8).for_grid(grid)
        if name == FNOConfig.model_name and len(grid) == 2 and fewer != chosen[name]:
            chosen["fno, 8 modes"] = fewer
    return chosen


def run_benchmark(
    case: BenchmarkCase,
    configs: Mapping[str, OperatorConfig],
    *,
    budget: float | int,
    least_rounds: int,
    memory_limit: int,
) -> list[Cost]:
    """Run all models in turns for about `budget` seconds; one row each."""
    parts = {name: largest_part(config, case, memory_limit=memory_limit) for name, config in configs.items()}
    entries = {name: BenchmarkEntry(config, case, part=parts[name]) for name, config in configs.items()}
    engines: dict[str, Engine] = {name: "fused" if fused(one.frames) else "torch" for name, one in entries.items()}
    memory = {name: entry.memory() for name, entry in entries.items()}
    flops = {name: (entry.flops("plain"), entry.flops(engines[name])) for name, entry in entries.items()}
    timings = time_interleaved(
        {name: entry.once for name, entry in entries.items()}, budget=budget, least_rounds=least_rounds, warm_up=WARM_UP
    )
    return [
        Cost(
            model=name,
            case=case,
            config=config,
            parameters=count_parameters(entries[name].model),
            learnable=count_parameters(entries[name].model, learnable_only=True),
            part=parts[name],
            flops=flops[name][0],
            memory=memory[name],
            timing=entries[name].total(timings[name]),
            engine=engines[name],
            timed_flops=flops[name][1],
        )
        for name, config in configs.items()
    ]


def largest_part(config: OperatorConfig, case: BenchmarkCase, *, memory_limit: int) -> int:
    """The largest divisor of the batch that fits into the limit, extrapolated from batches of one and two."""
    if case.batch == 1:
        return 1
    one, two = (memory_of(config, case, part) for part in (1, 2))
    divisors = [part for part in range(1, LARGEST_PART + 1) if case.batch % part == 0]
    return max([part for part in divisors if one + (part - 1) * (two - one) <= memory_limit], default=1)


def memory_of(config: OperatorConfig, case: BenchmarkCase, batch: int) -> int:
    """Peak memory of a task with another batch; a rollout needs no more than its first frames."""
    frames = min(2, case.rollout_frames)
    small = replace(case, batch=batch, rollout_frames=frames)
    return peak_memory(BenchmarkEntry(config, small, part=batch).once)


def estimated_seconds(
    case: BenchmarkCase, configs: Mapping[str, OperatorConfig], *, budget: float | int, least_rounds: int
) -> float:
    """Estimate the duration from one trajectory of every model; rollouts from one and two streamed frames."""
    a_round = 0.0
    for config in configs.values():
        first = seconds_of(config, replace(case, batch=1, rollout_frames=1))
        a_round += first * min(case.batch, LARGEST_PART)
        if case.task == "rollout":
            further = max(0.0, seconds_of(config, replace(case, batch=1, rollout_frames=2)) - first)
            a_round += further * min(case.batch, LARGEST_PART) * (case.rollout_frames - 1)
    counting = 2.0
    return (WARM_UP + counting) * a_round + max(budget, least_rounds * a_round)


def seconds_of(config: OperatorConfig, case: BenchmarkCase) -> float:
    """The faster of two runs after a warm-up."""
    entry = BenchmarkEntry(config, case, part=case.batch)
    moments = [time.perf_counter()]
    for _ in range(3):
        entry.once()
        moments.append(time.perf_counter())
    return min(moments[2] - moments[1], moments[3] - moments[2])
