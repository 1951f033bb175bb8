"""What a reader of a file format is, what a user may add to a file, and the one way to open a file.

A reader looks at the `Contents` of a file (names, shapes, attributes; nothing is read yet), says whether it knows the
format, and turns the file into trajectories per split: {"train": ..., "valid": ...} if the file itself is divided,
{"all": ...} if it is not. A new format is one more module with a `Reader`, added to `readers`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ssno.base.checks import unknown_name
from ssno.data.context import NONE, choose_context
from ssno.data.errors import DataError
from ssno.data.grids import Periodic, axis_from_coordinates, periodic_flags
from ssno.data.readers.arrays import FileArray, LayerArray, LazyArray, Selection, Stamp, unit_of
from ssno.data.readers.blocks import Block, Part, Pattern
from ssno.data.sandbox.parent import BUDGET, Contents, StoredArray, ask, contents_of, read_by_child
from ssno.data.sandbox.report import INFLATION
from ssno.data.sandbox.zarr_store import SMALL_FILE
from ssno.data.trajectories import NAN, Trajectories
from ssno.pde.geometry import CARTESIAN, GEOMETRIES, Axis

WHOLE = "all"
LISTS = ("arrays", "fields", "context", "coordinates", "periodic")  # options that take several names


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What the user knows about a file. `axes` or `arrays` make any file readable as plain arrays."""

    axes: str | None = None
    """Names of the axes as stored, "batch time x channel"."""
    arrays: tuple[str, ...] = ()
    """Names of the arrays in the file that hold the state."""
    fields: tuple[str, ...] = ()
    """Names for the channels."""
    context: tuple[str, ...] = ()
    """Context fields: channels or arrays that are inputs but not predicted; replaces the default list; "none" for none.
    "dt" is the time step of each trajectory, where they differ."""
    mask: str | None = None
    """Mask: array or field that is non-zero where there are no data (obstacles, land); "nan": non-finite values."""
    dt: float | None = None
    """Time between frames."""
    times: str | None = None
    """Name of the array that holds the times."""
    resample: float | None = None
    """Interpolate linearly onto frames this far apart in time, counted from each trajectory's first."""
    lengths: tuple[float, ...] = ()
    """Physical lengths of the space axes, in the order in which `axes` (or else the file) names them."""
    coordinates: tuple[str, ...] = ()
    """Names of the arrays that hold the coordinates of the space axes, in that order."""
    periodic: Periodic = True
    """Periodic axes, by name ("x"); all, or none."""
    viscosity: float | None = None
    """Viscosity of KS files that do not store it."""

    def __post_init__(self) -> None:
        for name in ("dt", "resample"):
            if (step := getattr(self, name)) is not None and not 0 < step < float("inf"):
                raise ValueError(f"`{name}` must be a positive number, got {step}.")
        if self.dt is not None and self.resample is not None:
            raise ValueError("Give `dt` (frames are equally spaced) or `resample` (they are not), not both.")
        for length in self.lengths:
            if not 0 < length < float("inf"):
                raise ValueError(f"`lengths` must be positive numbers, got {self.lengths}.")
        if self.dt is not None and self.times is not None:
            raise ValueError(f"Give `dt` or `times`, not both: {self.dt} and {self.times!r}.")
        if self.lengths and self.coordinates:
            raise ValueError(f"Give `lengths` or `coordinates`, not both: {self.lengths} and {self.coordinates}.")

    @property
    def given(self) -> set[str]:
        """Names of the options that the user set."""
        return {field.name for field in fields(ReadOptions) if getattr(self, field.name) != field.default}


def read_options(**options: Any) -> ReadOptions:
    """`ReadOptions` from keywords; lists and single names become tuples, unknown keywords errors with the nearest."""
    known = [field.name for field in fields(ReadOptions)]
    for name, value in options.items():
        if name not in known:
            raise TypeError(unknown_name(name, known, kind="option"))
        if isinstance(value, str):
            options[name] = (value,) if name in LISTS else value
        elif isinstance(value, Sequence):
            options[name] = tuple(map(float, value)) if name == "lengths" else tuple(value)
        elif name in ("dt", "resample", "viscosity") and value is not None:
            options[name] = float(value)
    return ReadOptions(**options)


@dataclass(frozen=True)
class Reader:
    """A format: its name, the dataset options it takes, how to recognise and how to open a file of it."""

    name: str
    takes: frozenset[str]
    recognise: Callable[[Contents], bool]
    open: Callable[[Contents, ReadOptions], dict[str, Trajectories]]


