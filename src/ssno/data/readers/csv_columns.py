"""CSV files in long format: a line for each place at each time of each trajectory, in any order.

    trajectory,time,x,y,u,v,nu

`time` and one to three places (x, y, z, lat, lon) must be there, `trajectory` if the file holds several; all other
columns are fields. Lines must fill a grid: every trajectory has as many times, every time all places. A column that is
constant along each trajectory is a parameter of it, unless `arrays` names it. What comes out is read further as plain
arrays (`ssno.data.readers.plain`). A CSV file of numbers without names is a matrix, and read as such.

Axes: n trajectory, t time, then the places.
"""

from dataclasses import replace
from math import prod

import numpy as np
from jaxtyping import Float, Int

from ssno.data.errors import DataError
from ssno.data.readers import plain
from ssno.data.readers.arrays import MemoryArray
from ssno.data.readers.axes import meaning_of
from ssno.data.readers.blocks import SPACE
from ssno.data.readers.registry import WHOLE, Reader, ReadOptions
from ssno.data.sandbox.csv_text import line_of
from ssno.data.sandbox.parent import Contents, StoredArray
from ssno.data.trajectories import Trajectories

SAME = 1e-6  # of their range: places closer than that are one place, written with another rounding
TIMES = ("time", "step", "frame")  # of several columns that mean time, the first of these that is there


def recognise(contents: Contents) -> bool:
    """Columns with names."""
    return contents.kind == "csv" and all(len(stored.shape) == 1 for stored in contents.arrays.values())


def open_file(contents: Contents, options: ReadOptions) -> dict[str, Trajectories]:
    """The trajectories of one file."""
    if options.axes is not None:
        raise DataError(f"{contents.path} has named columns, which define the axes. Leave --axes out.")
    gridded = on_grid(contents, options)
    return {WHOLE: plain.open_arrays(gridded, replace(options, times=None, coordinates=()))}


def on_grid(contents: Contents, options: ReadOptions) -> Contents:
    """The columns of a file as arrays with named axes."""
    batch, time, places = _roles(contents, options)
    columns = {name: contents.values(name) for name in contents.arrays}
    for name in (*([batch] if batch else []), time, *places.values()):
        if not np.isfinite(columns[name]).all():
            line = _line(contents, int(np.argmin(np.isfinite(columns[name]))))
            raise DataError(f"{contents.path}, line {line}, column {name}: a place or time is missing.")
    rows = len(columns[time])
    runs, run = _distinct(columns[batch]) if batch else (np.zeros(1), np.zeros(rows, np.int64))
    found = {word: _distinct(columns[name]) for word, name in places.items()}
    time_rows, frame = _frames(contents, columns[time], run, runs)
    shape = (*time_rows.shape, *(len(values) for values, _ in found.values()))
    index = (run, frame, *(position for _, position in found.values()))
    _check_full(
        contents, index, shape, {"trajectory": runs, "time": time_rows, **{w: v for w, (v, _) in found.items()}}
    )
    dims = ("batch", "time", *places)
    arrays = {
        "time": _stored(contents, time, time_rows[0] if np.ptp(time_rows, axis=0).max() == 0 else time_rows, dims[:2])
    }
    arrays |= {word: _stored(contents, places[word], values, (word,)) for word, (values, _) in found.items()}
    for name in columns:
        if name in (batch, time, *places.values()) or (name != options.times and meaning_of(name) == "time"):
            continue
        values = np.empty(shape)
        values[index] = columns[name]
        flat = values.reshape(shape[0], -1)
        constant = name not in options.arrays and bool((flat == flat[:, :1]).all())
        arrays[name] = _stored(contents, name, flat[:, 0].copy() if constant else values, dims[: 1 if constant else 5])
    return replace(contents, arrays=arrays)


