"""Animations of docs/manual/fluids.md:  python docs/scripts/fluid_figures.py [name ...]  (minutes on one core)."""

import dataclasses
import sys
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image

from ssno.pde.problems.gas import RayleighTaylor, RichtmyerMeshkov
from ssno.pde.problems.problem import Problem
from ssno.pde.problems.torus import TorusLi, TorusVis, TorusVisForce

IMAGES = Path(__file__).parents[1] / "images"
SIZE = 256
COLOURS = 48
TORUS = {"points": 128, "solver_points": 128, "first_time": 0.0, "frames": 41, "frame_interval": 0.5, "step": 0.02}
SAMPLES: dict[str, Problem] = {
    "torus-li": TorusLi(**TORUS),
    "torus-vis": TorusVis(**TORUS),
    "torus-vis-force": TorusVisForce(**TORUS),
    "ce-rm": RichtmyerMeshkov(points=128, frames=41, frame_interval=0.05),
    "gce-rt": RayleighTaylor(points=128, frames=41, frame_interval=0.125),
}


def shown(name: str) -> tuple[np.ndarray, str]:
    """The field to show (t, x, y) between 0 and 1, and its colours."""
    problem = SAMPLES[name]
    parameters = problem.draw(np.random.default_rng(1))
    if name == "gce-rt":
        parameters["scale"] = np.array(1.0)  # the largest fingers that the problem draws
    solution = problem.solve([parameters])
    if name == "gce-rt":
        assert solution.context is not None
        return solution.context[0, :, 0], "cividis"  # the dye: density varies more with radius than with fingers
    if name == "ce-rm":
        density = solution.state[0, :, 0]
        return np.clip((density - 0.2) / 2.8, 0, 1), "magma"
    vorticity = solution.state[0, :, 0]
    scale = np.abs(vorticity).reshape(len(vorticity), -1).max(axis=1).clip(0.5)[:, None, None]
    return 0.5 + 0.5 * vorticity / scale, "RdBu_r"


def animate(name: str) -> Path:
    """Write one animation, x to the right and y up."""
    field, colours = shown(name)
    picture = matplotlib.colormaps[colours](field.transpose(0, 2, 1)[:, ::-1], bytes=True)[..., :3]
    shades = matplotlib.colormaps[colours](np.linspace(0, 1, COLOURS), bytes=True)[None, :, :3]
    palette = Image.fromarray(np.ascontiguousarray(shades)).quantize(COLOURS)
    frames = [
        Image.fromarray(frame).resize((SIZE, SIZE), Image.Resampling.BILINEAR).quantize(palette=palette, dither=0)
        for frame in picture
    ]
    path = IMAGES / f"fluids-{name}.gif"
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=120, loop=0, optimize=True)
    return path


def main() -> None:
    for name in sys.argv[1:] or list(SAMPLES):
        path = animate(name)
        print(path.name, f"{path.stat().st_size / 1e6:.2f} MB", dataclasses.asdict(SAMPLES[name]))  # type: ignore


if __name__ == "__main__":
    main()
