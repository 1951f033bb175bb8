"""Arrays that can only be read whole, because they are compressed in one piece: compressed NPZ, MATLAB version 5.

They are kept in memory once read, at most two of them, and refused if they are too large for that: 512 MiB, or 16 times
the bytes of the file, up to 4 GiB.
"""

import abc
import zipfile
import zlib
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import ClassVar

import numpy as np

from ssno.base import byte_size
from ssno.data.errors import DataError
from ssno.data.files.arrays import FileArray, Selection
from ssno.data.files.examine.report import whole_limit
from ssno.data.files.sandbox import read_by_child

UNREADABLE = (OSError, KeyError, ValueError, TypeError, RuntimeError, EOFError)
BROKEN = (zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class WholeArray(FileArray):
    """An array without parts. A format says what it is called and what to use instead of it for large arrays."""

    container: ClassVar[str]
    instead: ClassVar[str]

    def part(self, selection: Selection) -> np.ndarray:
        size = prod(self.shape) * np.dtype(self.dtype).itemsize
        limit = whole_limit(self.stamp.size)
        if size > limit:
            raise DataError(
                f"{self.label} takes {byte_size(size)}, and {self.container} can only be read whole (limit "
                f"{byte_size(limit)} for a file of {self.stamp.size} bytes). {self.instead}"
            )
        return _whole(self)[selection]

    @abc.abstractmethod
    def load(self) -> np.ndarray:
        """All of it, in the type that the file has."""


@dataclass(frozen=True)
class ZippedArray(WholeArray):
    """A compressed member of an NPZ file."""

    member: str

    container: ClassVar[str] = "a compressed NPZ file"
    instead: ClassVar[str] = "Store it uncompressed (numpy.savez) or as HDF5."

    def load(self) -> np.ndarray:
        with zipfile.ZipFile(self.stamp.path) as archive, archive.open(self.member) as file:
            return np.lib.format.read_array(file, allow_pickle=False)


@dataclass(frozen=True)
class MatlabArray(WholeArray):
    """A variable of a MATLAB file of version 5."""

    container: ClassVar[str] = "a MATLAB file of version 5"
    instead: ClassVar[str] = "Save it with -v7.3."

    def load(self) -> np.ndarray:
        size = max(self.stamp.size, prod(self.shape) * np.dtype(self.dtype).itemsize)
        return read_by_child(self.stamp, {"read": "matlab", "key": self.key}, work=size, size=size, most=size)[self.key]


@lru_cache(maxsize=2)
def _whole(array: WholeArray) -> np.ndarray:
    try:
        values = array.load()
    except DataError:
        raise
    except (*UNREADABLE, *BROKEN) as error:
        raise DataError(f"Cannot read {array.label}: {error}") from error
    if values.shape != array.shape or values.dtype.str != array.dtype:
        raise DataError(f"{array.label} is {values.dtype} {values.shape}, expected {array.dtype} {array.shape}.")
    return values
