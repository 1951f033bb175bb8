"""Vorticity at stored times, every trajectory with steps of its own.

The linear part is exact (`ssno.pde.schemes.integrators.ifrk4`); the step is limited by how far a wave of the shortest
length is carried: dt k_max max(|u| + |v|) <= COURANT. Steps are chosen again at every stored frame from the
trajectory's own speed: a frame interval is divided into `steps`, 2 `steps`, 4 `steps`, ... equal ones. Trajectories
with equal steps are advanced together in blocks of one fixed size, so results are bitwise independent of the batch.

Axes: n, b trajectory, t stored frame, x, y grid points.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ssno.pde.equations.spectral import SpectralCoefficients
from ssno.pde.equations.vorticity import velocity_symbols, vorticity
from ssno.pde.forcing import WaveForce
from ssno.pde.grids import SpectralGrid
from ssno.pde.problems.problem import OnProgress, SolverDiverged
from ssno.pde.schemes.integrators import ifrk4
from ssno.pde.schemes.rollout import one_thread, rollout, steps_between

COURANT = 1.8
"""Largest dt k_max max(|u| + |v|) at the beginning of a frame interval; RK4 is stable up to 2.8."""

MOST_HALVINGS = 12
"""A step 4096 times shorter than asked for means that the trajectory is lost."""


def vorticity_frames(
    grid: SpectralGrid,
    initial: Float[np.ndarray, "n x y"],
    times: Float[np.ndarray, " t"],
    *,
    viscosity: Float[np.ndarray, " n"],
    force: Callable[[Sequence[int]], WaveForce] | None,
    step: float,
    block: int,
    stride: int = 1,
    progress: OnProgress | None = None,
) -> Float[np.ndarray, "n t sx sy"]:
    """Vorticity at `times` (from t = 0 on) on every `stride`-th point; `force(indices)` is that of some trajectories.

    `step` is the longest step allowed. Raises `SolverDiverged` with the trajectory's index in the batch.
    """
    if not 0 < step < float("inf"):
        raise ValueError(f"`step` must be a positive finite number, got {step}.")
    count, every = len(initial), slice(None, None, stride)
    stored = np.empty((count, len(times), *initial[0, every, every].shape))
    modes: list[Tensor] = [torch.empty(0)] * count
    speed, taken = np.zeros(count), np.zeros(count, dtype=int)
    to_velocity, shortest = velocity_symbols(grid), max(float(k.abs().max()) for k in grid.wavenumbers())

    def keep(indices: list[int], state: SpectralCoefficients, time: float) -> None:
        swift = grid.to_field(state * to_velocity).abs().sum(dim=1).flatten(1).amax(dim=1)
        for index, one, fastest in zip(dict.fromkeys(indices), state, swift.tolist(), strict=False):
            modes[index], speed[index] = one, fastest
            if not np.isfinite(fastest):
                raise SolverDiverged(index, int(taken[index]), time)

    def steps_for(index: int, interval: float) -> int:
        asked = steps_between(interval, step)
        allowed = COURANT / (shortest * max(speed[index], 1e-300))
        halvings = int(np.ceil(max(0.0, np.log2(interval / asked / allowed))))
        if halvings > MOST_HALVINGS:
            raise SolverDiverged(index, int(taken[index]), now)
        return asked * 2**halvings

    def advance(indices: list[int], start: float, interval: float, steps: int) -> None:
        chosen = None if force is None else force(indices).on(grid)
        equation = vorticity(grid, viscosity=torch.from_numpy(viscosity[indices]), force=chosen)
        dt = interval / steps
        one_step = ifrk4(equation, dt)
        state = torch.stack([modes[i] for i in indices])
        try:
            (state,) = rollout(
                lambda now, time: one_step(now, start + time), state, dt=dt, frames=1, steps_per_frame=steps
            )
        except SolverDiverged as error:
            index = indices[error.trajectory]
            raise SolverDiverged(index, int(taken[index]) + error.step, start + error.time) from None
        taken[list(dict.fromkeys(indices))] += steps
        keep(indices, state, start + interval)

    with one_thread():
        for indices in _blocks(range(count), block):
            keep(indices, grid.to_modes(torch.from_numpy(initial[indices, None])), 0.0)
        now, done = 0.0, 0
        for frame, time in enumerate(times.tolist()):
            groups: dict[int, list[int]] = {}
            for index in range(count):
                steps = steps_for(index, time - now) if time > now else 0
                groups.setdefault(steps, []).append(index)
            for steps, members in groups.items():
                for indices in _blocks(members, block):
                    if steps:
                        advance(indices, now, time - now, steps)
                    fields = grid.to_field(torch.stack([modes[i] for i in indices]))[:, 0, every, every].numpy()
                    for index, field in zip(dict.fromkeys(indices), fields, strict=False):
                        stored[index, frame] = field
                        done += 1
                    if progress is not None:
                        progress(done, count * len(times))
            now = time
    return stored


def _blocks(members: Sequence[int], size: int) -> list[list[int]]:
    """Cut into blocks of exactly `size`, the last filled up with copies of its last member."""
    blocks = [list(members[i : i + size]) for i in range(0, len(members), size)]
    return [block + [block[-1]] * (size - len(block)) for block in blocks]
