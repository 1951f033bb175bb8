"""Which arrays of a file are coordinates, of which axis, and the axes of the grid that they describe."""

from collections.abc import Mapping

import numpy as np

from ssno.data.errors import DataError
from ssno.data.files.patterns import MEANING, Pattern
from ssno.data.files.probe import Contents, StoredArray
from ssno.data.files.readers.protocol import ReadOptions
from ssno.data.grids import axis_from_coordinates, box
from ssno.data.units import unit_of
from ssno.pde.problems.problem import Axis

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
