"""Gaussian random fields on the unit torus, by a seed that means the same field on every grid.

    w(x) = sum_m w_m exp(2 pi i m . x),      E |w_m|^2 = 2 sigma^2 (4 pi^2 |m|^2 + tau^2)^(-alpha),      w_0 = 0

with tau = 7, alpha = 2.5 and sigma = tau^(alpha - 1) = 7^1.5: smooth blobs about a tenth of the box wide. The
factor 2 is the convention of the code that made the public Navier-Stokes files in 2020 (two unit normals per mode,
standard deviation 0.262); the same code after June 2022 gives half the variance (0.185).

The normals of mode m are drawn in the order of the square shells max(|m_x|, |m_y|) = 1, 2, ..., so a finer grid
adds short waves and leaves the long ones alone. Axes: x, y grid points; s Fourier mode of the upper half plane.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from jaxtyping import Complex, Float, Int

from ssno.base.checks import require_one_of
from ssno.pde.grids import check_at_least, check_positive

# Initial conditions as sums of sine waves: functions of a few drawn numbers, so that any grid can sample them.
#
#     u(x) = sum_i amplitude_i sin(2 pi wavenumber_i . x / length + phase_i)
#
# One trajectory at a time and one wave after the other: the sum has a fixed order and the result does not depend on
# how many trajectories are made together.
#
# Axes: w wave, d space axis.


def sine_waves(
    coordinates: Sequence[Float[np.ndarray, " _"]],
    lengths: Sequence[float],
    *,
    amplitude: Float[np.ndarray, " w"],
    wavenumber: Int[np.ndarray, "w d"],
    phase: Float[np.ndarray, " w"],
) -> Float[np.ndarray, "*grid"]:
    """Evaluate the sum on the grid spanned by `coordinates`; a wave repeats `wavenumber` times in a length."""
    mesh = np.meshgrid(*coordinates, indexing="ij", sparse=True)
    total = np.zeros([len(x) for x in coordinates])
    for a, numbers, shift in zip(amplitude, wavenumber, phase, strict=True):
        angle = shift + sum(2 * np.pi * n / length * x for n, length, x in zip(numbers, lengths, mesh, strict=True))
        total += a * np.sin(angle)
    return total


def draw_waves(rng: np.random.Generator, *, waves: int, low: int, high: int, dimensions: int) -> dict[str, np.ndarray]:
    """Amplitudes U[-1/2, 1/2), phases U[0, 2 pi), integer wavenumbers in [low, high): the upper end excluded."""
    return {
        "amplitude": rng.uniform(-0.5, 0.5, size=waves),
        "phase": rng.uniform(0, 2 * np.pi, size=waves),
        "wavenumber": rng.integers(low, high, size=(waves, dimensions), dtype=np.int64),
    }


Convention = Literal["fno2020", "fno2022"]
TAU = 7.0
ALPHA = 2.5


def gaussian_field(
    seed: int, points: int, *, convention: Convention = "fno2020", tau: float = TAU, alpha: float = ALPHA
) -> Float[np.ndarray, "x y"]:
    """The field of this seed at the nodes i / points of the unit square.

    Modes below the Nyquist frequency of the grid take part; `seed` is a non-negative integer.
    """
    check_positive(tau=tau, alpha=alpha)
    check_at_least(2, points=points)
    check_at_least(0, seed=seed)
    modes = half_plane((points - 1) // 2)
    normals = np.random.Generator(np.random.Philox(seed)).standard_normal((len(modes), 2))
    amplitude = np.sqrt(mode_variance(modes, convention=convention, tau=tau, alpha=alpha) / 2)
    coefficients = amplitude * (normals[:, 0] + 1j * normals[:, 1])
    return np.fft.irfft2(_arrange(coefficients, modes, points), s=(points, points), norm="forward")


def mode_variance(
    modes: Int[np.ndarray, "s 2"], *, convention: Convention = "fno2020", tau: float = TAU, alpha: float = ALPHA
) -> Float[np.ndarray, " s"]:
    """E |w_m|^2 of the formula above, for integer wavenumbers m."""
    require_one_of("convention", convention, get_args(Convention))
    factor = 2.0 if convention == "fno2020" else 1.0
    squared = 4 * np.pi**2 * (modes.astype(np.float64) ** 2).sum(axis=1)
    return factor * tau ** (2 * alpha - 2) * (squared + tau**2) ** -alpha


@lru_cache(maxsize=8)
def half_plane(highest: int) -> Int[np.ndarray, "s 2"]:
    """Wavenumbers m up to `highest` of which one of m and -m is listed, shell after shell."""
    numbers = np.arange(-highest, highest + 1)
    x, y = (axis.ravel() for axis in np.meshgrid(numbers, numbers, indexing="ij"))
    listed = (y > 0) | ((y == 0) & (x > 0))
    x, y = x[listed], y[listed]
    order = np.lexsort((y, x, np.maximum(np.abs(x), y)))
    return np.stack([x[order], y[order]], axis=1)


def _arrange(
    coefficients: Complex[np.ndarray, " s"], modes: Int[np.ndarray, "s 2"], points: int
) -> Complex[np.ndarray, "x half_y"]:
    """Coefficients of the half plane in the layout of a real transform; modes with m_y = 0 come with their mirror."""
    spectrum = np.zeros((points, points // 2 + 1), dtype=np.complex128)
    spectrum[modes[:, 0] % points, modes[:, 1]] = coefficients
    flat = modes[:, 1] == 0
    spectrum[-modes[flat, 0] % points, 0] = coefficients[flat].conj()
    return spectrum
