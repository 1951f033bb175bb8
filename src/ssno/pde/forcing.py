"""Forces made of a few waves, which may drift: cheap in Fourier space, exact at any time.

    f(x, t) = sum_j  sine_j sin(2 pi m_j . x + drift t) + cosine_j cos(2 pi m_j . x + drift t)

on the unit torus, m_j integer. In Fourier space only the coefficients m_j and -m_j are not zero,

    f_m = (cosine - i sine) / 2 exp(i drift t)      and its conjugate at -m,

so adding the force to a time derivative touches a handful of numbers. Axes: b trajectory, j wave.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from ssno.pde.equations.spectral import SpectralCoefficients
from ssno.pde.grids import SpectralGrid
from ssno.pde.problems.problem import Axis


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
