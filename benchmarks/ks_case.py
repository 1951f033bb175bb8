"""The Kuramoto-Sivashinsky case that all generators solve, as plain numbers: workers import it without ssno.

u_t + u u_x + u_xx + 0.1 u_xxxx = 0,   x in [0, 64) periodic, 512 points, t from 0 to 2.5 in 500 steps, 26 frames
"""

import numpy as np

VISCOSITY, LENGTH, POINTS, END, STEPS, FRAMES, BATCH = 0.1, 64.0, 512, 2.5, 500, 26, 64
WAVES, LONGEST = 10, 8


def initial(count: int = BATCH) -> np.ndarray:
    """(count, 512): sums of ten sine waves as in the public data, the same for every generator."""
    rng = np.random.default_rng(7)
    amplitude, phase = rng.uniform(-0.5, 0.5, (count, WAVES, 1)), rng.uniform(0, 2 * np.pi, (count, WAVES, 1))
    number = rng.integers(1, LONGEST + 1, (count, WAVES, 1))
    x = np.arange(POINTS) / POINTS
    return (amplitude * np.sin(2 * np.pi * number * x + phase)).sum(axis=1)
