"""Zarr stores (folders ending in .zarr, or with Zarr's metadata inside), read through the optional package `zarr`.

A store holds one array or a tree of them. Names of axes come from `dimension_names` (version 3) or from the attribute
`_ARRAY_DIMENSIONS` that xarray writes (version 2). The package is imported, and chunks are decoded, in the child
process alone (`ssno.data.files.sandbox.zarr_store`).
"""

from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from ssno.data.errors import DataError
from ssno.data.files.arrays import FileArray, Selection, Stamp
from ssno.data.files.sandbox.parent import Contents, StoredArray, ask, read_by_child
from ssno.data.files.sandbox.report import INFLATION
from ssno.data.files.sandbox.zarr_store import SMALL_FILE

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
    """List a store as `ssno.data.files.sandbox.parent` lists a file."""
    stamp = Stamp.of(path.resolve())
    answer, _ = ask(stamp, {"budget": 0})
    arrays = {}
    for record in answer["arrays"]:
        where = (stamp, record["name"], tuple(record["shape"]), record["dtype"])
        array = ZarrArray(*where, tuple(record["chunks"]), record["stored"])
        described = (record["dtype"], record["attributes"], tuple(record["dims"]), record["remark"])
        arrays[record["name"]] = StoredArray(array, *described)
    return Contents(stamp, "zarr", arrays, answer["groups"], answer["refused"])
