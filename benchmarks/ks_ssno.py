"""A worker (`benchmarks.serving`): the KS case by ssno, as `ssno data generate` solves it, frames included."""

import numpy as np
import torch

from benchmarks.ks_case import END, FRAMES, LENGTH, POINTS, STEPS, VISCOSITY, initial
from benchmarks.serving import serve
from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid
from ssno.pde.integrators import etdrk4
from ssno.pde.spectral import kuramoto_sivashinsky
from ssno.pde.stepping import spectral_frames


def solve(start: np.ndarray) -> np.ndarray:
    """(b, 512) -> (b, 26, 512)."""
    grid = SpectralGrid([Axis("x", LENGTH, POINTS)], dealias=True)
    dt = END / STEPS
    step = etdrk4(kuramoto_sivashinsky(grid, viscosity=VISCOSITY), dt)
    frames = spectral_frames(step, grid, start[:, None], dt=dt, frames=FRAMES, steps_per_frame=STEPS // (FRAMES - 1))
    return frames[:, :, 0]


def main() -> None:
    """Solve on command."""
    torch.set_num_threads(1)
    start = initial()
    serve(lambda: solve(start)[:, -1])


if __name__ == "__main__":
    main()
