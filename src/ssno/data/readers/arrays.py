"""Arrays that stay on disk until a slice of them is asked for.

Each class here is a small description (where the numbers are, their shape and type) with one method,
`read(selection)`, that returns the selected part as a NumPy array. A description holds no open file, so it
travels to worker processes; files are opened by the process that reads and kept open there (`h5_file`).

A description remembers the size and time stamp of its file and refuses to read a file that changed since. Formats
without parts that could be read alone are in `ssno.data.sandbox.parent`.
"""

import abc
import mmap
import os
import re
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import h5py
import numpy as np

from ssno.data.errors import DataError

# Numbers as NetCDF's conventions pack them: value = scale_factor * stored + add_offset, and numbers for none.

SCALING = {"scale_factor": 1.0, "add_offset": 0.0}
MISSING = ("_FillValue", "missing_value")


@dataclass(frozen=True)
class Packing:
    """Values are `scale * stored + shift`, NaN where the stored number is one of those that mean `missing`."""

    scale: float = 1.0
    shift: float = 0.0
    missing: tuple[float, ...] = ()

    @classmethod
    def of(cls, attributes: Mapping[str, Any], dtype: str) -> "Packing":
        """What the attributes of a stored array say."""
        numbers = {key: _numbers(attributes.get(key)) for key in (*SCALING, *MISSING)}
        scale, shift = (numbers[key][0] if len(numbers[key]) == 1 else usual for key, usual in SCALING.items())
        missing = [_stored(number, np.dtype(dtype)) for key in MISSING for number in numbers[key]]
        return cls(scale, shift, tuple(dict.fromkeys(number for number in missing if number is not None)))

    def unpack(self, stored: np.ndarray) -> np.ndarray:
        """The values; numbers that are not packed, and of which none is missing, come back as they are."""
        gaps = [stored == number for number in self.missing]
        values = stored
        if (self.scale, self.shift) != (1.0, 0.0):
            values = self.scale * _real(values) + self.shift
        if any(gap.any() for gap in gaps):
            values = np.where(np.logical_or.reduce(gaps), np.nan, _real(values))
        return values


def _numbers(attribute: Any) -> list[float]:
    """An attribute as numbers: NetCDF stores one, or a list."""
    listed = attribute if isinstance(attribute, list) else [attribute]
    return [float(value) for value in listed if isinstance(value, int | float)]


