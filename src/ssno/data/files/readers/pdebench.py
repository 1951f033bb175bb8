"""PDEBench's one-dimensional files, such as `1D_Burgers_Sols_Nu0.001.hdf5`.

    tensor         float32 (sample, time, x)   10000 x 201 x 1024; frame n is t = 0.01 n, frame 0 the initial condition
    x-coordinate   (x,)                        cell centres
    t-coordinate   (time + 1,)                 202 entries for 201 frames: the last belongs to no frame
    attribute Nu   0.001                       the diffusion coefficient of the equation is Nu / pi

The published splits (first 2048 to train, last 1000 to test) are in `ssno.data.defaults`. Advection, reaction-diffusion
and sorption have the same layout, and some of them an attribute Nu: a file is Burgers' if its name says so or, under
another name, if it has no other coefficient and frames like Burgers' (0.01 apart, enough for the published ones).
"""

import re
from math import pi

import numpy as np

from ssno.data.errors import DataError
from ssno.data.files.blocks import Block, Part
from ssno.data.files.patterns import parse_pattern
from ssno.data.files.probe import Contents
from ssno.data.files.readers.protocol import WHOLE, Reader, ReadOptions
from ssno.data.grids import axis_from_coordinates
from ssno.data.trajectories import Trajectories

EQUATION = re.compile("burgers|advection|reac|diff|sorp|cfd")
PUBLISHED_FRAMES = 140
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
    numbers = {
        name.lower(): float(value)
        for name, value in {**contents.attributes(), **tensor.attributes}.items()
        if isinstance(value, int | float)
    }
    burgers = is_burgers(contents.path.name, set(numbers), times[:frames])
    if burgers and "nu" in numbers:
        nu = numbers.pop("nu")
        numbers |= {"viscosity": nu, "diffusion": nu / pi}
        notes.append(f"Nu = {nu:g} in the file; the equation's diffusion coefficient is Nu / pi = {nu / pi:.4g}.")
    part = Part((Block(tensor.array, parse_pattern("batch time x"), ("x",)),))
    data = Trajectories.from_parts(
        [part],
        name="burgers" if burgers else "pdebench",
        published=True,
        fields=["u"],
        times=times[:frames],
        axes=[axis_from_coordinates("x", centres, what=f"`x-coordinate` of {contents.path}")],
        parameters={name: np.full(count, value) for name, value in numbers.items()},
        notes=notes,
    )
    return {WHOLE: data}


def is_burgers(name: str, coefficients: set[str], times: np.ndarray) -> bool:
    """Whether a file of this layout holds Burgers' equation, by its name, or else by coefficients and times."""
    if found := EQUATION.search(name.lower()):
        return found[0] == "burgers"
    step = float(times[-1] - times[0]) / max(len(times) - 1, 1)
    return coefficients == {"nu"} and len(times) > PUBLISHED_FRAMES and abs(step - 0.01) < 1e-4


READER = Reader("PDEBench, one dimension", frozenset(), recognise, open_file)