# The first of them: the layout of The Well, which is also the layout of our own shards.
#
#     t0_fields/NAME   scalars, (sample, time, *space)
#     t1_fields/NAME   vectors, one more axis of D components at the end
#     t2_fields/NAME   tensors, two more axes
#     dimensions/      `time`, and one coordinate per name in the attribute `spatial_dims`
#     scalars/NAME     (sample,) numbers of each trajectory
#     boundary_conditions/*   with attributes `bc_type`, `associated_dims`
#
# Every field says which axes it has: an axis for which `sample_varying`, `time_varying` or `dim_varying` is false is
# not stored. Fields that do not vary in time are context, as are those listed in our root attribute `context_fields`;
# all others are predicted. The coordinates of The Well may be inside the files of other fields,
# ours carry `length`, `offset` and `periodic`.

OWN_CHOICE = ("ssno data convert", "ssno predict")  # generators whose datasets are called as the user likes
PERIODIC = ("periodic", "2")  # The Well's boundary codes: wall 0, open 1, periodic 2


def is_well(contents: Contents) -> bool:
    """Groups `dimensions` and `t0_fields`."""
    return contents.kind == "hdf5" and {"dimensions", "t0_fields"} <= set(contents.groups)


def open_well(contents: Contents, options: ReadOptions) -> dict[str, Trajectories]:
    """All trajectories of one file."""
    space = tuple(contents.attributes("dimensions").get("spatial_dims", ()))
    fine = all(isinstance(name, str) and name not in ("batch", "time", "channel", "1") for name in space)
    if not fine or not 1 <= len(set(space)) == len(space) <= 3:
        raise DataError(f"{contents.path}: `spatial_dims` of `dimensions` must name 1 to 3 axes, got {space}.")
    grid = str(contents.attributes().get("grid_type", "cartesian"))
    known = set(contents.attributes().get("context_fields", ()))
    state: dict[str, Block] = {}
    context: dict[str, Block] = {}
    for name, names, block in _fields(contents, space):
        constant = block.pattern.axis("time") is None
        chosen = context if constant or name in known or known & set(names) else state
        chosen.update(dict.fromkeys(names, block))
    if not state:
        raise DataError(f"{contents.path} has no field that varies in time and is to be predicted.")
    root = contents.attributes()
    mask = root.get("mask_field")
    part = Part(tuple(dict.fromkeys(state.values())), tuple(dict.fromkeys(context.values())))
    data = Trajectories.from_parts(
        [part],
        name=str(root.get("dataset_name", contents.path.stem)),
        published="dataset_name" in root and root.get("generator") not in OWN_CHOICE,
        fields=list(state),
        context_fields=list(context),
        times=_times(contents),
        axes=[_axis(contents, name) for name in space],
        parameters=_parameters(contents, part.count),
        notes=[] if grid in GEOMETRIES else [f"`grid_type` is {grid!r}; its axes are used as if they were Cartesian."],
        geometry=GEOMETRIES.get(grid, CARTESIAN),
        axis_units={name: unit_of(contents[f"dimensions/{name}"].attributes) for name in space},
        time_unit=unit_of(contents["dimensions/time"].attributes),
    )
    return {WHOLE: data.masked(mask) if mask in context else data}


def _fields(contents: Contents, space: tuple[str, ...]) -> Iterator[tuple[str, list[str], Block]]:
    """Every stored field with the names of its channels; a tensor comes row by row."""
    for order in range(3):
        group = f"t{order}_fields"
        listed = contents.attributes(group).get("field_names")
        stored = [name.removeprefix(f"{group}/") for name in contents.arrays if name.startswith(f"{group}/")]
        for name in stored if listed is None else listed:
            field = contents[f"{group}/{name}"]
            pattern, unit = _pattern(field, space, order), unit_of(field.attributes)
            if order == 0:
                yield name, [name], Block(field.array, pattern, space, unit=unit)
                continue
            suffixes = _components(field.shape[-1], space)
            channels = tuple(range(len(suffixes)))
            if order == 1:
                yield name, [f"{name}_{b}" for b in suffixes], Block(field.array, pattern, space, channels, unit=unit)
                continue
            for row, a in enumerate(_components(field.shape[-2], space)):
                layer: LazyArray = LayerArray(field.array, axis=len(field.shape) - 2, index=row)
                yield name, [f"{name}_{a}{b}" for b in suffixes], Block(layer, pattern, space, channels, unit=unit)


def _components(count: int, space: tuple[str, ...]) -> list[str]:
    return list(space) if count == len(space) else [str(i) for i in range(count)]


