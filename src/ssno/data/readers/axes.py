"""The times of a file's frames: from an array of times, a time step, or frames counted.

An array of times has a line for each trajectory or one for all. A model steps by a constant time, so times that are not
equally spaced are refused with the remedy, and so are two arrays of times that differ.

Axes: n trajectory, t frame.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import prod

import numpy as np
from jaxtyping import Float

from ssno.data.errors import DataError
from ssno.data.grids import axis_from_coordinates, box, uniform_step
from ssno.data.readers.arrays import MemoryArray, unit_of
from ssno.data.readers.blocks import MEANING, Block, Pattern
from ssno.data.readers.registry import ReadOptions
from ssno.data.sandbox.parent import Contents, StoredArray
from ssno.pde.geometry import Axis

# Which arrays of a file are coordinates, of which axis, and the axes of the grid that they describe.

COORDINATES = ("time", "x", "y", "z", "lat", "lon")


def axes_of(
    contents: Contents, sizes: Mapping[str, int], pattern: Pattern, options: ReadOptions
) -> tuple[tuple[Axis, ...], dict[str, str], str]:
    """The axes of the grid, their units, and a remark about those of unknown length."""
    named = pattern.stored_space
    stored = box(named, [sizes[w] for w in named], lengths=options.lengths or None, periodic=options.periodic)
    if options.coordinates and len(options.coordinates) != len(named):
        raise DataError(f"`coordinates` must name one array per space axis {named}, got {options.coordinates}.")
    found = {axis.name: axis for axis in stored}
    units: dict[str, str] = {}
    sources = dict(zip(named, options.coordinates, strict=True)) if options.coordinates else {}
    if not options.lengths and not sources:
        sources = {meaning_of(key): key for key, array in contents.arrays.items() if len(array.shape) == 1}
    for word, key in sources.items():
        if word not in found or sizes[word] == 1 or (not options.coordinates and contents[key].shape != (sizes[word],)):
            continue
        try:
            values, label = contents.values(key).astype(np.float64), contents[key].array.label
            if values.shape != (sizes[word],):
                raise DataError(f"{label} has shape {values.shape} for {sizes[word]} points along {word}.")
            found[word] = axis_from_coordinates(word, values, periodic=found[word].periodic, what=label)
            units[word] = unit_of(contents[key].attributes)
        except DataError as error:
            raise DataError(f"{error} Give --lengths to use the points as equally spaced.") from error
    unknown = [] if options.lengths else [word for word in pattern.space if word not in sources or sizes[word] == 1]
    note = f"The file has no coordinates for {', '.join(unknown)}: length 1 is assumed. Give --lengths." * bool(unknown)
    return tuple(found[word] for word in pattern.space), units, note


def coordinate_lengths(contents: Contents, options: ReadOptions) -> dict[str, int]:
    """Lengths of one-axis arrays called time, x, y or z (or lat, lon), or named by the user."""
    named = {meaning_of(name): stored.shape for name, stored in contents.arrays.items() if len(stored.shape) == 1}
    found = {word: shape[0] for word, shape in named.items() if word in COORDINATES}
    if options.times and len(contents[options.times].shape) == 1:
        found["time"] = contents[options.times].shape[0]
    return found | {meaning_of(name): contents[name].shape[0] for name in options.coordinates if contents[name].shape}


def is_coordinate(name: str, stored: StoredArray, *, axes: int) -> bool:
    """Whether an array is called like a coordinate and is one: T or Z with all the axes of a state is a field."""
    line = sum(size > 1 for size in stored.shape) <= 1  # in MATLAB, lists are columns
    return name in stored.dims or (meaning_of(name) in COORDINATES and (line or len(stored.shape) < axes))


def short(name: str) -> str:
    """A name without the groups that it lies in."""
    return name.rsplit("/", 1)[-1]


def meaning_of(name: str) -> str:
    """What a dimension or coordinate called so means: `t-coordinate` and `times` are time, `longitude` is lon."""
    word = short(name).lower()
    for ending in ("-coordinate", "_coordinate", "_coord", "-coord", "coord", "itude"):
        word = word.removesuffix(ending)
    word = {"times": "time", "long": "lon", "latit": "lat", "longit": "lon", "xs": "x", "ts": "time"}.get(word, word)
    return MEANING.get(word, word)


STEP = "dt"  # as the name of a context field: the time step of each trajectory
COUNTS = ("step", "frame", "snapshot")  # may mean time, but time itself comes first


def times_of(
    contents: Contents, name: str, sizes: Mapping[str, int], options: ReadOptions
) -> tuple[np.ndarray, str, str]:
    """Times of the frames, their unit, and a remark if something about them has to be said."""
    frames = sizes["time"]
    if options.dt is not None:
        return options.dt * np.arange(frames, dtype=np.float64), "", ""
    key, time_rows = stored_times(contents, sizes, options)
    if time_rows is not None:
        if not np.isfinite(time_rows).all():
            raise DataError(f"{contents[key].array.label} has times that are not finite. Give --dt, or mend the file.")
        if not np.allclose(time_rows, time_rows[:1], rtol=1e-6, atol=1e-6 * float(np.ptp(time_rows[0]))):
            raise DataError(
                f"{contents[key].array.label} has other times for other trajectories. Trajectories of one dataset "
                "share their times: give --resample STEP to interpolate them, --context dt if each has a constant "
                "step of its own for the model to know, or --dt to count frames as equally spaced."
            )
        spare = contents[key].shape == (frames + 1,)
        note = f"The last entry of {key!r} belongs to no frame." * spare
        return equally_spaced(contents, key, time_rows[0]), unit_of(contents[key].attributes), note
    step = {**contents.attributes(), **contents[name].attributes}.get(STEP)
    if step is None and STEP in contents.arrays and prod(contents[STEP].shape) == 1:
        step = contents.values(STEP).item()
    if isinstance(step, int | float) and 0 < step < float("inf"):
        return float(step) * np.arange(frames, dtype=np.float64), "", ""
    return np.arange(frames, dtype=np.float64), "", "The file has no times: the step is taken as 1. Give --dt."


def stored_times(
    contents: Contents, sizes: Mapping[str, int], options: ReadOptions
) -> tuple[str, Float[np.ndarray, "n t"] | None]:
    """The array of times and its numbers, a line for each trajectory or one for all; None if the file has none."""
    named = [options.times] if options.times else [key for key in contents.arrays if meaning_of(key) == "time"]
    found = {key: time_rows for key in named if (time_rows := times_in(contents, key, sizes)) is not None}
    if options.times and not found:
        stored = contents[options.times]
        raise DataError(f"{stored.array.label} has shape {stored.shape}, which are no times of {sizes['time']} frames.")
    counts = [key for key in found if short(key).lower().removesuffix("s") in COUNTS]
    found = {key: time_rows for key, time_rows in found.items() if key not in counts or len(counts) == len(found)}
    if not found:
        return "", None
    (first, time_rows), *others = found.items()
    for other, theirs in others:
        if not np.allclose(time_rows, theirs, rtol=1e-6, atol=1e-6 * float(np.ptp(time_rows))):
            raise DataError(
                f"{contents.path} has two arrays of times that differ, {first} and {other}. Choose with --times NAME."
            )
    return first, time_rows


def times_in(contents: Contents, key: str, sizes: Mapping[str, int]) -> Float[np.ndarray, "n t"] | None:
    """Numbers of an array as times, if it has the shape of times."""
    frames, shape = sizes["time"], contents[key].shape
    if shape in ((frames,), (frames + 1,)):
        return contents.values(key)[None, :frames].astype(np.float64)
    return contents.values(key).astype(np.float64) if shape == (sizes["batch"], frames) else None


def steps_of(
    contents: Contents, name: str, sizes: Mapping[str, int], options: ReadOptions, pattern: Pattern
) -> tuple[np.ndarray, str, Block]:
    """Frames counted as times, a remark, and the time step of every trajectory as a context field."""
    key, time_rows = stored_times(contents, sizes, options)
    if time_rows is None or time_rows.shape[1] < 2:
        given = {**contents.attributes(), **contents[name].attributes}.get(STEP)
        if type(given) not in (int, float):
            raise DataError(f"{contents.path} has no times from which to compute the time steps of trajectories.")
        steps, unit = np.array([given], np.float64), ""
    else:
        for row in time_rows:
            equally_spaced(contents, key, row)
        steps = (time_rows[:, -1] - time_rows[:, 0]) / (time_rows.shape[1] - 1)
        unit = unit_of(contents[key].attributes)
    steps = np.broadcast_to(steps, (sizes["batch"],)).copy()
    array = MemoryArray(steps, f"the time steps of {contents.path}")
    block = Block(array, Pattern(("batch",)), pattern.space, unit=unit)
    note = "Times count frames: each trajectory has a time step of its own, the context field 'dt'."
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


# Which axes of the state an array beside it has.
#
# Another field of the state may be stored in another order, and a context field may lack axes. Axes are matched by the
# names of dimensions, or where a file has none by lengths, in the order of the state; the rest is an error.

Shape = tuple[int, ...]


def ways(dims: Sequence[str], words: Sequence[str], meanings: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Words for the axes called `dims`: what a name means, and for the other axes the words left, in their order."""
    named = [meanings.get(dim, "") for dim in dims]
    left = [word for word in words if word not in named]
    for chosen in combinations(left, named.count("")):
        rest = iter(chosen)
        yield tuple(word or next(rest) for word in named)


