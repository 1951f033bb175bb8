"""Let a child process open foreign files, with limited memory and time.

HDF5 is a C library, and a damaged or hostile file can crash it, make it loop or ask for all memory; others do the same.
So files are first opened by a child (`ssno.data.sandbox.child`), which is started once and kept: its crash is our
`DataError`. Formats that other libraries decode (MATLAB, CSV, VTK's XML, Zarr) are read by the child, too, which sends
their numbers (`read_by_child`).
"""

import abc
import atexit
import json
import os
import stat
import subprocess
import sys
import threading
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from pathlib import Path
from queue import Empty, Queue
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Num

from ssno.base import byte_size, did_you_mean
from ssno.data.errors import DataError
from ssno.data.readers.arrays import (
    FileArray,
    H5Array,
    LazyArray,
    MappedArray,
    MemoryArray,
    Packing,
    Selection,
    Stamp,
    stamp_of,
)
from ssno.data.sandbox.report import Record, whole_limit

# Which files of a folder may be opened: regular ones that lie in it.
#
# A pipe or a device makes whoever opens it wait, a link may lead anywhere. Somebody else's folder may hold either,
# under any name, so its files are looked at here before they are opened.


def why_not_regular(path: str | Path, folder: str | Path) -> str | None:
    """Why a file of a folder is not opened, or None if it may be. The folder itself may be reached by a link."""
    real, inside = os.path.realpath(path), os.path.realpath(folder)
    if os.path.commonpath([real, inside]) != inside:
        return f"is a link out of {folder}, which is not followed: it may lead anywhere; replace it by the file"
    try:
        mode = os.stat(real).st_mode
    except OSError:
        return "is a link that leads nowhere" if os.path.islink(path) else "is missing"
    return None if stat.S_ISREG(mode) else "is not a regular file (a folder, a pipe or a device)"


def check_regular(path: str | Path, folder: str | Path) -> None:
    """Raise `DataError` if a file of a folder is not to be opened."""
    if why := why_not_regular(path, folder):
        raise DataError(f"{path} {why}.")


TIME_LIMIT = 60.0  # seconds of waiting: a slow disk is no damage
COMPUTING = 4  # seconds of computing
MEMORY = 2**30  # bytes that the child may take
SPEED = 16 * 2**20  # bytes that any decoding goes through in a second
COPIES = 6  # of what it goes through: as text, as bytes, as numbers
OUT_OF_SECONDS = 24  # SIGXCPU
# The child needs no torch, so it must not run ssno/__init__.py: it gets an empty package with the same path.
BOOT = """
import sys, types
for name in ("ssno", "ssno.base", "ssno.data", "ssno.data.sandbox.parent"):
    path = "/".join([sys.argv[1], *name.split(".")[1:]])
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
from ssno.data.sandbox.child import main
main()
"""


def ask(
    stamp: Stamp, request: Record, *, work: int = 0, memory: int = MEMORY, most: int = 0, time_limit: float = TIME_LIMIT
) -> tuple[Record, np.ndarray]:
    """What the child says about a file, and up to `most` bytes that it sends. Raises `DataError`.

    It may compute for 5 s and take 1 GiB, and for longer where it has `work` bytes to go through.
    """
    limits = {"seconds": COMPUTING + work // SPEED, "memory": memory}
    time_limit += work // SPEED
    answer, data = _child().ask({"path": str(stamp.path), **request, **limits}, most=most, time_limit=time_limit)
    if "missing" in answer:
        raise ImportError(answer["missing"])
    if "sentence" in answer:
        raise DataError(answer["sentence"].replace(str(stamp.path), str(stamp.shown)))
    if "error" in answer:
        raise DataError(f"{stamp.shown} {answer['error']}.")
    return answer, data


def read_by_child(stamp: Stamp, request: Record, *, work: int, size: int, most: int) -> dict[str, np.ndarray]:
    """Arrays that the child decodes from `size` bytes and sends: at most `most` bytes, whatever the file says."""
    answer, data = ask(stamp, request, work=work, memory=MEMORY + COPIES * size, most=most)
    found, start = {}, 0
    for name, shape, dtype in answer["arrays"]:
        end = start + prod(shape) * np.dtype(dtype).itemsize
        found[name], start = data[start:end].view(dtype).reshape(shape), end
    return found


class Child:
    """The examining process of this process: started when first asked, replaced when it dies."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.owner = 0
        self.lock = threading.Lock()

    def ask(self, request: Record, *, most: int = 0, time_limit: float) -> tuple[Record, np.ndarray]:
        """Send one request and wait for its answer; a crash or a silence becomes a `DataError`."""
        with self.lock:
            process = self._running()
            assert process.stdin is not None
            answers: Queue[tuple[Record, np.ndarray] | None] = Queue()
            try:
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                threading.Thread(target=lambda: answers.put(_answer(process.stdout, most)), daemon=True).start()
                answer = answers.get(timeout=time_limit)
            except (Empty, BrokenPipeError):
                self.stop()
                raise DataError(
                    f"{request['path']} could not be examined within {time_limit:g} s: it is damaged, or on a very "
                    "slow disk."
                ) from None
            if answer is None:
                code = process.wait()
                self.stop()
                what = (
                    f"kept the library that reads it busy for more than {request['seconds']} s"
                    if code == -OUT_OF_SECONDS
                    else f"crashed the library that reads it (exit code {code})"
                )
                raise DataError(f"{request['path']} {what}: it is damaged or hostile.")
            if answer[0].get("bytes", 0) > most:  # which are still to come
                self.stop()
            return answer

    def stop(self) -> None:
        """End the process, if there is one."""
        process, self.process = self.process, None
        if process is not None and self.owner == os.getpid():
            process.kill()
            process.communicate()

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.owner != os.getpid() or self.process.poll() is not None:
            self.stop()
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", BOOT, str(Path(__file__).parents[2])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
            self.owner = os.getpid()
        return self.process


def _answer(stream: Any, most: int) -> tuple[Record, np.ndarray] | None:
    """A line, and as many bytes as it announces; None if the process that wrote them has ended."""
    if not (line := stream.readline()):
        return None
    answer = json.loads(line)
    if (size := answer.get("bytes", 0)) > most:
        why = f"becomes {size} bytes, more than the {most} that are expected of it"
        return {"error": why, "bytes": size}, np.empty(0, np.uint8)
    data = np.empty(size, np.uint8)
    return (answer, data) if stream.readinto(data) == size else None


@lru_cache(maxsize=1)
def _child() -> Child:
    child = Child()
    atexit.register(child.stop)
    return child


# Arrays that can only be read whole, because they are compressed in one piece: compressed NPZ, MATLAB version 5.
#
# They are kept in memory once read, at most two of them, and refused if they are too large for that: 512 MiB, or 16
# times the bytes of the file, up to 4 GiB.

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


# What is in a file, found by a child process (`ssno.data.sandbox.parent`) before this process touches it.
#
# It is a `Contents`: the arrays of the file, ready to be read lazily.

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
    stamp = stamp_of(path)
    if stamp.size == 0:
        raise DataError(f"{path} is empty.")
    stamp.check()
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
