"""TorusVis and TorusVisForce of fourierflow: `torus_vis.h5`, `torus_vis_force.h5`.

Groups `train`, `valid`, `test`, each with

    u    float32 (sample, x, y, time)    vorticity at t = 0.1, 0.2, ..., without t = 0
    a    (sample, x, y)                  vorticity at t = 0
    f    (sample, x, y)                  force of TorusVis, or with a time axis for TorusVisForce
    mu   (sample,)                       viscosity

The force that drifts is stored as it was at the beginning of the solver's step, 1e-4 before the frame's time.
Which frames are used and that the force is given at the target time is in `ssno.data.defaults`.
"""

import numpy as np

from ssno.data.errors import DataError
from ssno.data.files.blocks import Block, Part
from ssno.data.files.patterns import Pattern, parse_pattern
from ssno.data.files.probe import Contents
from ssno.data.files.readers.protocol import Reader, ReadOptions
from ssno.data.grids import box
from ssno.data.seeds import SPLITS
from ssno.data.trajectories import Trajectories

INTERVAL = 0.1
SPACE = ("x", "y")


def recognise(contents: Contents) -> bool:
    """A group named after a split that holds `u`, `f` and `mu`."""
    return contents.kind == "hdf5" and bool(_splits(contents))


def open_file(contents: Contents, options: ReadOptions) -> dict[str, Trajectories]:
    """The samples of each split that the file holds, with force and viscosity as known fields."""
    return {split: _open_split(contents, split, options) for split in _splits(contents)}


def _splits(contents: Contents) -> list[str]:
    return [split for split in SPLITS if all(f"{split}/{name}" in contents.arrays for name in ("u", "f", "mu"))]


def _open_split(contents: Contents, split: str, options: ReadOptions) -> Trajectories:
    vorticity, force, viscosity = (contents[f"{split}/{name}"] for name in ("u", "f", "mu"))
    if len(force.shape) not in (3, 4):
        raise DataError(
            f"{force.array.label} has shape {force.shape}, expected (sample, x, y) or (sample, x, y, time)."
        )
    drifts = len(force.shape) == 4
    with_time = parse_pattern("batch x y time")
    part = Part(
        (Block(vorticity.array, with_time, SPACE),),
        (
            Block(force.array, with_time if drifts else Pattern(("batch", "x", "y")), SPACE),
            Block(viscosity.array, Pattern(("batch",)), SPACE),
        ),
    )
    return Trajectories.from_parts(
        [part],
        name="torus-vis-force" if drifts else "torus-vis",
        published=True,
        fields=["vorticity"],
        context_fields=["force", "viscosity"],
        times=INTERVAL * np.arange(1, part.frames + 1),
        axes=box(("x", "y"), part.grid),
        parameters={"viscosity": contents.values(f"{split}/mu").astype(np.float64)},
    )


READER = Reader("fourierflow on the torus", frozenset(), recognise, open_file)
