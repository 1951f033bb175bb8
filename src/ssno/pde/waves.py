"""Initial conditions as sums of sine waves: functions of a few drawn numbers, so that any grid can sample them.

    u(x) = sum_i amplitude_i sin(2 pi wavenumber_i . x / length + phase_i)

One trajectory at a time and one wave after the other: the sum has a fixed order and the result does not depend on
how many trajectories are made together.

Axes: w wave, d space axis.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int


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
