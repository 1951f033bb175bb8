"""Two-dimensional incompressible Navier-Stokes in vorticity form on the torus.

    w_t + u . grad w = viscosity laplace w + f,     u = (psi_y, -psi_x),     -laplace psi = w,     w = v_x - u_y

Like-signed vortices merge into fewer, larger ones while thin filaments carry enstrophy to short waves, which
viscosity removes. Advection in Basdevant's form takes four real transforms instead of five (u, v and two products):

    u . grad w = (d_xx - d_yy)(u v) + d_xy (v^2 - u^2)

Trajectories are advanced by `ssno.pde.stepping.courant_frames`.
Axes: n, b trajectory, t stored frame, x, y grid points.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid
from ssno.pde.problems.problem import OnProgress
from ssno.pde.spectral import SpectralCoefficients, SpectralEquation
from ssno.pde.stepping import courant_frames

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
    every, to_velocity = slice(None, None, stride), velocity_symbols(grid)

    def equation(indices: Sequence[int]) -> SpectralEquation:
        chosen = None if force is None else force(indices).on(grid)
        return vorticity(grid, viscosity=torch.from_numpy(viscosity[indices]), force=chosen)

    return courant_frames(
        grid,
        initial[:, None],
        times,
        equation=equation,
        velocity=lambda state: grid.to_field(state * to_velocity),
        stored=lambda state: grid.to_field(state)[:, 0, every, every],
        step=step,
        block=block,
        progress=progress,
    )
