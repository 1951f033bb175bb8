"""Time stepping with every trajectory on its own clock.

Each trajectory takes the step its own state allows and lands exactly on its next stored time, so it never knows
who else is in the batch. A fixed number of `lanes` is worked on together, sized to the cache; a trajectory that has
reached the last stored time hands its lane to the next one waiting, so slow and fast ones do not hold each other up.

Axes: n trajectory, t stored time, b lane, c channel, *cells space.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ssno.pde.problems.problem import OnProgress, SolverDiverged


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
