"""Zarr stores (folders ending in .zarr, or with Zarr's metadata inside), read through the optional package `zarr`.

A store holds one array or a tree of them. Names of axes come from `dimension_names` (version 3) or from the attribute
`_ARRAY_DIMENSIONS` that xarray writes (version 2).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ssno.data.errors import DataError
from ssno.data.files.arrays import FileArray, Selection, Stamp
from ssno.data.files.examine.report import MAX_OBJECTS, plain, why_not
from ssno.data.files.probe import Contents, StoredArray

METADATA = ("zarr.json", ".zarray", ".zgroup")


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
            if why := why_not(node.dtype):
                refused[name] = why
            else:
                array = ZarrArray(Stamp.of(path.resolve()), name, tuple(node.shape), node.dtype.str)
                named = tuple(str(dim) for dim in dims) if all(dims) else ()
                arrays[name] = StoredArray(array, node.dtype.str, attributes, named, _missing(name, node))
    except Exception as error:  # every codec and store has exceptions of its own
        raise DataError(f"{path} cannot be read as Zarr: {type(error).__name__}: {error}") from error
    return Contents(Stamp.of(path), "zarr", arrays, groups, refused)


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
