"""Two-dimensional incompressible Navier-Stokes in vorticity form on the torus.

    w_t + u . grad w = viscosity laplace w + f,     u = (psi_y, -psi_x),     -laplace psi = w,     w = v_x - u_y

Like-signed vortices merge into fewer, larger ones while thin filaments carry enstrophy to short waves, which
viscosity removes. Advection in Basdevant's form takes four real transforms instead of five (u, v and two products):

    u . grad w = (d_xx - d_yy)(u v) + d_xy (v^2 - u^2)

Trajectories are advanced by `ssno.pde.vorticity`. Axes: b trajectory, x, y grid points.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid
from ssno.pde.integrators import ifrk4
from ssno.pde.problems.problem import OnProgress, SolverDiverged
from ssno.pde.spectral import SpectralCoefficients, SpectralEquation
from ssno.pde.stepping import integrate, one_thread, steps_between

# Forces made of a few waves, which may drift: cheap in Fourier space, exact at any time.
#
#     f(x, t) = sum_j  sine_j sin(2 pi m_j . x + drift t) + cosine_j cos(2 pi m_j . x + drift t)
#
# on the unit torus, m_j integer. In Fourier space only the coefficients m_j and -m_j are not zero,
#
#     f_m = (cosine - i sine) / 2 exp(i drift t)      and its conjugate at -m,
#
# so adding the force to a time derivative touches a handful of numbers. Axes: b trajectory, j wave.


@dataclass(frozen=True)
class WaveForce:
    """Amplitudes of the waves for a batch of trajectories; all share wavenumbers and drift."""

    wavenumber: Int[np.ndarray, "j 2"]
    sine: Float[np.ndarray, "b j"]
    cosine: Float[np.ndarray, "b j"]
    drift: float = 0.0

    def __post_init__(self) -> None:
        if (self.wavenumber == 0).all(axis=1).any():
            raise ValueError("`wavenumber` contains (0, 0): a torus has no mean vorticity, so it cannot be forced.")

    def values(self, axes: tuple[Axis, Axis], time: float) -> Float[np.ndarray, "b x y"]:
        """The force on a grid."""
        x, y = (axis.coordinates() for axis in axes)
        phase = 2 * np.pi * (self.wavenumber[:, 0, None, None] * x[:, None] + self.wavenumber[:, 1, None, None] * y)
        phase = phase + self.drift * time
        # One wave after the other, so that no reduction depends on the number of trajectories.
        total = np.zeros((len(self.sine), len(x), len(y)))
        for j, angle in enumerate(phase):
            total += self.sine[:, j, None, None] * np.sin(angle) + self.cosine[:, j, None, None] * np.cos(angle)
        return total

    def on(self, grid: SpectralGrid) -> "ModeForce":
        """The same force as a rule that adds it to Fourier coefficients."""
        _, kept = grid.modes_shape
        rows = grid.modes_shape[0]
        half = 0.5 * (self.cosine - 1j * self.sine)
        places: list[tuple[int, int]] = []
        columns: list[np.ndarray] = []
        turns: list[float] = []
        for j, (m_x, m_y) in enumerate(self.wavenumber.tolist()):
            if 2 * abs(m_x) >= rows or abs(m_y) >= kept:
                raise ValueError(
                    f"The wave ({m_x}, {m_y}) of the force does not fit on a grid of {grid.shape} points. "
                    "Use a finer grid."
                )
            # The stored half of the spectrum has m_y >= 0; on its edge both m and -m are stored.
            for sign in (1, -1):
                if sign * m_y > 0 or m_y == 0:
                    places.append((sign * m_x % rows, sign * m_y))
                    columns.append(half[:, j] if sign == 1 else half[:, j].conj())
                    turns.append(sign * self.drift)
        coefficient = torch.from_numpy(np.stack(columns, axis=1))
        return ModeForce(places=tuple(places), coefficient=coefficient, turn=torch.tensor(turns, dtype=torch.float64))


@dataclass(frozen=True)
class ModeForce:
    """Coefficients of a force at some places of the stored spectrum, each turning at its own rate."""

    places: tuple[tuple[int, int], ...]
    coefficient: torch.Tensor
    turn: torch.Tensor

    def add_to(self, rate: SpectralCoefficients, time: float) -> SpectralCoefficients:
        """Add the force at this time, in place."""
        now = self.coefficient * torch.exp(1j * self.turn * time)
        for n, (row, column) in enumerate(self.places):
            rate[:, 0, row, column] += now[:, n]
        return rate


def vorticity(
    grid: SpectralGrid, *, viscosity: Float[Tensor, " b"], force: ModeForce | None = None
) -> SpectralEquation:
    """The equation above with one viscosity per trajectory, on a dealiased grid with two axes."""
    if len(grid.axes) != 2 or not grid.dealias:
        raise ValueError(
            f"Vorticity needs a dealiased grid with 2 axes, got {len(grid.axes)} axes and `dealias={grid.dealias}`. "
            "Build it with SpectralGrid(axes, dealias=True)."
        )
    k_x, k_y = grid.wavenumbers()
    to_velocity = velocity_symbols(grid)
    # Real symbols: -(d_xx - d_yy) and -d_xy become k_x^2 - k_y^2 and k_x k_y.
    from_products = torch.stack([k_x.square() - k_y.square(), (k_x * k_y).expand(grid.modes_shape)])
    products = torch.empty(0)

    def nonlinear(modes: SpectralCoefficients, time: float) -> SpectralCoefficients:
        nonlocal products
        velocity = grid.to_field(modes * to_velocity)
        u, v = velocity[:, 0], velocity[:, 1]
        if products.shape != velocity.shape:
            products = torch.empty_like(velocity)
        torch.mul(u, v, out=products[:, 0])
        torch.mul(v, v, out=products[:, 1])
        products[:, 1].sub_(u.mul_(u))
        advected = grid.to_modes(products).mul_(from_products)
        rate = advected[:, :1].add_(advected[:, 1:])
        return (rate if force is None else force.add_to(rate, time)).contiguous()

    linear = viscosity.reshape(-1, 1, 1, 1) * grid.laplacian()
    return SpectralEquation(grid, linear, nonlinear)


def velocity_symbols(grid: SpectralGrid) -> Complex[Tensor, "2 kx ky"]:
    """Symbols that turn the coefficients of w into those of u and v: i k_y / |k|^2 and -i k_x / |k|^2."""
    k_x, k_y = grid.wavenumbers()
    squared = -grid.laplacian()
    squared[0, 0] = 1.0  # no mean vorticity, no mean flow
    return torch.stack([1j * k_y / squared, -1j * k_x / squared])


# Vorticity at stored times, every trajectory with steps of its own.
#
# The linear part is exact (`ssno.pde.integrators.ifrk4`); the step is limited by how far a wave of the shortest
# length is carried: dt k_max max(|u| + |v|) <= COURANT. Steps are chosen again at every stored frame from the
# trajectory's own speed: a frame interval is divided into `steps`, 2 `steps`, 4 `steps`, ... equal ones. Trajectories
# with equal steps are advanced together in blocks of one fixed size, so results are bitwise independent of the batch.
#
# Axes: n, b trajectory, t stored frame, x, y grid points.

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
