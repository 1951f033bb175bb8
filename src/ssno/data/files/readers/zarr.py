"""Zarr stores (folders ending in .zarr, or with Zarr's metadata inside), read through the optional package `zarr`.

A store holds one array or a tree of them. Names of axes come from `dimension_names` (version 3) or from the attribute
`_ARRAY_DIMENSIONS` that xarray writes (version 2).

The metadata of a store names the codecs that turn its bytes into numbers, and some codecs (`pickle`) run what they
read. So the metadata are read here first, and a store with a codec that is not in `CODECS` is never opened.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ssno.base.documents import read_json
from ssno.data.errors import DataError
from ssno.data.files.arrays import FileArray, Selection, Stamp
from ssno.data.files.examine.report import MAX_OBJECTS, plain, why_not
from ssno.data.files.probe import Contents, StoredArray

METADATA = ("zarr.json", ".zarray", ".zgroup")
CODECS = {"blosc", "bytes", "crc32", "crc32c", "delta", "endian", "fixedscaleoffset", "fletcher32", "gzip", "lz4"}
CODECS |= {"quantize", "sharding_indexed", "shuffle", "transpose", "zlib", "zstd"}
STEPS = ("compressor", "filters", "codecs", "index_codecs")  # where metadata of either version name codecs
MAX_CHUNK = 128 * 2**20


def is_zarr(path: Path) -> bool:
    """Whether a folder is a Zarr store."""
    return path.is_dir() and any((path / name).is_file() for name in METADATA)


@dataclass(frozen=True)
class ZarrArray(FileArray):
    """An array of a Zarr store, opened when it is read."""

    def part(self, selection: Selection) -> np.ndarray:
        zarr = _package()
        try:
            node = zarr.open(store=str(self.stamp.path), mode="r")
            values = np.asarray((node[self.key] if self.key != "array" else node)[selection])
        except Exception as error:  # every codec and store has exceptions of its own
            raise DataError(f"Cannot read {self.label}: {type(error).__name__}: {error}") from error
        if values.dtype.str != self.dtype:
            raise DataError(f"{self.label} is no longer {self.dtype} but {values.dtype.str}. Load the dataset again.")
        return values


def zarr_contents(path: Path) -> Contents:
    """List a store as `ssno.data.files.probe` lists a file."""
    zarr = _package()
    check_codecs(path)
    arrays: dict[str, StoredArray] = {}
    refused: dict[str, str] = {}
    groups: dict[str, dict[str, Any]] = {}
    try:
        root = zarr.open(store=str(path), mode="r")
        if hasattr(root, "shape"):
            nodes = [("array", root)]
        else:
            groups[""] = {key: plain(value) for key, value in dict(root.attrs).items()}
            nodes = [(name, node) for name, node in root.members(max_depth=None) if hasattr(node, "shape")]
        for name, node in nodes[:MAX_OBJECTS]:
            attributes = {key: plain(value) for key, value in dict(node.attrs).items()}
            dims = getattr(node.metadata, "dimension_names", None) or attributes.pop("_ARRAY_DIMENSIONS", None) or ()
            why = why_not(node.dtype)
            if why is None and prod(node.chunks) * node.dtype.itemsize > MAX_CHUNK:
                why = f"has chunks of {tuple(node.chunks)}, larger than {MAX_CHUNK} bytes; store it with smaller ones"
            if why is not None:
                refused[name] = why
            else:
                array = ZarrArray(Stamp.of(path.resolve()), name, tuple(node.shape), node.dtype.str)
                named = tuple(str(dim) for dim in dims) if all(dims) else ()
                arrays[name] = StoredArray(array, node.dtype.str, attributes, named, _missing(name, node))
    except Exception as error:  # every codec and store has exceptions of its own
        raise DataError(f"{path} cannot be read as Zarr: {type(error).__name__}: {error}") from error
    return Contents(Stamp.of(path), "zarr", arrays, groups, refused)


def check_codecs(path: Path) -> None:
    """Raise `DataError` if any metadata in a store name a codec that is not known to be harmless."""
    for folder, _, files in os.walk(path):
        for name in {*files} & {"zarr.json", ".zarray", ".zmetadata"}:
            file = Path(folder, name)
            content = read_json(file, remedy="The store is damaged; write it again.")
            if unknown := sorted({*codecs_in(content)} - CODECS):
                raise DataError(
                    f"{file} asks for the codec {unknown[0]!r}, which ssno does not run: it may execute what it reads. "
                    "Store the array with blosc, zstd or gzip."
                )


def codecs_in(metadata: Any) -> Iterator[str]:
    """Names of all codecs in parsed metadata, consolidated or not; attributes may hold anything."""
    pending = [metadata]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        if not isinstance(value, dict):
            continue
        for key, inner in value.items():
            if key in STEPS:
                for codec in inner if isinstance(inner, list) else [inner]:
                    named = codec.get("id", codec.get("name")) if isinstance(codec, dict) else codec
                    if codec is not None:
                        yield str(named).removeprefix("numcodecs.")
            if key != "attributes" and not key.endswith(".zattrs"):
                pending.append(inner)


def _missing(name: str, node: Any) -> str:
    """Zarr leaves out chunks that hold nothing but the fill value, so a missing chunk may be all zero or unwritten."""
    absent = int(node.nchunks - node.nchunks_initialized)
    if absent == 0:
        return ""
    return (
        f"{absent} of {node.nchunks} chunks of {name!r} are not stored: they are all {node.fill_value}, or unwritten."
    )


def _package() -> Any:
    try:
        import zarr
    except ImportError as error:
        raise ImportError("Zarr stores need the package zarr: pip install ssno[zarr]") from error
    return zarr
