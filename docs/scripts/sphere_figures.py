"""Draw the pictures of docs/manual/sphere.md:  python docs/scripts/sphere_figures.py  (a minute on one core)."""

from pathlib import Path

import matplotlib
import numpy as np
import torch

from ssno.pde.problems.shallow_water import ShallowWater
from ssno.plots.animation import animate_globe
from ssno.transforms.sphere import transform_of

IMAGES = Path(__file__).parents[1] / "images"
HOUR = 3600.0


def vorticity(problem: ShallowWater, **parameters: float) -> np.ndarray:
    """Vorticity of one trajectory on a grid of 128 x 256 points, in units of 1e-5 per second."""
    modes = problem.coefficients([{name: np.array(value) for name, value in parameters.items()}])[0, ..., 1]
    transform = transform_of(128, 256, problem.degrees, torch.float64)
    return 1e5 * transform.synthesise(torch.from_numpy(modes).transpose(-1, -2)).numpy()


def main() -> None:
    """Galewsky's jet over six days, and eddies over twelve."""
    matplotlib.use("Agg")
    jet = ShallowWater(
        nlat=128,
        frames=49,
        interval=3 * HOUR,
        step=600.0,
        initial="galewsky",
        hyperdiffusion=0.0,
        viscosity=1e5,
    )
    frames = vorticity(jet, longitude=0.0)
    titles = [f"Galewsky's jet, {t / 24 / HOUR:.1f} days" for t in jet.times]
    animate_globe(frames, IMAGES / "sphere-galewsky.gif", titles=titles, latitude=50.0, turn=2.0, limit=10.0)
    eddies = ShallowWater(nlat=64, frames=49, interval=6 * HOUR, initial="vortical")
    frames = vorticity(eddies, field_seed=5)
    titles = [f"eddies, {t / 24 / HOUR:.1f} days" for t in eddies.times]
    animate_globe(frames, IMAGES / "sphere-vortical.gif", titles=titles, latitude=25.0, turn=3.0)


if __name__ == "__main__":
    main()
