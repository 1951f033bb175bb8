"""All readers, most specific first, and the one way to open a file."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

import numpy as np

from ssno.data.context import NONE, choose_context
from ssno.data.errors import DataError
from ssno.data.grids import periodic_flags
from ssno.data.readers import airfrans, csv_columns, plain, public
from ssno.data.readers.arrays import FileArray, Selection, Stamp
from ssno.data.readers.protocol import WELL, Reader, ReadOptions
from ssno.data.sandbox.parent import BUDGET, Contents, StoredArray, ask, contents_of, read_by_child
from ssno.data.sandbox.report import INFLATION
from ssno.data.sandbox.zarr_store import SMALL_FILE
from ssno.data.trajectories import NAN, Trajectories

READERS: tuple[Reader, ...] = (
    WELL,
    airfrans.READER,
    public.PDEBENCH,
    public.LPSDA,
    public.LI,
    public.FOURIERFLOW,
    public.POSEIDON,
    csv_columns.READER,
    plain.READER,
)
DEFAULTS = ReadOptions()


def examine(path: Path, *, budget: int = BUDGET) -> Contents:
    """What is in a file or a Zarr store; up to `budget` bytes of a file are read through to see that they can be."""
    return zarr_contents(path) if is_zarr(path) else contents_of(path, budget=budget)


def reader_for(contents: Contents, options: ReadOptions = DEFAULTS) -> Reader:
    """The reader that knows this file. Naming `axes` or `arrays` means: as plain arrays."""
    if (options.axes is not None or options.arrays) and not csv_columns.recognise(contents):
        return plain.READER
    for reader in READERS:
        if reader.recognise(contents):
            return reader
    raise DataError(
        f"{contents.path} holds nothing that can be read as trajectories; it holds: {plain.listing(contents)}."
    )


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
