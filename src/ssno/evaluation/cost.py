"""What every model costs: parameters, operations, memory and time, for one prediction, one training step, one rollout.

A contest is one task on one grid with one batch size, in which all models take turns. Tasks, on random frames:

    forward   predict the frame after each of four        (batch, 4, 1, *grid) -> the same; its operations are published
    cold      the newest slot alone, from four frames, by a model that has just been loaded: nothing is kept yet
    warm      the same again: what depends on weights and grid alone is kept (`ssno.models.operator`)
    stream    one more frame, with the features of earlier ones remembered
    train     forward, mean-square loss, backward, Adam   (operations and memory are counted without Adam)
    rollout   stream a number of frames, started from four

A batch of more than `LARGEST_PART` trajectories, or one that does not fit into the memory limit, runs in equal parts
one after the other, as a user would do it, and the row says how large a part was. Parts are alike, so one is timed and
multiplied; the optimiser's step is timed by itself and added. Storing and showing rows is in
`ssno.evaluation.cost_table`.
"""

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

import torch

from ssno.base.device import choose_device, synchronise
from ssno.base.memory import peak_memory
from ssno.evaluation.flops import Flops, count_flops
from ssno.models.baselines.factformer import FactformerConfig
from ssno.models.baselines.fno import FFNOConfig, FNOConfig
from ssno.models.baselines.gkt import GKTConfig
from ssno.models.baselines.trivial import TrivialConfig
from ssno.models.baselines.unet import HALVINGS, UNetConfig
from ssno.models.config import OperatorConfig
from ssno.models.operator import NeuralOperator, OperatorState, count_parameters, parameters_of
from ssno.models.registry import MODELS, model_config
from ssno.models.ssno import SSNOConfig
from ssno.native.engine import Engine, Precision, computing, fused

# How long things take, measured so that machine noise hits all of them alike.
#
# Each round calls every contestant once, in an order that rotates; a busy moment then spoils one round of all, not all
# rounds of one. Reported are median and quartiles, since a mean follows outliers.

Run = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds of every timed call."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """A quarter of the calls was faster than the first, a quarter slower than the second."""
        if len(self.seconds) < 2:
            return self.seconds[0], self.seconds[0]
        lower, _, upper = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return lower, upper


def time_interleaved(
    runs: Mapping[str, Run], *, budget: float | int, least_rounds: int = 3, most_rounds: int = 200, warm_up: int = 2
) -> dict[str, Timing]:
    """Time every run, taking turns, for about `budget` seconds in all, at least `least_rounds` rounds.

    The first `warm_up` rounds are not counted: caches fill, libraries plan, memory is claimed.
    """
    if not 1 <= least_rounds <= most_rounds:
        raise ValueError(f"`least_rounds` must lie between 1 and most_rounds = {most_rounds}, got {least_rounds}.")
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
    """Median seconds of a few calls after one that is not counted: for figures of which the first digit matters."""
    run()
    seconds = []
    for _ in range(rounds):
        before = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - before)
    return statistics.median(seconds)


# Operations as the published cost table counts them, so that its figures can be compared with ours.
#
# The rules behind the table's 25 values were found by arithmetic on its rounded digits; each model turned out to have a
# rule of its own (2 operations per multiply-add throughout, K = 4 frames, memory never counted):
#
#     U-Net, Factformer  4 frames; linear maps and convolutions, 4 per number of an affine norm; a transposed
#                     convolution counts all kernel points for every output; group norm and attention products nothing
#     GKT                one pass over 4 stacked frames; linear maps and norms only
#     F-FNO              4 frames; only the spectral part: 10 N log2 N per channel and 6 per kept mode and channel pair,
#                        modes = min(N / 2, 32); its linear maps are not counted
#     SS-NO              parameters times points, one frame
#
# By the rule used for U-Net and Factformer, SS-NO would cost 1.8 times what is printed. Compare models with each other
# by `ssno.evaluation.flops`, where one rule holds for all.

FRAMES = 4
AFFINE_NORM = 4
MOST_MODES = 32


def published_flops(config: OperatorConfig, points: int) -> float | None:
    """Operations of one prediction in 1D by the table's rule; None for a model or setting the table does not have."""
    rule = RULES.get(type(config)) if config.name == config.model_name else None
    return None if rule is None or config.n_dims != 1 else 2.0 * rule(config, points)


