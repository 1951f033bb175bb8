"""Files of the LPSDA fork, such as `KS_train_2048.h5`: Kuramoto-Sivashinsky, and heat, KdV or Burgers in one layout.

One group named after the split, and in it

    pde_26-512   float64 (sample, time, x)    the numbers in the name are frames and points
    x            (sample, x)                  nodes
    t            (sample, time)
    dx, dt       (sample,)

Neither the equation nor the viscosity is stored. A file whose name has the word KS is called `ks`, any other after its
own name. The viscosity comes from the file's name (`..._nu0.075.h5`, `..._0.1.h5`) or from the user.
Upstream LPSDA varies length and duration per sample; such files are refused, since one grid is expected.
"""

import re
from pathlib import Path

import numpy as np

from ssno.data.errors import DataError
from ssno.data.files.blocks import Block, Part
from ssno.data.files.patterns import parse_pattern
from ssno.data.files.probe import Contents
from ssno.data.files.readers.protocol import Reader, ReadOptions
from ssno.data.grids import axis_from_coordinates
from ssno.data.trajectories import Trajectories

SOLUTION = re.compile(r"(train|valid|test)/pde_(\d+)-(\d+)")
KS = re.compile(r"(?<![a-z])(ks|kuramoto)(?![a-z])", re.IGNORECASE)
IN_NAME = re.compile(r"(?:nu|visc|viscosity)[_=-]?(\d+\.?\d*(?:e-?\d+)?)|[_-](\d+\.\d+)(?=[_-]|$)")


def recognise(contents: Contents) -> bool:
    """A group named after a split with `pde_FRAMES-POINTS` in it."""
    return contents.kind == "hdf5" and any(SOLUTION.fullmatch(name) for name in contents.arrays)


def open_file(contents: Contents, options: ReadOptions) -> dict[str, Trajectories]:
    """The samples of each split that the file holds, at its finest resolution."""
    found: dict[str, str] = {}
    for name in sorted(contents.arrays, key=lambda name: contents[name].size):
        if match := SOLUTION.fullmatch(name):
            found[match[1]] = name
    return {split: _open_split(contents, split, name, options) for split, name in found.items()}


def _open_split(contents: Contents, split: str, name: str, options: ReadOptions) -> Trajectories:
    solution = contents[name]
    if len(solution.shape) != 3:
        raise DataError(f"{solution.array.label} has shape {solution.shape}, expected (sample, time, x).")
    count, frames, points = solution.shape
    times = _shared(contents, f"{split}/t", (count, frames))
    nodes = _shared(contents, f"{split}/x", (count, points))
    viscosity = options.viscosity if options.viscosity is not None else viscosity_in(contents.path)
    is_ks = KS.search(contents.path.name) is not None
    return Trajectories.from_parts(
        [Part((Block(solution.array, parse_pattern("batch time x"), ("x",)),))],
        name="ks" if is_ks else contents.path.stem,
        published=is_ks,
        fields=["u"],
        times=times,
        axes=[axis_from_coordinates("x", nodes, what=f"`{split}/x` of {contents.path}")],
        parameters={} if viscosity is None else {"viscosity": np.full(count, viscosity)},
        notes=["The file does not say the viscosity: give --viscosity."] if viscosity is None else [],
    )


def _shared(contents: Contents, name: str, shape: tuple[int, int]) -> np.ndarray:
    """Coordinates stored once per sample, which must all be the same."""
    values = contents.values(name).astype(np.float64)
    if values.shape != shape:
        raise DataError(f"{contents.path}: `{name}` has shape {values.shape}, expected {shape}.")
    spread = float(np.ptp(values, axis=0).max())
    if spread > 1e-6 * max(1.0, float(np.abs(values).max())):
        raise DataError(
            f"{contents.path}: `{name}` differs between samples by up to {spread:.3g}. Trajectories of one dataset "
            "share their grid and times; upstream LPSDA's jitter of length and duration is not supported."
        )
    return values[0]


def viscosity_in(path: Path) -> float | None:
    """The viscosity that a file's name mentions, if it does."""
    match = IN_NAME.search(path.stem.lower())
    return float(match[1] or match[2]) if match else None


READER = Reader("LPSDA fork", frozenset({"viscosity"}), recognise, open_file)
