"""Zarr stores (folders ending in .zarr, or with Zarr's metadata inside), read through the optional package `zarr`.

A store holds one array or a tree of them. Names of axes come from `dimension_names` (version 3) or from the attribute
`_ARRAY_DIMENSIONS` that xarray writes (version 2).

The metadata of a store names the codecs that turn its bytes into numbers, and some codecs (`pickle`) run what they
read. So the metadata are read here first, and a store with a codec that is not in `CODECS` is never opened. Nor is one
with symbolic links inside, which `zarr` would follow: they lead past this check, and out of the store.
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
    check_links(path)
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


def check_links(path: Path) -> None:
    """Raise `DataError` if anything in a store is a symbolic link; the store itself may be reached by one."""
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(folder, name)):
                raise DataError(
                    f"{Path(folder, name)} is a symbolic link, which ssno does not follow inside a Zarr store: it may "
                    "lead anywhere. Put what it points to in its place."
                )


def check_codecs(path: Path) -> None:
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