def _pattern(field: StoredArray, space: tuple[str, ...], order: int) -> Pattern:
    """The axes that a field has, from its flags."""
    flags = field.attributes
    varying = flags.get("dim_varying", [True] * len(space))
    if not isinstance(varying, list) or len(varying) != len(space):
        raise DataError(f"{field.array.label}: `dim_varying` must have one flag per axis {space}, got {varying}.")
    words = ["batch"] * bool(flags.get("sample_varying", True)) + ["time"] * bool(flags.get("time_varying", True))
    words += [word for word, flag in zip(space, varying, strict=True) if flag]
    words += {0: [], 1: ["channel"], 2: ["1", "channel"]}[order]
    if len(words) != len(field.shape):
        raise DataError(f"{field.array.label} has shape {field.shape}, its attributes declare ({', '.join(words)}).")
    return Pattern(tuple(words))


def _times(contents: Contents) -> np.ndarray:
    times = contents.values("dimensions/time").astype(np.float64)
    if times.ndim == 2 and len(times) and np.allclose(times, times[:1], rtol=1e-6, atol=0):
        times = times[0]
    if times.ndim != 1:
        raise DataError(f"{contents.path}: `dimensions/time` has shape {times.shape}; trajectories must share times.")
    return times


def _axis(contents: Contents, name: str) -> Axis:
    stored = contents[f"dimensions/{name}"]
    own: Any = [stored.attributes.get(key) for key in ("length", "offset", "periodic")]
    coordinates = contents.values(f"dimensions/{name}").astype(np.float64)
    if coordinates.ndim != 1:
        raise DataError(f"{stored.array.label} has shape {coordinates.shape}; only fixed uniform grids are read.")
    if all(isinstance(value, int | float) for value in own):
        try:
            return Axis(name, float(own[0]), len(coordinates), float(own[1]), bool(own[2]))
        except ValueError as error:
            raise DataError(f"{stored.array.label}: {error}") from error
    periodic = any(
        str(attributes.get("bc_type", "")).lower() in PERIODIC
        and name in attributes.get("associated_dims", [group.rsplit("/", 1)[-1].split("_")[0]])
        for group, attributes in contents.groups.items()
        if group.startswith("boundary_conditions/")
    )
    return axis_from_coordinates(name, coordinates, periodic=periodic, what=stored.array.label)


def _parameters(contents: Contents, count: int) -> dict[str, np.ndarray]:
    """Numbers of each trajectory: drawn ones, and constants of the whole file that the root attributes list."""
    found = {}
    for name, stored in contents.arrays.items():
        if name.startswith("scalars/") and stored.shape[:1] == (count,) and not stored.attributes.get("time_varying"):
            found[name.removeprefix("scalars/")] = contents.values(name)
    root = contents.attributes()
    for name in root.get("simulation_parameters", ()):
        if isinstance(root.get(name), int | float) and name not in found:
            found[name] = np.full(count, root[name])
    return found


WELL = Reader("The Well / ssno", frozenset(), is_well, open_well)

DEFAULTS = ReadOptions()


@cache
def readers() -> tuple[Reader, ...]:
    """All readers, most specific first; arrays named by the user come last."""
    from ssno.data.readers import airfrans, csv_columns, plain, public  # they import this module

    known = (public.PDEBENCH, public.LPSDA, public.LI, public.FOURIERFLOW, public.POSEIDON)
    return (WELL, airfrans.READER, *known, csv_columns.READER, plain.READER)


def examine(path: Path, *, budget: int = BUDGET) -> Contents:
    """What is in a file or a Zarr store; up to `budget` bytes of a file are read through to see that they can be."""
    return zarr_contents(path) if is_zarr(path) else contents_of(path, budget=budget)


def reader_for(contents: Contents, options: ReadOptions = DEFAULTS) -> Reader:
    """The reader that knows this file. Naming `axes` or `arrays` means: as plain arrays."""
    *_, csv_columns, plain = readers()
    if (options.axes is not None or options.arrays) and not csv_columns.recognise(contents):
        return plain
    for reader in readers():
        if reader.recognise(contents):
            return reader
    raise DataError(f"{contents.path} holds nothing that can be read as trajectories; it holds: {listing(contents)}.")


def listing(contents: Contents) -> str:
    """Names, shapes and types of everything in a file, and what will not be read."""
    found = [f"{name} {stored.shape} {np.dtype(stored.dtype)}" for name, stored in contents.arrays.items()]
    found += [f"{name} (not read: {why})" for name, why in contents.refused.items()]
    return "; ".join(found) or "nothing"


