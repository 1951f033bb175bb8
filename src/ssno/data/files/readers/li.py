"""Li's Navier-Stokes files, such as `NavierStokes_V1e-5_N1200_T20.mat`.

    u   float32 (sample, x, y, time)     vorticity; 1200 x 64 x 64 x 20, at t = 1, 2, ..., without t = 0
    a   (sample, x, y)                   vorticity at t = 0
    t   (time,)                          times, in some files

MATLAB files of version 5 hold them in that order. Those of version 7.3 are HDF5 files, where MATLAB's column-major
arrays appear with all axes reversed: (time, y, x, sample). The viscosity is in the file's name only.
"""

import re

import numpy as np

from ssno.data.errors import DataError
from ssno.data.files.blocks import Block, Part
from ssno.data.files.patterns import parse_pattern
from ssno.data.files.probe import Contents
from ssno.data.files.readers.protocol import WHOLE, Reader, ReadOptions
from ssno.data.grids import box
from ssno.data.trajectories import Trajectories

IN_NAME = re.compile(r"_V(\d+(?:\.\d+)?e-\d+)_", re.IGNORECASE)
PUBLISHED_VISCOSITY = 1e-5
PUBLISHED_FRAMES = 20


def recognise(contents: Contents) -> bool:
    """Four-axis `u` with its initial condition `a`, in MATLAB's order or reversed."""
    shapes = {name: contents[name].shape for name in ("u", "a") if name in contents.arrays}
    if len(shapes) < 2 or len(shapes["u"]) != 4:
        return False
    if contents.kind == "matlab":
        return shapes["u"][:3] == shapes["a"]
    return contents.kind == "hdf5" and shapes["u"][1:] == shapes["a"]


def open_file(contents: Contents, options: ReadOptions) -> dict[str, Trajectories]:
    """All samples of the file."""
    stored = contents["u"]
    pattern = parse_pattern("batch x y time" if contents.kind == "matlab" else "time y x batch")
    part = Part((Block(stored.array, pattern, ("x", "y")),))
    match = IN_NAME.search(contents.path.name)
    viscosity = options.viscosity if options.viscosity is not None else float(match[1]) if match else None
    published = viscosity in (None, PUBLISHED_VISCOSITY) and part.frames == PUBLISHED_FRAMES
    data = Trajectories.from_parts(
        [part],
        name="torus-li" if published else "navier-stokes",
        published=True,
        fields=["vorticity"],
        times=_times(contents, part.frames),
        axes=box(("x", "y"), part.grid),
        parameters={} if viscosity is None else {"viscosity": np.full(part.count, viscosity)},
        notes=["Frames start at t = 1: the initial condition is in the array `a`, which is not read."],
    )
    return {WHOLE: data}


def _times(contents: Contents, frames: int) -> np.ndarray:
    if "t" not in contents.arrays:
        return np.arange(1.0, frames + 1)
    times = contents.values("t").astype(np.float64).ravel()
    if len(times) != frames:
        raise DataError(f"{contents.path}: `t` has {len(times)} entries for {frames} frames.")
    return times


READER = Reader("Navier-Stokes of Li et al.", frozenset({"viscosity"}), recognise, open_file)
