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
from ssno.pde.integrators import Step, ifrk4
from ssno.pde.problems.problem import OnProgress, SolverDiverged
from ssno.pde.spectral import SpectralEquation

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


# Spectral equations of a flow, every trajectory with steps of its own.
#
# The linear part is exact (`ssno.pde.integrators.ifrk4`); the step is limited by how far a wave of the shortest
# length is carried: dt k_max max(|u| + |v| + ...) <= `courant`. Steps are chosen again at every stored frame from the
# trajectory's own speed: a frame interval is divided into `steps`, 2 `steps`, 4 `steps`, ... equal ones. Trajectories
# with equal steps are advanced together in blocks of one fixed size, so results are bitwise independent of the batch.
# Alone in its block a trajectory has nobody to share steps with, and may take as few as it is allowed (`halve=False`).

COURANT = 1.8
"""Largest dt k_max max(|u| + |v| + ...) at the beginning of a frame interval; RK4 is stable up to 2.8."""

MOST_HALVINGS = 12
"""A step 4096 times shorter than asked for means that the trajectory is lost."""


def courant_frames(
    grid: SpectralGrid,
    initial: Float[np.ndarray, "n c *grid"],
    times: Float[np.ndarray, " t"],
    *,
    equation: Callable[[Sequence[int]], SpectralEquation],
    velocity: Callable[[Tensor], Tensor],
    stored: Callable[[Tensor], Tensor],
    step: float,
    block: int,
    courant: float = COURANT,
    halve: bool = True,
    progress: OnProgress | None = None,
) -> Float[np.ndarray, "n t *stored"]:
    """What `stored(modes)` makes of the states at `times`, from t = 0 on.

    `equation(indices)` is that of some trajectories, `velocity(modes)` what carries their waves; `step` is the longest
    step allowed. Raises `SolverDiverged` with the trajectory's index in the batch.
    """
    if not 0 < step < float("inf"):
        raise ValueError(f"`step` must be a positive finite number, got {step}.")
    count = len(initial)
    frames: list[list[np.ndarray]] = [[] for _ in range(count)]
    modes: list[Tensor] = [torch.empty(0)] * count
    speed, taken = np.zeros(count), np.zeros(count, dtype=int)
    shortest = max(float(k.abs().max()) for k in grid.wavenumbers())

    def keep(indices: list[int], state: Tensor, time: float) -> None:
        swift = velocity(state).abs().sum(dim=1).flatten(1).amax(dim=1)
        for index, one, fastest in zip(dict.fromkeys(indices), state, swift.tolist(), strict=False):
            modes[index], speed[index] = one, fastest
            if not np.isfinite(fastest):
                raise SolverDiverged(index, int(taken[index]), time)

    def steps_for(index: int, interval: float) -> int:
        asked = steps_between(interval, step)
        allowed = courant / (shortest * max(speed[index], 1e-300))
        halvings = int(np.ceil(max(0.0, np.log2(interval / asked / allowed))))
        if halvings > MOST_HALVINGS:
            raise SolverDiverged(index, int(taken[index]), now)
        return asked * 2**halvings if halve else max(asked, steps_between(interval, allowed))

    def advance(indices: list[int], start: float, interval: float, steps: int) -> None:
        dt = interval / steps
        one_step = ifrk4(equation(indices), dt)
        state = torch.stack([modes[i] for i in indices])
        try:
            (state,) = integrate(
                lambda now, time: one_step(now, start + time), state, dt=dt, frames=1, steps_per_frame=steps
            )
        except SolverDiverged as error:
            index = indices[error.trajectory]
            raise SolverDiverged(index, int(taken[index]) + error.step, start + error.time) from None
        taken[list(dict.fromkeys(indices))] += steps
        keep(indices, state, start + interval)

    with one_thread():
        for indices in _blocks(range(count), block):
            keep(indices, grid.to_modes(torch.from_numpy(initial[indices])), 0.0)
        now, done = 0.0, 0
        for time in times.tolist():
            groups: dict[int, list[int]] = {}
            for index in range(count):
                steps = steps_for(index, time - now) if time > now else 0
                groups.setdefault(steps, []).append(index)
            for steps, members in groups.items():
                for indices in _blocks(members, block):
                    if steps:
                        advance(indices, now, time - now, steps)
                    fields = stored(torch.stack([modes[i] for i in indices])).contiguous().numpy()
                    for index, field in zip(dict.fromkeys(indices), fields, strict=False):
                        frames[index].append(field)
                        done += 1
                    if progress is not None:
                        progress(done, count * len(times))
            now = time
    return np.stack([np.stack(one) for one in frames])


def _blocks(members: Sequence[int], size: int) -> list[list[int]]:
    """Cut into blocks of exactly `size`, the last filled up with copies of its last member."""
    blocks = [list(members[i : i + size]) for i in range(0, len(members), size)]
    return [block + [block[-1]] * (size - len(block)) for block in blocks]


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
