"""PDEBench's one-dimensional files, such as `1D_Burgers_Sols_Nu0.001.hdf5`.

    tensor         float32 (sample, time, x)   10000 x 201 x 1024; frame n is t = 0.01 n, frame 0 the initial condition
    x-coordinate   (x,)                        cell centres
    t-coordinate   (time + 1,)                 202 entries for 201 frames: the last belongs to no frame
    attribute Nu   0.001                       the diffusion coefficient of the equation is Nu / pi

The published splits (first 2048 to train, last 1000 to test) are in `ssno.data.defaults`.
"""

from math import pi

import numpy as np

from ssno.data.errors import DataError
from ssno.data.files.blocks import Block, Part
from ssno.data.files.patterns import parse_pattern
from ssno.data.files.probe import Contents
from ssno.data.files.readers.protocol import WHOLE, Reader, ReadOptions
from ssno.data.grids import axis_from_coordinates
from ssno.data.trajectories import Trajectories

NEEDED = {"tensor", "x-coordinate", "t-coordinate"}


def recognise(contents: Contents) -> bool:
    """A three-axis `tensor` beside its two coordinates."""
    return contents.kind == "hdf5" and set(contents.arrays) >= NEEDED and len(contents["tensor"].shape) == 3


def open_file(contents: Contents, options: ReadOptions) -> dict[str, Trajectories]:
    """All samples of the file."""
    tensor = contents["tensor"]
    count, frames, points = tensor.shape
    times = contents.values("t-coordinate").astype(np.float64)
    centres = contents.values("x-coordinate").astype(np.float64)
    if times.ndim != 1 or len(times) not in (frames, frames + 1):
        raise DataError(
            f"{contents.path}: `t-coordinate` has shape {times.shape} for {frames} frames, expected {frames} or "
            f"{frames + 1} entries."
        )
    if centres.shape != (points,):
        raise DataError(f"{contents.path}: `x-coordinate` has shape {centres.shape} for {points} points.")
    notes = []
    if len(times) > frames:
        notes.append(f"`t-coordinate` has {len(times)} entries for {frames} frames; the last belongs to no frame.")
    attributes = {**contents.attributes(), **tensor.attributes}
    parameters = {}
    nu = attributes.get("Nu")
    if isinstance(nu, int | float):
        parameters = {"viscosity": np.full(count, float(nu)), "diffusion": np.full(count, float(nu) / pi)}
        notes.append(f"Nu = {nu:g} in the file; the equation's diffusion coefficient is Nu / pi = {nu / pi:.4g}.")
    burgers = "Nu" in attributes or "burgers" in contents.path.name.lower()
    part = Part((Block(tensor.array, parse_pattern("batch time x"), ("x",)),))
    data = Trajectories.from_parts(
        [part],
        name="burgers" if burgers else "pdebench",
        fields=["u"],
        times=times[:frames],
        axes=[axis_from_coordinates("x", centres, what=f"`x-coordinate` of {contents.path}")],
        parameters=parameters,
        notes=notes,
        limit=options.limit,
    )
    return {WHOLE: data}


READER = Reader("PDEBench, one dimension", frozenset(), recognise, open_file)