def reordered(pattern: Pattern, dims: Sequence[str], meanings: Mapping[str, str]) -> Pattern:
    """The pattern of an array that has all axes of the state, in the order of its own dimensions."""
    if len(dims) != len(pattern.words):
        return pattern
    return next((Pattern(way) for way in ways(dims, pattern.words, meanings)), pattern)


def fitting_patterns(
    shape: Shape, dims: Sequence[str], meanings: Mapping[str, str], *, pattern: Pattern, state: Shape
) -> list[Pattern]:
    """All patterns of an array that may lack axes of the state, which has shape `state` and the given pattern.

    An array with as many axes as the state may have length one along any of them, and is constant there.
    """
    words = [word for word in pattern.words if word != "1"]

    def fits(way: Sequence[str]) -> bool:
        return tuple(pattern.size(word, state) for word in way) == shape

    for known in (meanings, {}):  # a name that means an axis of another length means something else
        if found := [Pattern(way) for way in ways(dims, words, known) if fits(way)]:
            return found
    full = len(shape) == len(state) and all(n in (1, size) for n, size in zip(shape, state, strict=True))
    if not full:
        return []
    return [Pattern(tuple(w if n == m else "1" for w, n, m in zip(pattern.words, shape, state, strict=True)))]


def choose_pattern(found: Sequence[Pattern], *, what: str, shape: Shape, pattern: Pattern) -> tuple[Pattern, str]:
    """The one pattern that fits; of several the one with trajectories, with a remark; else an error that lists them."""
    if len(found) == 1:
        return found[0], ""
    listed = " and ".join(f"({one})" for one in found)
    by_trajectory = [one for one in found if "batch" in one.words]
    if len(by_trajectory) == 1:
        return by_trajectory[0], f"{what} fits {listed} by its shape {shape}: it is read as ({by_trajectory[0]})."
    raise DataError(
        f"Context field {what} has shape {shape}, which fits {listed} of a state with the axes ({pattern}). Give it as "
        "many axes as the state has, of length 1 where it is constant, or name its dimensions (NetCDF, HDF5 labels)."
    )
