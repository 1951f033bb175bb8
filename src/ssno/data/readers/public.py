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
from math import pi
from pathlib import Path

import numpy as np

from ssno.data.errors import DataError
from ssno.data.grids import axis_from_coordinates, box
from ssno.data.readers.blocks import Block, Part, Pattern, parse_pattern, split_channels
from ssno.data.readers.registry import WHOLE, Reader, ReadOptions
from ssno.data.sandbox.parent import Contents
from ssno.data.splits import SPLITS
from ssno.data.trajectories import Trajectories
from ssno.pde.geometry import Axis

# TorusVis and TorusVisForce of fourierflow: `torus_vis.h5`, `torus_vis_force.h5`.
#
# Groups `train`, `valid`, `test`, each with
#
#     u    float32 (sample, x, y, time)    vorticity at t = 0.1, 0.2, ..., without t = 0
#     a    (sample, x, y)                  vorticity at t = 0
#     f    (sample, x, y)                  force of TorusVis, or with a time axis for TorusVisForce
#     mu   (sample,)                       viscosity
#
# The force that drifts is stored as it was at the beginning of the solver's step, 1e-4 before the frame's time.
# Which frames are used and that the force is given at the target time is in `ssno.data.windows`.

INTERVAL = 0.1
SPACE = ("x", "y")


def recognise_fourierflow(contents: Contents) -> bool:
    """A group named after a split that holds `u`, `f` and `mu`."""
    return contents.kind == "hdf5" and bool(_splits(contents))


def open_fourierflow(contents: Contents, options: ReadOptions) -> dict[str, Trajectories]:
    """The samples of each split that the file holds, with force and viscosity as context fields."""
    return {split: _open_fourierflow_split(contents, split, options) for split in _splits(contents)}


def _splits(contents: Contents) -> list[str]:
    return [split for split in SPLITS if all(f"{split}/{name}" in contents.arrays for name in ("u", "f", "mu"))]


def _open_fourierflow_split(contents: Contents, split: str, options: ReadOptions) -> Trajectories:
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


FOURIERFLOW = Reader("fourierflow on the torus", frozenset(), recognise_fourierflow, open_fourierflow)


# Li's Navier-Stokes files, such as `NavierStokes_V1e-5_N1200_T20.mat`.
#
#     u   float32 (sample, x, y, time)     vorticity; 1200 x 64 x 64 x 20, at t = 1, 2, ..., without t = 0
#     a   (sample, x, y)                   vorticity at t = 0
#     t   (time,)                          times, in some files
#
# MATLAB files of version 5 hold them in that order. Those of version 7.3 are HDF5 files, where MATLAB's column-major
# arrays appear with all axes reversed: (time, y, x, sample). The viscosity is in the file's name only.

LI_NAME = re.compile(r"_V(\d+(?:\.\d+)?e-\d+)_", re.IGNORECASE)
PUBLISHED_VISCOSITY = 1e-5
LI_FRAMES = 20


def recognise_li(contents: Contents) -> bool:
    """Four-axis `u` with its initial condition `a`, in MATLAB's order or reversed."""
    shapes = {name: contents[name].shape for name in ("u", "a") if name in contents.arrays}
    if len(shapes) < 2 or len(shapes["u"]) != 4:
        return False
    if contents.kind == "matlab":
        return shapes["u"][:3] == shapes["a"]
    return contents.kind == "hdf5" and shapes["u"][1:] == shapes["a"]


def open_li(contents: Contents, options: ReadOptions) -> dict[str, Trajectories]:
    """All samples of the file."""
    stored = contents["u"]
    pattern = parse_pattern("batch x y time" if contents.kind == "matlab" else "time y x batch")
    part = Part((Block(stored.array, pattern, ("x", "y")),))
    match = LI_NAME.search(contents.path.name)
    viscosity = options.viscosity if options.viscosity is not None else float(match[1]) if match else None
    published = viscosity in (None, PUBLISHED_VISCOSITY) and part.frames == LI_FRAMES
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


LI = Reader("Navier-Stokes of Li et al.", frozenset({"viscosity"}), recognise_li, open_li)


SOLUTION = re.compile(r"(train|valid|test)/pde_(\d+)-(\d+)")
KS = re.compile(r"(?<![a-z])(ks|kuramoto)(?![a-z])", re.IGNORECASE)
LPSDA_NAME = re.compile(r"(?:nu|visc|viscosity)[_=-]?(\d+\.?\d*(?:e-?\d+)?)|[_-](\d+\.\d+)(?=[_-]|$)")


