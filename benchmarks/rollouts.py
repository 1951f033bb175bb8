"""Entries: forecasts. SS-NO streaming against the listing, and the time per predicted frame against every baseline."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import torch

from benchmarks.engines import forecaster
from benchmarks.entry import Entry, Goal, TimedCall
from benchmarks.training import ssno, trajectories
from ssno.evaluation.cost import benchmark_models

FRAMES = 22
WINDOW = 4
LATENCY_FRAMES = 8
LATENCY_GRIDS = (32, 64, 128, 256, 512)
LOWEST_UP_TO = 128


def entries() -> Iterator[Entry]:
    """Rollouts of 22 frames, then latencies."""
    for batch, at_least in ((1, 40.0), (32, 10.0)):
        yield Entry(
            what="rollout",
            sizes={"n": 128, "b": batch, "t": FRAMES},
            build=partial(against_the_listing, (128,), batch=batch),
            reference="listing",
            goals={"streaming": Goal(at_least=at_least)},
        )
    for points in LATENCY_GRIDS:
        yield Entry(
            what="frame",
            sizes={"n": points, "b": 1},
            build=partial(against_baselines, (points,)),
            reference="ssno",
            goals=dict.fromkeys(baselines((points,)), Goal(at_most=1.0)) if points <= LOWEST_UP_TO else {},
            seconds=6.0,
        )


def against_the_listing(grid: Sequence[int], *, batch: int) -> Mapping[str, TimedCall]:
    """The listing recomputes the full window and all kernels for every frame."""
    model, (given, _) = ssno(grid).eval(), trajectories(grid, batch=batch, frames=WINDOW)
    listing = model.reference()
    expected = partial(listing.rollout, given, FRAMES)
    streaming = partial(forecaster(model, grid, batch=batch), given, FRAMES)
    return {"listing": TimedCall(expected), "streaming": TimedCall(streaming, expected=expected)}


def against_baselines(grid: Sequence[int]) -> Mapping[str, TimedCall]:
    """Every learned model in its published size; times are per predicted frame."""
    given, _ = trajectories(grid, batch=1, frames=WINDOW)
    tasks = {}
    for name, config in benchmark_models(grid).items():
        torch.manual_seed(0)
        model = config.build().eval()
        expected = partial(model.reference().rollout, given, LATENCY_FRAMES) if name == "ssno" else None
        run = partial(forecaster(model, grid, batch=1), given, LATENCY_FRAMES)
        tasks[name] = TimedCall(run, expected=expected, amount=LATENCY_FRAMES)
    return tasks


def baselines(grid: Sequence[int]) -> list[str]:
    """Learned models that are not ours."""
    return [name for name in benchmark_models(grid) if not name.startswith("ssno")]
