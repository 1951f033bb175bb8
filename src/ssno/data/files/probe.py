"""What is in a file, found by a child process (`ssno.data.files.sandbox`) before this process touches it.

It is a `Contents`: the arrays of the file, ready to be read lazily.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Num

from ssno.base import did_you_mean
from ssno.data.errors import DataError
from ssno.data.files.arrays import FileArray, H5Array, LazyArray, MappedArray, MemoryArray, Selection, Stamp
from ssno.data.files.packing import Packing
from ssno.data.files.sandbox import TIME_LIMIT, ask, read_by_child
from ssno.data.files.whole_arrays import MatlabArray, ZippedArray

BUDGET = 64 * 2**20  # bytes read through at most: whole small files, samples of large ones
CELL_BY_CELL = 8  # times slower than the parser of NumPy, for tables with gaps
SHOWN = 50  # names of arrays in a message
SMALL = 64 * 2**20  # bytes of coordinates and parameters, which are read at once


@dataclass(frozen=True)
class StoredArray:
    """An array of a file: where it is, what it holds, what the file says about it, what the user should know."""

    array: LazyArray
    dtype: str
    attributes: Mapping[str, Any]
    dims: tuple[str, ...]
    remark: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def size(self) -> int:
        """Bytes of all numbers."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def packing(self) -> Packing:
        """How its numbers are packed."""
        return Packing.of(self.attributes, self.dtype)


@dataclass(frozen=True)
class Contents:
    """Everything in a file that can be read, by name, and what cannot, with the reason."""

    stamp: Stamp
    kind: str
    arrays: Mapping[str, StoredArray]
    groups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.stamp.shown

    def __getitem__(self, name: str) -> StoredArray:
        """The array of this name, or an error that says what there is."""
        if name in self.arrays:
            return self.arrays[name]
        if name in self.refused:
            raise DataError(f"{name!r} in {self.path} {self.refused[name]}.")
        hint = did_you_mean(name, self.arrays)
        raise DataError(
            f"{self.path} has no array {name!r}; it has {', '.join([*self.arrays][:SHOWN]) or 'none'}.{hint}"
        )

    def values(self, name: str) -> Num[np.ndarray, "..."]:
        """All numbers of a small array (coordinates, parameters), unpacked."""
        stored = self[name]
        if stored.size > SMALL:
            raise DataError(f"{stored.array.label} has {stored.size} bytes, too many for coordinates or parameters.")
        return stored.packing.unpack(stored.array.read((slice(None),) * len(stored.shape)))

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        """Attributes of a group; those of the file itself without a name."""
        return self.groups.get(group, {})


def contents_of(path: str | Path, *, budget: int = BUDGET, time_limit: float = TIME_LIMIT) -> Contents:
    """Examine a file in the child process. Raises `FileNotFoundError` or `DataError`."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if not path.is_file():
        raise DataError(f"{path} is not a file.")
    stamp = Stamp.of(path.resolve())
    if stamp.size == 0:
        raise DataError(f"{path} is empty.")
    return _examined(stamp, budget, time_limit)


@lru_cache(maxsize=4096)
def _examined(stamp: Stamp, budget: int, time_limit: float) -> Contents:
    answer, _ = ask(stamp, {"budget": budget}, time_limit=time_limit)
    arrays = {}
    for record in answer["arrays"]:
        where = {"stamp": stamp, "key": record["name"], "shape": tuple(record["shape"]), "dtype": record["dtype"]}
        array: LazyArray
        if "member" in record:
            array = ZippedArray(**where, member=record["member"])
        elif "columns" in record:
            array = CsvArray(**where, first=record["columns"][0], last=record["columns"][1])
        elif "values" in record:
            array = MemoryArray(np.array(record["values"]), f"{record['name']!r} in {stamp.shown}")
        elif "variable" in record:
            array = MatlabArray(**where)
        elif "offset" in record:
            array = MappedArray(**where, offset=record["offset"], strides=tuple(record["strides"]))
        else:
            array = H5Array(**where)
        arrays[record["name"]] = StoredArray(array, record["dtype"], record["attributes"], tuple(record["dims"]))
    return Contents(stamp, answer["kind"], arrays, answer["groups"], answer["refused"])


@dataclass(frozen=True)
class CsvArray(FileArray):
    """Columns of a CSV file from `first` to before `last`. Read whole, by the child, and kept."""

    first: int
    last: int

    def part(self, selection: Selection) -> np.ndarray:
        values = _table(self.stamp)[:, self.first : self.last]
        return (values[:, 0] if len(self.shape) == 1 else values)[selection]


@lru_cache(maxsize=2)
def _table(stamp: Stamp) -> np.ndarray:
    """All numbers of a CSV file. A number and what separates it from the next are two characters at least."""
    size = stamp.size
    return read_by_child(stamp, {"read": "csv"}, work=CELL_BY_CELL * size, size=size, most=8 * (size // 2 + 1))["table"]