def _unet(config: UNetConfig, points: int) -> float | int:
    widths = [config.hidden_channels * 2**level for level in range(HALVINGS + 1)]

    def block(channels_in: int, width: int, length: float) -> float:
        return length * (3 * width * (channels_in + width) + 2 * AFFINE_NORM * width)

    down = sum(
        block(narrow, wide, points / 2**level)
        for level, (narrow, wide) in enumerate(zip([config.lifted_channels(), *widths[:-1]], widths, strict=True))
    )
    up = sum(
        points / 2**level * (2 * width * 2 * width) + block(2 * width, width, points / 2**level)
        for level, width in enumerate(widths[:-1])
    )
    return FRAMES * (down + up + points * widths[0] * config.out_channels)


def _factformer(config: FactformerConfig, points: int) -> float | int:
    width, inner = config.hidden_channels, config.n_heads * config.head_channels
    square, norm = width * width, AFFINE_NORM * width
    reducer = square + norm + 2 * square + square
    layer = norm + width * inner + square + reducer + 2 * width * inner + inner * width + square
    tail = square + norm + 2 * square + square // 8 + width * (width // 2) + width // 2 * config.out_channels
    frame = config.lifted_channels() * width + config.n_layers * layer + tail
    position = config.n_layers * square  # the same for all frames, so computed once
    return points * (FRAMES * frame + position)


def _gkt(config: GKTConfig, points: int) -> float | int:
    width, coordinates = config.hidden_channels, config.n_dims
    layer = 5 * width * width + 2 * AFFINE_NORM * width
    decoder = (width + coordinates) * width + 2 * width * width
    head = width * config.head_channels + config.head_channels * config.out_channels
    return points * (config.lifted_channels() * width + config.n_layers * layer + decoder + head)