def open_contents(contents: Contents, options: ReadOptions = DEFAULTS) -> Mapping[str, Trajectories]:
    """Trajectories per split, or under "all" if the file is not divided."""
    reader = reader_for(contents, options)
    if unused := sorted(options.given - reader.takes - {"context", "periodic", "mask"}):
        raise DataError(
            f"{contents.path} was recognised as {reader.name!r}, which does not take `{unused[0]}`. "
            "Name its `axes` to read it as plain arrays."
        )
    try:
        found = reader.open(contents, options)
        return {split: _chosen(data, reader, options) for split, data in found.items()}
    except DataError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        # Metadata of a damaged or hostile file can be of any type; whatever trips over it, the file is at fault.
        raise DataError(
            f"{contents.path} looks like {reader.name!r}, but does not follow that format "
            f"({type(error).__name__}: {error})."
        ) from error


def _chosen(data: Trajectories, reader: Reader, options: ReadOptions) -> Trajectories:
    """Context, mask and boundaries as the user wants them, where the reader left that to the file."""
    mask = None if options.mask is None else options.mask.rsplit("/", 1)[-1]
    if options.context and "context" not in reader.takes:
        wanted = () if options.context == NONE else options.context
        data = choose_context(data, (*wanted, *(() if mask in (None, NAN, *wanted) else (mask,))) or NONE)
    if mask is not None:
        if mask != NAN and mask not in data.context_fields:
            data = choose_context(data, (*data.context_fields, mask))
        data = data.masked(mask)
    if "periodic" in options.given - reader.takes:
        flags = periodic_flags(options.periodic, [axis.name for axis in data.axes])
        data = replace(data, axes=tuple(replace(a, periodic=flag) for a, flag in zip(data.axes, flags, strict=True)))
    return data


def open_file(path: str | Path, options: ReadOptions = DEFAULTS) -> Mapping[str, Trajectories]:
    """Examine a file, recognise its format and open it."""
    return open_contents(examine(Path(path)), options)


# Zarr stores (folders ending in .zarr, or with Zarr's metadata inside), read through the optional package `zarr`.
#
# A store holds one array or a tree of them. Names of axes come from `dimension_names` (version 3) or from the attribute
# `_ARRAY_DIMENSIONS` that xarray writes (version 2). The package is imported, and chunks are decoded, in the child
# process alone (`ssno.data.sandbox.zarr_store`).

METADATA = ("zarr.json", ".zarray", ".zgroup")


def is_zarr(path: Path) -> bool:
    """Whether a folder is a Zarr store."""
    return path.is_dir() and any((path / name).is_file() for name in METADATA)


@dataclass(frozen=True)
class ZarrArray(FileArray):
    """An array of a Zarr store, opened when it is read; a chunk takes the bytes of its numbers, or of a small file."""

    chunks: tuple[int, ...]
    stored: int

    def part(self, selection: Selection) -> np.ndarray:
        parts = [part.indices(n) for part, n in zip(selection, self.shape, strict=True)]  # type: ignore[union-attr]
        shape, itemsize = tuple(len(range(*part)) for part in parts), np.dtype(self.dtype).itemsize
        touched = [
            -(-stop // chunk) - start // chunk for (start, stop, _), chunk in zip(parts, self.chunks, strict=True)
        ]
        work = min(prod(touched) * max(prod(self.chunks) * itemsize, SMALL_FILE), INFLATION * self.stored)
        request = {"read": "zarr", "key": self.key, "selection": parts}
        size = 8 * prod(shape)  # no number takes more
        values = read_by_child(self.stamp, request, work=work, size=size, most=size)[self.key]
        if (values.dtype.str, values.shape) != (self.dtype, shape):
            raise DataError(f"{self.label} is no longer {self.dtype} but {values.dtype.str}. Load the dataset again.")
        return values


def zarr_contents(path: Path) -> Contents:
    """List a store as `ssno.data.sandbox.parent` lists a file."""
    stamp = Stamp.of(path.resolve())
    answer, _ = ask(stamp, {"budget": 0})
    arrays = {}
    for record in answer["arrays"]:
        where = (stamp, record["name"], tuple(record["shape"]), record["dtype"])
        array = ZarrArray(*where, tuple(record["chunks"]), record["stored"])
        described = (record["dtype"], record["attributes"], tuple(record["dims"]), record["remark"])
        arrays[record["name"]] = StoredArray(array, *described)
    return Contents(stamp, "zarr", arrays, answer["groups"], answer["refused"])