def recognise_lpsda(contents: Contents) -> bool:
    """A group named after a split with `pde_FRAMES-POINTS` in it."""
    return contents.kind == "hdf5" and any(SOLUTION.fullmatch(name) for name in contents.arrays)


def open_lpsda(contents: Contents, options: ReadOptions) -> dict[str, Trajectories]:
    """The samples of each split that the file holds, at its finest resolution."""
    found: dict[str, str] = {}
    for name in sorted(contents.arrays, key=lambda name: contents[name].size):
        if match := SOLUTION.fullmatch(name):
            found[match[1]] = name
    return {split: _open_lpsda_split(contents, split, name, options) for split, name in found.items()}


def _open_lpsda_split(contents: Contents, split: str, name: str, options: ReadOptions) -> Trajectories:
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
        notes=["The file does not state the viscosity: give --viscosity."] if viscosity is None else [],
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
    match = LPSDA_NAME.search(path.stem.lower())
    return float(match[1] or match[2]) if match else None


LPSDA = Reader("LPSDA fork", frozenset({"viscosity"}), recognise_lpsda, open_lpsda)


# PDEBench's one-dimensional files, such as `1D_Burgers_Sols_Nu0.001.hdf5`.
#
#  tensor      float32 (sample, time, x)10000 x 201 x 1024; frame n is t = 0.01 n, frame 0 the initial condition
#     x-coordinate   (x,)                        cell centres
#     t-coordinate   (time + 1,)                 202 entries for 201 frames: the last belongs to no frame
#     attribute Nu   0.001                       the diffusion coefficient of the equation is Nu / pi
#
# The published splits (first 2048 to train, last 1000 to test) are in `ssno.data.windows`. Advection, reaction-
# diffusion and sorption have the same layout, and some of them an attribute Nu: a file is Burgers' if its name says so
# or, under another name, if it has no other coefficient and frames like Burgers' (0.01 apart, enough for the published
# ones).

EQUATION = re.compile("burgers|advection|reac|diff|sorp|cfd")
PDEBENCH_FRAMES = 140
NEEDED = {"tensor", "x-coordinate", "t-coordinate"}


def recognise_pdebench(contents: Contents) -> bool:
    """A three-axis `tensor` beside its two coordinates."""
    return contents.kind == "hdf5" and set(contents.arrays) >= NEEDED and len(contents["tensor"].shape) == 3


def open_pdebench(contents: Contents, options: ReadOptions) -> dict[str, Trajectories]:
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
    return coefficients == {"nu"} and len(times) > PDEBENCH_FRAMES and abs(step - 0.01) < 1e-4


PDEBENCH = Reader("PDEBench, one dimension", frozenset(), recognise_pdebench, open_pdebench)


# CE-RM and GCE-RT of Poseidon: `CE-RM.nc`, `GCE-RT.nc`, or their chunks `solution_0.nc`, `solution_1.nc`, ...
#
# One variable of a NetCDF-4 (HDF5) file, cell averages on a periodic unit square:
#
#     solution   float32 (sample, time, channel, x, y)
#                CE-RM   1260 x 21 x 5 x 128 x 128, frames 0.1 apart: density, velocity x, y, pressure, tracer
#                GCE-RT  1260 x 11 x 6 x 128 x 128, frames 0.5 apart: the same and the potential
#
# Tracer and potential are context fields. Poseidon's other files call their variable `data` and have the energy in
# channel 4; they are not read as these. Splits: first 1000 and last 200 by default, Poseidon's own are `splits=(1030,
# 100, 130)`.

CHUNK = re.compile(r"solution_(\d+)\.nc")
FIELDS = ("density", "velocity_x", "velocity_y", "pressure")
KNOWN = {5: ("tracer",), 6: ("tracer", "potential")}
NAMES = {5: "ce-rm", 6: "gce-rt"}
INTERVALS = {5: 0.1, 6: 0.5}
LOWER = {5: 0.0, 6: -0.5}


def recognise_poseidon(contents: Contents) -> bool:
    """A five-axis `solution` on a square, with the channels and frames of one of the two."""
    shape = contents["solution"].shape if "solution" in contents.arrays else ()
    return contents.kind == "hdf5" and len(shape) == 5 and shape[1:3] in ((21, 5), (11, 6)) and shape[3] == shape[4]


def open_poseidon(contents: Contents, options: ReadOptions) -> dict[str, Trajectories]:
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


POSEIDON = Reader("Poseidon's compressible flows", frozenset(), recognise_poseidon, open_poseidon)
