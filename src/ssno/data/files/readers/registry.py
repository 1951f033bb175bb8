"""All readers, most specific first, and the one way to open a file."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ssno.data.context import NONE, choose_context
from ssno.data.errors import DataError
from ssno.data.files.readers import airfrans, csv_columns, plain, public, well
from ssno.data.files.readers.protocol import Reader, ReadOptions
from ssno.data.files.readers.zarr import is_zarr, zarr_contents
from ssno.data.files.sandbox.parent import BUDGET, Contents, contents_of
from ssno.data.grids import periodic_flags
from ssno.data.trajectories import NAN, Trajectories

READERS: tuple[Reader, ...] = (
    airfrans.READER,
    public.PDEBENCH,
    public.LPSDA,
    public.LI,
    public.FOURIERFLOW,
    public.POSEIDON,
    well.READER,
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
            f"{contents.path} looks like {reader.name!r}, but is not as that format says "
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
