"""How often to step: from a step function to stored frames, and from any batch to blocks of one fixed size.

FFT libraries may choose another algorithm for another batch size or thread count, and the last bit then differs.
So spectral solvers always see the same shape: a batch is cut into blocks of `size` trajectories, the last block is
filled up with copies, and everything runs on one thread. Results are then bitwise independent of batch composition.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import EllipsisType
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base.checks import in_units
from ssno.base.device import threads
from ssno.pde.grids import SpectralGrid, check_batch
from ssno.pde.integrators import Step
from ssno.pde.problems.problem import OnProgress, SolverDiverged

Item = TypeVar("Item")
FrameDone = Callable[[int], None]
"""Called by a block solver with the number of frames it has finished."""


def integrate(step: Step, modes: Tensor, *, dt: float, frames: int, steps_per_frame: int) -> Iterator[Tensor]:
    """Yield the state after every `steps_per_frame` steps, `frames` times; the initial state is not repeated.

    Raises `SolverDiverged` when a frame is not finite, after walking through its interval again to find the step.
    """
    for frame in range(frames):
        before, first = modes, frame * steps_per_frame
        for n in range(first, first + steps_per_frame):
            modes = step(modes, n * dt)
        if not bool(torch.isfinite(modes).all()):
            _raise_divergence(step, before, first=first, steps=steps_per_frame, dt=dt)
        yield modes


def spectral_frames(
    step: Step,
    grid: SpectralGrid,
    initial: Float[np.ndarray, "n c *grid"],
    *,
    dt: float,
    frames: int,
    steps_per_frame: int,
    stride: int = 1,
    frame_done: FrameDone | None = None,
) -> Float[np.ndarray, "n t c *stored"]:
    """Fields at frames 0 ... `frames` - 1 on every `stride`-th point; frame 0 is `initial` itself."""
    finite = np.isfinite(initial).reshape(len(initial), -1).all(axis=1)
    if not finite.all():
        raise SolverDiverged(int(np.argmin(finite)), 0, 0.0)
    every: tuple[EllipsisType | slice, ...] = (..., *(slice(None, None, stride) for _ in grid.axes))
    stored = np.empty((initial.shape[0], frames, *initial[every].shape[1:]))
    stored[:, 0] = initial[every]
    modes = grid.to_modes(torch.from_numpy(initial)).clone()
    for frame, state in enumerate(
        integrate(step, modes, dt=dt, frames=frames - 1, steps_per_frame=steps_per_frame), start=1
    ):
        stored[:, frame] = grid.to_field(state).numpy()[every]
        if frame_done is not None:
            frame_done(frame + 1)
    return stored


def in_blocks(
    solve_block: Callable[[list[Item], FrameDone], np.ndarray],
    items: Sequence[Item],
    *,
    size: int,
    frames: int,
    group: Callable[[Item], int] | None = None,
    progress: OnProgress | None = None,
) -> np.ndarray:
    """Solve `items` in blocks of exactly `size` on one thread; see the top of this module.

    Only items with the same `group(item)` share a block, for instance those that need the same time step.
    OnProgress counts stored frames of trajectories: the total is len(items) * frames.
    """
    check_batch(items)
    members: dict[int, list[int]] = {}
    for index, item in enumerate(items):
        members.setdefault(0 if group is None else group(item), []).append(index)
    blocks = [members[g][i : i + size] for g in sorted(members) for i in range(0, len(members[g]), size)]
    results: list[np.ndarray | None] = [None] * len(items)
    finished = 0
    with one_thread():
        for block in blocks:

            def frame_done(done: int, base: int = finished * frames, count: int = len(block)) -> None:
                if progress is not None:
                    progress(base + count * done, len(items) * frames)

            filled = [items[i] for i in block] + [items[block[-1]]] * (size - len(block))
            try:
                solved = solve_block(filled, frame_done)
            except SolverDiverged as error:
                raise SolverDiverged(block[error.trajectory], error.step, error.time) from None
            for index, trajectory in zip(block, solved, strict=False):
                results[index] = trajectory
            finished += len(block)
    return np.stack([one for one in results if one is not None])


def one_thread() -> AbstractContextManager[None]:
    """Run torch on one thread inside: fastest at these sizes, and the split over threads cannot change a bit."""
    return threads(1)


def steps_between(interval: float, longest: float) -> int:
    """The number of equal steps, each at most `longest` (up to rounding), that make up `interval`."""
    return max(1, math.ceil(in_units(interval, longest)))


def _raise_divergence(step: Step, modes: Tensor, *, first: int, steps: int, dt: float) -> None:
    """Repeat an interval that ended badly and raise at the first trajectory and step that is not finite."""
    for n in range(first, first + steps):
        modes = step(modes, n * dt)
        finite = torch.isfinite(modes).flatten(1).all(dim=1)
        if not bool(finite.all()):
            raise SolverDiverged(int(finite.logical_not().nonzero()[0]), n + 1, (n + 1) * dt)
    raise AssertionError("an interval that diverged did not diverge when repeated")


# Time stepping with every trajectory on its own clock.
#
# Each trajectory takes the step its own state allows and lands exactly on its next stored time, so it never knows
# who else is in the batch. A fixed number of `lanes` is worked on together, sized to the cache; a trajectory that has
# reached the last stored time hands its lane to the next one waiting, so slow and fast ones do not hold each other up.
#
# Axes: n trajectory, t stored time, b lane, c channel, *cells space.


@runtime_checkable
class Scheme(Protocol):
    """A semi-discrete system: its rate of change and the step it allows, per trajectory."""

    def rate(self, state: Tensor) -> Tensor: ...

    def time_step(self, state: Tensor) -> Tensor: ...


Advance = Callable[[Callable[[Tensor], Tensor], Tensor, Tensor], Tensor]


def midpoint(
    rate: Callable[[Tensor], Tensor], state: Float[Tensor, "b c *cells"], dt: Float[Tensor, " b"]
) -> Float[Tensor, "b c *cells"]:
    """Half a step with the rate now, then a whole step with the rate found there: second order."""
    column = dt.reshape(-1, *[1] * (state.ndim - 1))
    halfway = rate(state).mul_(0.5 * column).add_(state)
    return rate(halfway).mul_(column).add_(state)


def march(
    scheme: Scheme,
    initial: Float[np.ndarray, "n c *cells"],
    times: Float[np.ndarray, " t"],
    *,
    lanes: int,
    advance: Advance = midpoint,
    progress: OnProgress | None = None,
) -> Float[np.ndarray, "n t c *cells"]:
    """States at the increasing `times`, the first of which is the time of `initial`.

    Raises `SolverDiverged` as soon as a trajectory allows no positive step, which is how infinities and NaN show.
    """
    count = len(initial)
    stored = np.empty((count, len(times), *initial.shape[1:]))
    stored[:, 0] = initial
    owner = np.arange(min(lanes, count))  # which trajectory a lane works on
    waiting = len(owner)
    frame = np.ones_like(owner)  # the stored time a lane is heading for
    clock = np.full(len(owner), times[0])
    steps = np.zeros_like(owner)
    state = torch.from_numpy(initial[: len(owner)].copy())
    done = count
    while len(owner):
        dt = scheme.time_step(state).numpy()
        stuck = np.flatnonzero(~(dt > 0))
        if len(stuck):
            lane = stuck[0]
            raise SolverDiverged(int(owner[lane]), int(steps[lane]), float(clock[lane]))
        remaining = times[frame] - clock
        arrives = dt >= remaining
        dt = np.where(arrives, remaining, dt)
        state = advance(scheme.rate, state, torch.from_numpy(dt))
        clock = np.where(arrives, times[frame], clock + dt)
        steps += 1
        if not arrives.any():
            continue
        for lane in np.flatnonzero(arrives):
            stored[owner[lane], frame[lane]] = state[lane].numpy()
            if not np.isfinite(stored[owner[lane], frame[lane]]).all():
                raise SolverDiverged(int(owner[lane]), int(steps[lane]), float(clock[lane]))
            frame[lane] += 1
            done += 1
            if frame[lane] == len(times) and waiting < count:  # the next one takes over the lane
                state[lane] = torch.from_numpy(initial[waiting])
                owner[lane], frame[lane], clock[lane], steps[lane] = waiting, 1, times[0], 0
                waiting += 1
        if progress is not None:
            progress(done, count * len(times))
        busy = frame < len(times)
        if not busy.all():
            state = state[torch.from_numpy(busy)]
            owner, frame, clock, steps = owner[busy], frame[busy], clock[busy], steps[busy]
    return stored
