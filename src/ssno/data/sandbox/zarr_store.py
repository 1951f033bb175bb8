"""List a Zarr store and read parts of its arrays, with the optional package `zarr`.

The metadata of a store name the codecs that turn its bytes into numbers, and some codecs (`pickle`) run what they
read. So the metadata are read here first, and a store with a codec that is not in `CODECS` is never opened. Nor is one
that holds anything but folders and regular files: `zarr` would wait for pipes, and follow links past this check.
"""

import os
import stat
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ssno.base.json_io import read_json
from ssno.data.errors import DataError
from ssno.data.sandbox.report import MAX_OBJECTS, Record, Report, plain, why_not

METADATA = {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"}
CODECS = {"blosc", "bytes", "crc32", "crc32c", "delta", "endian", "fixedscaleoffset", "fletcher32", "gzip", "lz4"}
CODECS |= {"quantize", "sharding_indexed", "shuffle", "transpose", "zlib", "zstd"}
STEPS = ("compressor", "filters", "codecs", "index_codecs")  # where metadata of either version name codecs
MAX_CHUNK = 128 * 2**20
SMALL_FILE = 16 * 2**10  # bytes that could be decoded in the time it takes to open a file
ONE = "array"  # name of the only array of a store that is no group


def examine_zarr(path: str) -> Record:
    """The arrays of a store, and how many of their chunks are not there."""
    check_files(path)
    check_codecs(path)
    report = Report("zarr", 0)
    try:
        root = opened(path)
        if hasattr(root, "shape"):
            nodes = [(ONE, root)]
        else:
            report.answer["groups"][""] = {key: plain(value) for key, value in dict(root.attrs).items()}
            nodes = [(name, node) for name, node in root.members(max_depth=None) if hasattr(node, "shape")]
        for name, node in nodes[:MAX_OBJECTS]:
            attributes = {key: plain(value) for key, value in dict(node.attrs).items()}
            dims = getattr(node.metadata, "dimension_names", None) or attributes.pop("_ARRAY_DIMENSIONS", None) or ()
            why = why_not(node.dtype)
            if why is None and prod(node.chunks) * node.dtype.itemsize > MAX_CHUNK:
                why = f"has chunks of {tuple(node.chunks)}, larger than {MAX_CHUNK} bytes; store it with smaller ones"
            if why is not None:
                report.refuse(name, why)
            else:
                named = [str(dim) for dim in dims] if all(dims) else []
                sizes = file_sizes(path if name == ONE else os.path.join(path, name))
                more: Record = {"attributes": attributes, "dims": named, "remark": missing(name, node, len(sizes))}
                more |= {"chunks": [int(n) for n in node.chunks], "stored": sum(max(n, SMALL_FILE) for n in sizes)}
                report.add(name, node.shape, node.dtype, **more)
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # every codec and store has exceptions of its own
        raise DataError(f"{path} cannot be read as Zarr: {type(error).__name__}: {error}") from error
    return report.answer


def read_zarr(path: str, key: str, selection: tuple[slice, ...]) -> np.ndarray:
    """A part of an array of a store that was examined."""
    try:
        node = opened(path)
        return np.asarray((node[key] if key != ONE else node)[selection])
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # every codec and store has exceptions of its own
        raise DataError(f"Cannot read {key!r} in {path}: {type(error).__name__}: {error}") from error


def opened(path: str) -> Any:
    """The store. One chunk is decoded at a time, so that the memory it takes is that of a chunk."""
    try:
        import zarr
    except ImportError as error:
        raise ImportError("Zarr stores need the package zarr: pip install ssno[zarr]") from error
    zarr.config.set({"async.concurrency": 1})
    return zarr.open(store=path, mode="r")


def check_files(path: str) -> None:
    """Raise `DataError` if anything in a store is no folder or regular file; the store itself may be a link."""
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            mode = os.lstat(os.path.join(folder, name)).st_mode
            if stat.S_ISLNK(mode):
                raise DataError(
                    f"{Path(folder, name)} is a symbolic link, which ssno does not follow inside a Zarr store: it may "
                    "lead anywhere. Put what it points to in its place."
                )
            if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
                raise DataError(
                    f"{Path(folder, name)} is a pipe or a device, which has no place in a Zarr store. Delete it."
                )


def check_codecs(path: str) -> None:
    """Raise `DataError` if any metadata in a store name a codec that is not known to be harmless."""
    for folder, _, files in os.walk(path):
        for name in {*files} & {"zarr.json", ".zarray", ".zmetadata"}:
            file = Path(folder, name)
            content = read_json(file, remedy="The store is damaged; write it again.")
            if unknown := sorted({*codecs_in(content, file=name)} - CODECS):
                raise DataError(
                    f"{file} asks for the codec {unknown[0]!r}, which ssno does not run: it may execute what it reads. "
                    "Store the array with blosc, zstd or gzip."
                )


def codecs_in(metadata: Any, *, file: str = "zarr.json") -> Iterator[str]:
    """Names of all codecs in the parsed metadata of a file, consolidated or not.

    Attributes may hold anything and are left out: those that stand in the description of an array or a group, which
    has a number as `zarr_format` (an array may be called `attributes`), and in `.zmetadata` those called `.zattrs`.
    """
    pending = [metadata]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        if not isinstance(value, dict):
            continue
        described = isinstance(value.get("zarr_format"), int)
        for key, inner in value.items():
            if key in STEPS:
                for codec in inner if isinstance(inner, list) else [inner]:
                    yield from _codec_names(codec)
            consolidated = file == ".zmetadata" and key.rsplit("/", 1)[-1] == ".zattrs"
            if not consolidated and not (described and key == "attributes"):
                pending.append(inner)


def _codec_names(codec: Any) -> list[str]:
    """What a codec is called: version 2 goes by `id` and version 3 by `name`, so both count where both are given."""
    if codec is None:
        return []
    names = [codec[key] for key in ("id", "name") if key in codec] or [None] if isinstance(codec, dict) else [codec]
    return [str(name).removeprefix("numcodecs.") for name in names]


def stored_together(node: Any) -> tuple[int, ...]:
    """The shape of what one file holds: a chunk, or a shard of several."""
    return tuple(getattr(node, "shards", None) or node.chunks)


def file_sizes(folder: str) -> list[int]:
    """Bytes of the files of an array that hold chunks."""
    found = [os.path.join(place, name) for place, _, files in os.walk(folder) for name in {*files} - METADATA]
    return [os.path.getsize(file) for file in found]


def missing(name: str, node: Any, there: int) -> str:
    """Zarr leaves out chunks that hold nothing but the fill value, so a missing chunk may be all zero or unwritten.

    Files are counted, not chunks: a few bytes of metadata may declare more chunks than anybody can count.
    """
    expected = prod(-(-n // step) for n, step in zip(node.shape, stored_together(node), strict=True))
    if there >= expected:
        return ""
    absent = f"{expected - there} of {expected} chunks of {name!r} are not stored"
    return f"{absent}: they are all {node.fill_value}, or unwritten."
