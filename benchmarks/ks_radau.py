"""A worker (`benchmarks.serving`): one trajectory of the KS case by the method of lines with SciPy's Radau, 1e-9.

Derivatives are spectral, the Jacobian is found by finite differences: the way the public data were made.
"""

import numpy as np
from scipy.fftpack import diff
from scipy.integrate import solve_ivp

from benchmarks.ks_case import END, FRAMES, LENGTH, VISCOSITY, initial
from benchmarks.serving import serve


def rate(time: float, u: np.ndarray) -> np.ndarray:
    """-u u_x - u_xx - viscosity u_xxxx."""
    u_x, u_xx, u_xxxx = (diff(u, order, LENGTH) for order in (1, 2, 4))
    return -u * u_x - u_xx - VISCOSITY * u_xxxx


def main() -> None:
    """Solve on command."""
    start, times = initial()[0], np.linspace(0, END, FRAMES)
    serve(lambda: solve_ivp(rate, (0, END), start, "Radau", times, rtol=1e-9, atol=1e-9).y.T[None, -1])


if __name__ == "__main__":
    main()