def _ffno(config: FFNOConfig, points: int) -> float | int:
    width, modes = config.hidden_channels, min(points // 2, MOST_MODES)
    spectral = 10 * points * math.log2(points) * width + 6 * modes * width**2
    return FRAMES * config.n_layers * spectral


def _ssno(config: SSNOConfig, points: int) -> float | int:
    return parameters_of(config) * points


RULES: dict[type, Callable[[Any, int], float | int]] = {
    UNetConfig: _unet,
    FactformerConfig: _factformer,
    GKTConfig: _gkt,
    FFNOConfig: _ffno,
    SSNOConfig: _ssno,
}


# What every model costs: parameters, operations, memory and time, for one prediction, one training step, one rollout.

Workload = Literal["forward", "cold", "warm", "stream", "train", "rollout"]
GIVEN_FRAMES = 4
WARM_UP = 1
LARGEST_PART = 4


@dataclass(frozen=True)
class BenchmarkCase:
    """One task, grid, batch size and precision for all models."""

    task: Workload
    grid: tuple[int, ...]
    batch: int = 1
    rollout_frames: int = 22
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        if self.task not in get_args(Workload):
            raise ValueError(f"`task` must be one of {', '.join(get_args(Workload))}, got {self.task!r}.")
        if not self.grid or min(*self.grid, self.batch, self.rollout_frames) < 1:
            raise ValueError(f"A contest needs points, a batch and frames of at least 1, got {self}.")

    def __str__(self) -> str:
        precision = "" if self.precision == "float32" else f", {self.precision}"
        return f"{self.task}, {' x '.join(map(str, self.grid))} points, batch {self.batch}{precision}"


@dataclass(frozen=True)
class Cost:
    """One row: one model in one contest."""

    model: str
    contest: BenchmarkCase
    config: OperatorConfig
    parameters: int
    learnable: int
    part: int
    flops: Flops
    memory: int
    timing: Timing
    engine: str = "torch"
    """What was timed; `flops` are those of plain PyTorch (`ssno.evaluation.flops`)."""
    timed_flops: Flops = field(default_factory=Flops)
    """Those of the engine that was timed."""

    def to_json(self) -> dict[str, Any]:
        """Plain numbers: operations in units of 10^9, memory in MiB, time in ms with its quartiles."""
        lower, upper = self.timing.quartiles
        kinds = {kind: value for kind, value in asdict(self.flops).items() if kind != "unknown"}
        forward = self.contest.task == "forward"
        published = published_flops(self.config, self.contest.grid[0]) if forward else None
        return {
            "model": self.model,
            "task": self.contest.task,
            "grid": "x".join(map(str, self.contest.grid)),
            "batch": self.contest.batch,
            "part": self.part,
            "frames": self.contest.rollout_frames if self.contest.task == "rollout" else 1,
            "parameters": self.parameters,
            "learnable": self.learnable,
            "timed_engine": self.engine,
            "counted_engine": "plain",
            "precision": self.contest.precision,
            "gflop": self.flops.total / 1e9,
            "timed_gflop": self.timed_flops.total / 1e9,
            **{f"gflop_{kind}": value / 1e9 for kind, value in kinds.items()},
            "gflop_published": None if published is None else self.contest.batch * published / 1e9,
            "memory_mib": self.memory / 2**20,
            "ms": 1e3 * self.timing.median,
            "ms_lower": 1e3 * lower,
            "ms_upper": 1e3 * upper,
            "rounds": len(self.timing.seconds),
            "config": self.config.to_json(),
        }


class BenchmarkEntry:
    """A model in a contest, ready to run."""

    def __init__(self, config: OperatorConfig, contest: BenchmarkCase, *, part: int):
        self.device = choose_device()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = config.build().to(self.device)
            frames = torch.randn(part, GIVEN_FRAMES, config.in_channels, *contest.grid)
            kind = torch.float64 if contest.precision == "float64" else torch.float32
            model, self.frames = model.to(kind), frames.to(self.device, kind)
        assert isinstance(model, NeuralOperator)
        self.model = model.train(contest.task == "train")
        self.contest, self.parts = contest, contest.batch // part
        self.optimiser = torch.optim.Adam(model.parameters()) if contest.task == "train" else None
        self.state: OperatorState | None = None

    def once(self) -> None:
        """The task for one part of the batch, until it is done."""
        with computing(self.model, self.contest.precision, device=self.device):
            self._begin()
        synchronise(self.device)

    def _begin(self) -> None:
        task = self.contest.task
        if task == "train":
            self.model(self.frames).square().mean().backward()
            return
        with torch.no_grad():
            if task == "forward":
                self.model(self.frames)
                return
            if task in ("cold", "warm"):
                if task == "cold":
                    self.model.train().eval()  # forgets what is kept
                self.model.predict_next(self.frames)
                return
            if task == "stream":
                self.state = self.model.start(self.frames) if self.state is None else self.state
                self.model.step(self.frames[:, -1], self.state)
                return
            state, frame = self.model.start(self.frames), self.frames[:, -1]
            for _ in range(self.contest.rollout_frames):
                frame, state = self.model.step(frame, state)

    def update(self) -> None:
        """The optimiser's step, with whatever gradients there are."""
        if self.optimiser is not None:
            self.optimiser.step()
            synchronise(self.device)

    def whole(self, part: Timing) -> Timing:
        """The time of the whole task, from that of one part."""
        update = quick_seconds(self.update) if self.optimiser is not None else 0.0
        self.model.zero_grad()
        return Timing(tuple(self.parts * seconds + update for seconds in part.seconds))

    def memory(self) -> int:
        """Peak memory of one part."""
        found = peak_memory(self.once)
        self.model.zero_grad()
        return found

    def flops(self, engine: Engine) -> Flops:
        """Operations of the whole task with an engine."""
        flops = count_flops(self.once, engine=engine)
        self.model.zero_grad()
        whole = {kind: self.parts * value for kind, value in asdict(flops).items() if kind != "unknown"}
        return Flops(**whole, unknown=flops.unknown)


def contestants(grid: Sequence[int], names: Sequence[str] = ()) -> dict[str, OperatorConfig]:
    """All models that learn, in their published size, with modes fitted to the grid; `names` chooses some.

    FNO in 2D comes twice: with the 32 modes of the published count and with the 8 that the paper says it ran.
    """
    chosen: dict[str, OperatorConfig] = {}
    for name in names or [name for name in MODELS if not isinstance(model_config(name), TrivialConfig)]:
        config = model_config(name, n_dims=len(grid))
        if isinstance(config, TrivialConfig):
            raise ValueError(f"`models` names {name!r}, which learns nothing and costs nothing. Leave it out.")
        chosen[name] = config.for_grid(grid)
        fewer = FNOConfig(n_dims=2, n_modes=8).for_grid(grid)
        if name == FNOConfig.model_name and len(grid) == 2 and fewer != chosen[name]:
            chosen["fno, 8 modes"] = fewer
    return chosen


def run_contest(
    contest: BenchmarkCase,
    configs: Mapping[str, OperatorConfig],
    *,
    budget: float | int,
    least_rounds: int,
    memory_limit: int,
) -> list[Cost]:
    """Let all models run the task in turns for about `budget` seconds; one row each."""
    parts = {name: largest_part(config, contest, memory_limit=memory_limit) for name, config in configs.items()}
    entries = {name: BenchmarkEntry(config, contest, part=parts[name]) for name, config in configs.items()}
    engines: dict[str, Engine] = {name: "fused" if fused(one.frames) else "torch" for name, one in entries.items()}
    memory = {name: entry.memory() for name, entry in entries.items()}
    flops = {name: (entry.flops("plain"), entry.flops(engines[name])) for name, entry in entries.items()}
    timings = time_interleaved(
        {name: entry.once for name, entry in entries.items()},
        budget=budget,
        least_rounds=least_rounds,
        warm_up=WARM_UP,
    )
    return [
        Cost(
            model=name,
            contest=contest,
            config=config,
            parameters=count_parameters(entries[name].model),
            learnable=count_parameters(entries[name].model, learnable_only=True),
            part=parts[name],
            flops=flops[name][0],
            memory=memory[name],
            timing=entries[name].whole(timings[name]),
            engine=engines[name],
            timed_flops=flops[name][1],
        )
        for name, config in configs.items()
    ]


def largest_part(config: OperatorConfig, contest: BenchmarkCase, *, memory_limit: int) -> int:
    """The largest divisor of the batch that fits into the limit, foreseen from batches of one and two."""
    if contest.batch == 1:
        return 1
    one, two = (memory_of(config, contest, part) for part in (1, 2))
    divisors = [part for part in range(1, LARGEST_PART + 1) if contest.batch % part == 0]
    return max([part for part in divisors if one + (part - 1) * (two - one) <= memory_limit], default=1)


def memory_of(config: OperatorConfig, contest: BenchmarkCase, batch: int) -> int:
    """Peak memory of a task with another batch; a rollout needs no more than its first frames."""
    frames = min(2, contest.rollout_frames)
    small = replace(contest, batch=batch, rollout_frames=frames)
    return peak_memory(BenchmarkEntry(config, small, part=batch).once)


def foreseen_seconds(
    contest: BenchmarkCase, configs: Mapping[str, OperatorConfig], *, budget: float | int, least_rounds: int
) -> float:
    """How long a contest will take, from one trajectory of every model; rollouts from one and two streamed frames."""
    a_round = 0.0
    for config in configs.values():
        first = seconds_of(config, replace(contest, batch=1, rollout_frames=1))
        a_round += first * min(contest.batch, LARGEST_PART)
        if contest.task == "rollout":
            further = max(0.0, seconds_of(config, replace(contest, batch=1, rollout_frames=2)) - first)
            a_round += further * min(contest.batch, LARGEST_PART) * (contest.rollout_frames - 1)
    counting = 2.0
    return (WARM_UP + counting) * a_round + max(budget, least_rounds * a_round)


def seconds_of(config: OperatorConfig, contest: BenchmarkCase) -> float:
    """The faster of two runs after a warm-up."""
    entry = BenchmarkEntry(config, contest, part=contest.batch)
    moments = [time.perf_counter()]
    for _ in range(3):
        entry.once()
        moments.append(time.perf_counter())
    return min(moments[2] - moments[1], moments[3] - moments[2])
