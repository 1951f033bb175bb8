"""Entries: how cost grows with points, frames, batch, states and dimensions; every size checked by the listing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import torch

from benchmarks.entry import Entry, Growth, TimedCall
from benchmarks.training import ssno, training_step, trajectories


@dataclass(frozen=True)
class Size:
    """One training step of a sweep."""

    grid: tuple[int, ...] = (64,)
    batch: int = 4
    frames: int = 4
    states: int = 64


SWEEPS: Mapping[str, tuple[Growth, Mapping[int, Size]]] = {
    "points": (
        Growth("points", at_most=1.15, start=1024),
        {n: Size(grid=(n,), batch=1) for n in (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384)},
    ),
    "frames": (Growth("frames", at_most=1.1, start=8), {t: Size(frames=t) for t in (2, 4, 8, 16, 32, 64)}),
    "batch": (Growth("batch", at_most=1.1, start=4), {b: Size(batch=b) for b in (1, 2, 4, 8, 16, 32)}),
    "states": (Growth("states", at_most=1.1, start=32), {d: Size(states=d) for d in (8, 16, 32, 64, 128, 256)}),
    "plane": (
        Growth("points of a square", at_most=1.15, start=1024),
        {n**2: Size(grid=(n, n), batch=1, frames=1) for n in (16, 32, 64, 128)},
    ),
    "cube": (
        Growth("points of a cube", at_most=1.15, start=4096),
        {n**3: Size(grid=(n, n, n), batch=1, frames=1) for n in (8, 16, 32)},
    ),
}
CUBE = (64, 64, 64)


def entries() -> Iterator[Entry]:
    """One sweep after the other; then one forecast of a frame of 64^3 points, against the same points on a line."""
    for name, (growth, sizes) in SWEEPS.items():
        yield Entry(
            what="growth with",
            sizes={"": name},
            build=partial(sweep, sizes),
            reference=str(next(iter(sizes))),
            growth=growth,
            tolerance=5e-3,  # the listing takes exp(i angle l) in float32: its own phases drift on long lines
        )
    yield Entry(what="forecast a cube", sizes={"n": "x".join(map(str, CUBE))}, build=forecast_cube, reference="listing")


def sweep(sizes: Mapping[int, Size]) -> dict[str, TimedCall]:
    """A training step of every size."""
    return {str(value): step_of(size) for value, size in sizes.items()}


def step_of(size: Size) -> TimedCall:
    """A training step; its gradients are those of the listing."""
    model = ssno(size.grid, d_state=size.states)
    given, target = trajectories(size.grid, batch=size.batch, frames=size.frames)
    run, listing = (training_step(one, one, given, target) for one in (model, model.reference()))
    return TimedCall(run, expected=listing)


def forecast_cube(grid: Sequence[int] = CUBE) -> dict[str, TimedCall]:
    """One frame in three dimensions by the model and by the listing; times are per million points."""
    model, (given, _) = ssno(grid).eval(), trajectories(grid, batch=1, frames=1)
    listing = torch.no_grad()(partial(model.reference(), given))
    amount = prod(grid) / 1e6
    return {
        "listing": TimedCall(listing, amount=amount),
        "pytorch": TimedCall(torch.no_grad()(partial(model, given)), expected=listing, amount=amount),
    }