def _roles(contents: Contents, options: ReadOptions) -> tuple[str | None, str, dict[str, str]]:
    """Which columns are trajectory, time and places: as the user says, else by their names."""
    names = list(contents.arrays)
    for name in (*options.coordinates, *([options.times] if options.times else [])):
        _ = contents[name]  # an unknown name is an error that says what there is
    meant = {name: meaning_of(name) for name in names}
    time_columns = [options.times] if options.times else [name for name in names if meant[name] == "time"]
    time_columns.sort(key=lambda name: [word in name.lower() for word in TIMES], reverse=True)
    if options.coordinates:
        words = [name if name.isidentifier() else "xyz"[i] for i, name in enumerate(options.coordinates)]
        places = dict(zip(words, options.coordinates, strict=True))
    else:
        places = {meant[name]: name for name in names if meant[name] in SPACE}
    if not time_columns or not 1 <= len(places) <= 3:
        missing = "one for the time" if not time_columns else "one to three for places (x, y, z)"
        raise DataError(
            f"{contents.path} has the columns {', '.join(names)}, but {missing} must be among them. Name them with "
            "--times NAME and --coordinates NAME ..., or rename them. A matrix of numbers needs no names."
        )
    batch = next(
        (name for name in names if meant[name] == "batch" and name not in (time_columns[0], *places.values())), None
    )
    return batch, time_columns[0], places


def _distinct(values: Float[np.ndarray, " rows"]) -> tuple[Float[np.ndarray, " k"], Int[np.ndarray, " rows"]]:
    """The places of a column in increasing order, and which of them each row has."""
    sorted_values, position = np.unique(values, return_inverse=True)
    new = np.diff(sorted_values) > SAME * (sorted_values[-1] - sorted_values[0])
    group = np.concatenate([[0], np.cumsum(new)])
    first = np.concatenate([[True], new])
    return sorted_values[first], group[position]


def _frames(
    contents: Contents, times: np.ndarray, run: np.ndarray, runs: np.ndarray
) -> tuple[Float[np.ndarray, "n t"], Int[np.ndarray, " rows"]]:
    """The times of each trajectory, and which of them each row has; trajectories may have times of their own."""
    frame = np.empty(len(times), np.int64)
    time_rows = []
    order = np.argsort(run, kind="stable")
    for rows in np.split(order, np.searchsorted(run[order], np.arange(1, len(runs)))):
        row, frame[rows] = _distinct(times[rows])
        time_rows.append(row)
    longest = max(time_rows, key=len)
    for number, row in enumerate(time_rows):
        if len(row) != len(longest):
            raise DataError(
                f"{contents.path}: trajectory {runs[number]:g} has {len(row)} times, another has {len(longest)}. "
                "All trajectories of a file must have equally many."
            )
    return np.stack(time_rows), frame


def _check_full(
    contents: Contents, index: tuple[np.ndarray, ...], shape: tuple[int, ...], values: dict[str, np.ndarray]
) -> None:
    """Refuse lines that occur twice, and places that are missing at a time."""
    if prod(shape) > 16 * len(index[0]):
        sizes = " x ".join(f"{n} of {word}" for word, n in zip(values, shape, strict=True))
        raise DataError(f"{contents.path} has {len(index[0])} lines for {sizes}: they do not fill a regular grid.")
    flat = np.ravel_multi_index(index, shape)
    counts = np.bincount(flat, minlength=prod(shape))
    if not (counts != 1).any():
        return
    wrong = int(np.argmax(counts > 1)) if (counts > 1).any() else int(np.argmin(counts))
    at = np.unravel_index(wrong, shape)
    places = [values["trajectory"][at[0]], values["time"][at[0], at[1]]]
    places += [list(values.values())[axis][at[axis]] for axis in range(2, len(shape))]
    where = ", ".join(f"{word} {place:g}" for word, place in zip(values, places, strict=True))
    if counts[wrong] > 1:
        line = _line(contents, int(np.flatnonzero(flat == wrong)[1]))
        raise DataError(f"{contents.path}, line {line}: a second line for {where}.")
    raise DataError(
        f"{contents.path} has no line for {where}: every time of every trajectory needs all places. Write what is "
        "missing as nan, and read it with --mask nan."
    )


def _line(contents: Contents, row: int) -> int:
    return line_of(contents.stamp.path, row)


def _stored(contents: Contents, name: str, values: np.ndarray, dims: tuple[str, ...]) -> StoredArray:
    array = MemoryArray(values, f"{name!r} in {contents.path}")
    return StoredArray(array, "<f8", contents[name].attributes, dims[: values.ndim] if values.ndim > 1 else dims[-1:])


READER = Reader("CSV columns", plain.TAKES, recognise, open_file)
