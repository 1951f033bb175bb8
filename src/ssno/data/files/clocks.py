"""The times of a file's frames: from an array of times, a time step, or frames counted.

An array of times has a line for each trajectory or one for all. A model steps by a constant time, so times that are not
equally spaced are refused with the remedy, and so are two arrays of times that differ.

Axes: n trajectory, t frame.
"""

from collections.abc import Mapping
from math import prod

import numpy as np
from jaxtyping import Float

from ssno.data.errors import DataError
from ssno.data.files.arrays import MemoryArray
from ssno.data.files.blocks import Block
from ssno.data.files.coordinates import meaning_of, short
from ssno.data.files.patterns import Pattern
from ssno.data.files.probe import Contents
from ssno.data.files.readers.protocol import ReadOptions
from ssno.data.grids import uniform_step
from ssno.data.units import unit_of

STEP = "dt"  # as the name of a known field: the time step of each trajectory
COUNTS = ("step", "frame", "snapshot")  # may mean time, but time itself comes first


def times_of(
    contents: Contents, name: str, sizes: Mapping[str, int], options: ReadOptions
) -> tuple[np.ndarray, str, str]:
    """Times of the frames, their unit, and a remark if something about them has to be said."""
    frames = sizes["time"]
    if options.dt is not None:
        return options.dt * np.arange(frames, dtype=np.float64), "", ""
    key, clocks = clocks_of(contents, sizes, options)
    if clocks is not None:
        if not np.isfinite(clocks).all():
            raise DataError(f"{contents[key].array.label} has times that are not finite. Give --dt, or mend the file.")
        if not np.allclose(clocks, clocks[:1], rtol=1e-6, atol=1e-6 * float(np.ptp(clocks[0]))):
            raise DataError(
                f"{contents[key].array.label} has other times for other trajectories. Trajectories of one dataset "
                "share their times: give --resample STEP to interpolate them, --context dt if each has a constant "
                "step of its own for the model to know, or --dt to count frames as equally spaced."
            )
        spare = contents[key].shape == (frames + 1,)
        note = f"The last entry of {key!r} belongs to no frame." * spare
        return equally_spaced(contents, key, clocks[0]), unit_of(contents[key].attributes), note
    step = {**contents.attributes(), **contents[name].attributes}.get(STEP)
    if step is None and STEP in contents.arrays and prod(contents[STEP].shape) == 1:
        step = contents.values(STEP).item()
    if isinstance(step, int | float) and 0 < step < float("inf"):
        return float(step) * np.arange(frames, dtype=np.float64), "", ""
    return np.arange(frames, dtype=np.float64), "", "The file has no times: the step is taken as 1. Give --dt."


def clocks_of(
    contents: Contents, sizes: Mapping[str, int], options: ReadOptions
) -> tuple[str, Float[np.ndarray, "n t"] | None]:
    """The array of times and its numbers, a line for each trajectory or one for all; None if the file has none."""
    named = [options.times] if options.times else [key for key in contents.arrays if meaning_of(key) == "time"]
    found = {key: clocks for key in named if (clocks := clock_lines(contents, key, sizes)) is not None}
    if options.times and not found:
        stored = contents[options.times]
        raise DataError(f"{stored.array.label} has shape {stored.shape}, which are no times of {sizes['time']} frames.")
    counts = [key for key in found if short(key).lower().removesuffix("s") in COUNTS]
    found = {key: clocks for key, clocks in found.items() if key not in counts or len(counts) == len(found)}
    if not found:
        return "", None
    (first, clocks), *others = found.items()
    for other, theirs in others:
        if not np.allclose(clocks, theirs, rtol=1e-6, atol=1e-6 * float(np.ptp(clocks))):
            raise DataError(
                f"{contents.path} has two arrays of times that differ, {first} and {other}. Choose with --times NAME."
            )
    return first, clocks


def clock_lines(contents: Contents, key: str, sizes: Mapping[str, int]) -> Float[np.ndarray, "n t"] | None:
    """Numbers of an array as times, if it has the shape of times."""
    frames, shape = sizes["time"], contents[key].shape
    if shape in ((frames,), (frames + 1,)):
        return contents.values(key)[None, :frames].astype(np.float64)
    return contents.values(key).astype(np.float64) if shape == (sizes["batch"], frames) else None


def steps_of(
    contents: Contents, name: str, sizes: Mapping[str, int], options: ReadOptions, pattern: Pattern
) -> tuple[np.ndarray, str, Block]:
    """Frames counted as times, a remark, and the time step of every trajectory as a known field."""
    key, clocks = clocks_of(contents, sizes, options)
    if clocks is None or clocks.shape[1] < 2:
        given = {**contents.attributes(), **contents[name].attributes}.get(STEP)
        if type(given) not in (int, float):
            raise DataError(f"{contents.path} has no times from which the steps of trajectories could be known.")
        steps, unit = np.array([given], np.float64), ""
    else:
        for clock in clocks:
            equally_spaced(contents, key, clock)
        steps = (clocks[:, -1] - clocks[:, 0]) / (clocks.shape[1] - 1)
        unit = unit_of(contents[key].attributes)
    steps = np.broadcast_to(steps, (sizes["batch"],)).copy()
    array = MemoryArray(steps, f"the time steps of {contents.path}")
    block = Block(array, Pattern(("batch",)), pattern.space, unit=unit)
    note = "Times count frames: each trajectory has a time step of its own, the known field 'dt'."
    return np.arange(sizes["time"], dtype=np.float64), note, block


def equally_spaced(contents: Contents, key: str, times: np.ndarray) -> np.ndarray:
    """Times that a model with one time step can use; others are an error with the remedy."""
    times = times.astype(np.float64)
    if len(times) > 1:
        try:
            uniform_step(times, what=f"{contents[key].array.label} (the times)")
        except DataError as error:
            raise DataError(
                f"{error} Models step by a constant time: give --resample STEP to interpolate, choose equally spaced "
                "frames, or give --dt to count frames as equally spaced."
            ) from error
    return times