def _stored(number: float, dtype: np.dtype) -> float | None:
    """A number as an array of this type holds it; None if it cannot, as NaN, or 1e20 among short integers."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            held = float(dtype.type(number))
    except (OverflowError, ValueError):
        return None
    return held if held == held and (dtype.kind == "f" or held == number) else None


def _real(values: np.ndarray) -> np.ndarray:
    return values if values.dtype == np.float32 else values.astype(np.float64, copy=False)


UNPACKED = Packing()

# Units of measure, as attributes state them: "m s-1", "degrees_east". They are text out of a file that ends up in
# tables, pictures, pages and other files, so a unit is taken only if it is short and made of what units are made of: no
# markup, no mathematical typesetting, no escape sequence.

KEYS = ("units", "unit")
LONGEST = 32
NO_UNIT = {"", "1", "-", "none", "unitless", "dimensionless", "nondimensional", "non-dimensional"}
UNIT = re.compile(r"[^\W_][\w */^+.,()%°·⋅⁻−'-]*|[%°]\w?")


def unit_of(attributes: Mapping[str, Any]) -> str:
    """The unit that attributes of an array state; "" if none, or none that can be shown.

    Of "seconds since 2000-01-01" (NetCDF's calendars) the unit is what stands before "since".
    """
    for key in KEYS:
        stated = attributes.get(key)
        if isinstance(stated, list) and len(stated) == 1:  # HDF5 has lists of one text
            stated = stated[0]
        if isinstance(stated, str):
            return clean_unit(stated)
    return ""


def clean_unit(stated: str) -> str:
    """Text as a unit, "" if it is none."""
    unit = " ".join(stated[: 8 * LONGEST].split()).partition(" since ")[0]
    fine = len(unit) <= LONGEST and unit.lower() not in NO_UNIT and UNIT.fullmatch(unit)
    return unit if fine else ""


Rows = slice | np.ndarray  # arrays of rows only for arrays in memory
Selection = tuple[Rows, ...]
MAX_OPEN_FILES = 64
SCATTERED = 16
"""Times its size over which a selection is spread in its file: then what lies between is not worth reading."""


@runtime_checkable
class LazyArray(Protocol):
    """What a reader hands over: numbers that can be read slice by slice."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def label(self) -> str:
        """Where the numbers come from, for messages."""
        ...

    def read(self, selection: Selection) -> np.ndarray:
        """The selected part, one slice per axis."""
        ...


@dataclass(frozen=True)
class Stamp:
    """Identity of a file at the moment it was examined."""

    path: Path
    size: int
    modified: int
    inode: int
    most_open: ClassVar[int] = MAX_OPEN_FILES

    @property
    def shown(self) -> Path:
        """The path as a user would write it: relative if it lies below the current folder."""
        here = Path.cwd()
        return self.path.relative_to(here) if self.path.is_relative_to(here) else self.path

    @classmethod
    def of(cls, path: Path) -> "Stamp":
        status = path.stat()
        return cls(path, status.st_size, status.st_mtime_ns, status.st_ino)

    def check(self) -> None:
        try:
            now = Stamp.of(self.path)
        except OSError as error:
            raise DataError(f"{self.shown} can no longer be read ({error.strerror}).") from error
        if now != self:
            raise DataError(f"{self.shown} was changed after it was opened. Load the dataset again.")


STAND_INS: dict[Path, Stamp] = {}
"""Empty files, and the stamps of the remote files that they stand for (`ssno.data.remote`)."""


def stamp_of(path: Path) -> Stamp:
    """The stamp of a file on the disk, or of the remote one that an empty file stands for."""
    real = path.resolve()
    return STAND_INS.get(real) or Stamp.of(real)


@dataclass(frozen=True)
class MemoryArray:
    """An array already in memory."""

    values: np.ndarray
    label: str = "the array"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def read(self, selection: Selection) -> np.ndarray:
        return self.values[selection]


@dataclass(frozen=True)
class FileArray(abc.ABC):
    """An array under a key in a file; how a part of it is read depends on the format."""

    stamp: Stamp
    key: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def label(self) -> str:
        return f"{self.key!r} in {self.stamp.shown}"

    def read(self, selection: Selection) -> np.ndarray:
        self.stamp.check()
        return self.part(selection)

    def file_strides(self) -> tuple[int, ...] | None:
        """Bytes from one number to the next along each axis, in the file; None if they do not lie in rows."""
        return None

    @abc.abstractmethod
    def part(self, selection: Selection) -> np.ndarray:
        """The selected part of a file that has not changed."""


@dataclass(frozen=True)
class H5Array(FileArray):
    """A dataset inside an HDF5 file. Strides in a selection are handed to the HDF5 read."""

    def part(self, selection: Selection) -> np.ndarray:
        try:
            dataset = h5_file(self.stamp)[self.key]
            if dataset.shape != self.shape or dataset.dtype.str != self.dtype:
                raise DataError(f"{self.label} is no longer {self.dtype} {self.shape}. Load the dataset again.")
            check_inflation(dataset, selection, _inflated(self.stamp, self.key))  # type: ignore[arg-type]
            return np.asarray(dataset[selection])  # of a scalar dataset, too
        except (OSError, KeyError, RuntimeError) as error:
            raise DataError(f"Cannot read {self.label}: {error}") from error

    def file_strides(self) -> tuple[int, ...] | None:
        return rows_of(self.shape, self.dtype) if h5_file(self.stamp)[self.key].chunks is None else None


@dataclass(frozen=True)
class LayerArray:
    """One layer of another array: position `index` along `axis`, which keeps length one."""

    array: LazyArray
    axis: int
    index: int

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(1 if i == self.axis else n for i, n in enumerate(self.array.shape))

    @property
    def label(self) -> str:
        return self.array.label

    def read(self, selection: Selection) -> np.ndarray:
        at = slice(self.index, self.index + 1)
        return self.array.read((*selection[: self.axis], at, *selection[self.axis + 1 :]))


@dataclass(frozen=True)
class MappedArray(FileArray):
    """Plain numbers at a known place in a file: NPY, members of an uncompressed NPZ, NetCDF-3 variables."""

    offset: int
    strides: tuple[int, ...] = field(default=())

    def part(self, selection: Selection) -> np.ndarray:
        with open(self.stamp.path, "rb") as file:
            raw = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        chosen = np.ndarray(self.shape, self.dtype, raw, self.offset, self.file_strides())[selection]
        span = sum((count - 1) * abs(step) for count, step in zip(chosen.shape, chosen.strides, strict=True))
        if span > SCATTERED * chosen.nbytes and hasattr(mmap, "MADV_RANDOM"):
            raw.madvise(mmap.MADV_RANDOM)  # or the system reads ahead, at every single place
        return np.array(chosen)

    def file_strides(self) -> tuple[int, ...]:
        return self.strides or rows_of(self.shape, self.dtype)


def rows_of(shape: tuple[int, ...], dtype: str) -> tuple[int, ...]:
    """Strides in bytes of an array stored row by row."""
    return tuple(np.dtype(dtype).itemsize * prod(shape[i + 1 :]) for i in range(len(shape)))


# Chunks of HDF5 datasets that become more than they say when they are decompressed.
#
# HDF5 inflates a chunk to wherever its bytes lead and compares sizes afterwards, so 40 MB can ask for 40 GB. Deflate
# makes at most 1032 bytes out of one: chunks of up to 1 MiB are harmless, larger ones are inflated here first, up to
# the size that the dataset declares.

DEFLATE = 1
HARMLESS = 2**20
SLACK = 2**16  # bytes that filters may add to incompressible numbers


def filters_of(node: h5py.Dataset) -> list[int]:
    """Numbers of the filters that a dataset's chunks go through."""
    settings = node.id.get_create_plist()
    return [settings.get_filter(i)[0] for i in range(settings.get_nfilters())]


def check_inflation(node: h5py.Dataset, selection: tuple[slice, ...], known: set[tuple[int, ...]]) -> None:
    """Raise `OSError` if a chunk under a selection inflates beyond its size; `known` ones are not looked at again."""
    if node.chunks is None or DEFLATE not in filters_of(node):
        return
    declared = prod(node.chunks) * node.dtype.itemsize
    if declared + declared // 64 + SLACK <= HARMLESS:
        return
    ranges = []
    for part, length, chunk in zip(selection, node.shape, node.chunks, strict=True):
        start, stop, _ = part.indices(length)
        ranges.append(range(start // chunk * chunk, stop, chunk))
    for offset in product(*ranges):
        if offset in known:
            continue
        mask, stored = node.id.read_direct_chunk(offset)
        if len(stored) > HARMLESS and not mask >> filters_of(node).index(DEFLATE) & 1:
            inflated = zlib.decompressobj().decompress(stored, declared + SLACK)
            if len(inflated) == declared + SLACK:
                raise OSError(f"the chunk at {offset} becomes more than the {declared} bytes that it should have")
        known.add(offset)


@lru_cache(maxsize=1024)
def _inflated(stamp: Stamp, key: str) -> set[tuple[int, ...]]:
    """Chunks of a dataset that were found to inflate to what they should."""
    return set()


_open: OrderedDict[Stamp, h5py.File] = OrderedDict()


def h5_file(stamp: Stamp) -> h5py.File:
    """The file, opened once per process for reading; at most `most_open` of its kind stay open."""
    if stamp in _open:
        _open.move_to_end(stamp)
    else:
        _open[stamp] = h5py.File(stamp.path, "r")
        alike = [other for other in _open if type(other) is type(stamp)]
        for other in alike[: -stamp.most_open]:
            _open.pop(other).close()
    return _open[stamp]


# A forked worker must not use its parent's handles: it forgets them, without closing what the parent still
# uses.
_inherited: list[h5py.File] = []


def _forget() -> None:
    _inherited.extend(_open.values())
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
