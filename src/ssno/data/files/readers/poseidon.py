"""CE-RM and GCE-RT of Poseidon: `CE-RM.nc`, `GCE-RT.nc`, or their chunks `solution_0.nc`, `solution_1.nc`, ...

One variable of a NetCDF-4 (HDF5) file, cell averages on a periodic unit square:

    solution   float32 (sample, time, channel, x, y)
               CE-RM   1260 x 21 x 5 x 128 x 128, frames 0.1 apart: density, velocity x, y, pressure, tracer
               GCE-RT  1260 x 11 x 6 x 128 x 128, frames 0.5 apart: the same and the potential

Tracer and potential are known fields. Poseidon's other files call their variable `data` and have the energy in channel
4; they are not read as these. Splits: first 1000 and last 200 by default, Poseidon's own are `splits=(1030, 100, 130)`.
"""

import re
from pathlib import Path

import numpy as np

from ssno.data.files.blocks import split_channels
from ssno.data.files.patterns import parse_pattern
from ssno.data.files.probe import Contents
from ssno.data.files.readers.protocol import WHOLE, Reader, ReadOptions
from ssno.data.trajectories import Trajectories
from ssno.pde.problems.problem import Axis

CHUNK = re.compile(r"solution_(\d+)\.nc")
FIELDS = ("density", "velocity_x", "velocity_y", "pressure")
KNOWN = {5: ("tracer",), 6: ("tracer", "potential")}
NAMES = {5: "ce-rm", 6: "gce-rt"}
INTERVALS = {5: 0.1, 6: 0.5}
LOWER = {5: 0.0, 6: -0.5}


def recognise(contents: Contents) -> bool:
    """A five-axis `solution` on a square, with the channels and frames of one of the two."""
    shape = contents["solution"].shape if "solution" in contents.arrays else ()
    return contents.kind == "hdf5" and len(shape) == 5 and shape[1:3] in ((21, 5), (11, 6)) and shape[3] == shape[4]


def open_file(contents: Contents, options: ReadOptions) -> dict[str, Trajectories]:
    """All samples of one file, assembled or a chunk."""
    stored = contents["solution"]
    _, frames, channels, *grid = stored.shape
    names = (*FIELDS, *KNOWN[channels])
    part = split_channels(stored.array, parse_pattern("batch time channel x y"), names, KNOWN[channels])
    data = Trajectories.from_parts(
        [part],
        name=NAMES[channels],
        published=True,
        fields=FIELDS,
        context_fields=KNOWN[channels],
        times=INTERVALS[channels] * np.arange(frames),
        axes=[Axis(name, 1.0, n, LOWER[channels] + 0.5 / n) for name, n in zip("xy", grid, strict=True)],
    )
    return {WHOLE: data}


def chunks_of(folder: Path) -> list[Path]:
    """The files `solution_0.nc`, `solution_1.nc`, ... of a folder in the order of their numbers."""
    found = {int(match[1]): path for path in folder.iterdir() if (match := CHUNK.fullmatch(path.name))}
    return [found[number] for number in sorted(found)]


READER = Reader("Poseidon's compressible flows", frozenset(), recognise, open_file)
