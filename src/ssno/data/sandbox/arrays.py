"""Find the arrays of NPY and NPZ files from their headers. No pickles, no memory for the numbers themselves."""

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from math import prod
from typing import BinaryIO

import numpy as np
from scipy.io import loadmat, netcdf_file, whosmat

from ssno.data.errors import DataError
from ssno.data.sandbox.report import MAX_OBJECTS, SLAB, Record, Report, plain, read_through, whole_limit, why_not

# Find the variables of a classic (version 3) NetCDF file.


def examine_netcdf3(path: str, budget: int) -> Record:
    """The variables of a classic NetCDF file, each at its place in the file."""
    report = Report("netcdf3", budget)
    with netcdf_file(path, "r", mmap=True) as file:
        report.answer["groups"][""] = {key: plain(value) for key, value in vars(file)["_attributes"].items()}
        for name, variable in file.variables.items():
            data = variable.data
            if why := why_not(data.dtype):
                report.refuse(name, why)
                continue
            base = data
            while isinstance(base.base, np.ndarray):
                base = base.base
            attributes = {key: plain(value) for key, value in vars(variable)["_attributes"].items()}
            offset = int(data.__array_interface__["data"][0] - base.__array_interface__["data"][0])
            dims = [str(dim) for dim in variable.dimensions]
            read_through(data, data.dtype.itemsize, report)
            more = {"offset": offset, "strides": list(data.strides), "dims": dims, "attributes": attributes}
            report.add(name, data.shape, data.dtype, **more)
            del data, base, variable
    return report.answer


FAILURES = (ValueError, OSError, RuntimeError, NotImplementedError, EOFError, zipfile.BadZipFile, zlib.error)


def npy_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, Fortran order and type at the head of an NPY stream. Executes nothing."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(file)
    raise ValueError(f"NPY version {version}")


def c_or_fortran(shape: tuple[int, ...], fortran: bool, itemsize: int) -> list[int]:
    """Byte strides of an array stored in either order."""
    order = range(len(shape)) if fortran else reversed(range(len(shape)))
    strides, step = [0] * len(shape), itemsize
    for axis in order:
        strides[axis] = step
        step *= shape[axis]
    return strides


def examine_npy(path: str, budget: int) -> Record:
    """One array in an NPY file."""
    report = Report("npy", budget)
    with open(path, "rb") as file:
        shape, fortran, dtype = npy_header(file)
        offset = file.tell()
    place(report, "array", shape, fortran, dtype, offset=offset, room=os.path.getsize(path) - offset)
    return report.answer


def place(
    report: Report, name: str, shape: tuple[int, ...], fortran: bool, dtype: np.dtype, *, offset: int, room: int
) -> None:
    """List plain numbers that lie at `offset` with `room` bytes for them."""
    if why := why_not(dtype):
        report.refuse(name, why)
        return
    size = prod(shape) * dtype.itemsize
    if min(shape, default=1) < 0 or size > room:
        report.refuse(name, f"is incomplete: {dtype} {shape} needs {size} bytes, {room} are there")
        return
    strides = c_or_fortran(shape, fortran, dtype.itemsize)
    report.add(name, shape, dtype, offset=offset, strides=strides)


def place_of(info: zipfile.ZipInfo, raw: BinaryIO) -> tuple[int, int]:
    """Where the bytes of an uncompressed member of a ZIP file begin, and how many are there."""
    raw.seek(info.header_offset + 26)
    offset = info.header_offset + 30 + int(np.frombuffer(raw.read(4), "<u2").sum())
    return offset, min(info.file_size, os.fstat(raw.fileno()).st_size - offset)


def examine_npz(path: str, budget: int) -> Record:
    """The NPY members of a ZIP file. Members stored without compression can be read in place."""
    report = Report("npz", budget)
    with zipfile.ZipFile(path) as archive, open(path, "rb") as raw:
        members = archive.infolist()
        if len(members) > MAX_OBJECTS:
            raise ValueError(f"more than {MAX_OBJECTS} members")
        for info in members:
            name = info.filename.removesuffix(".npy")
            try:
                examine_member(name, info, archive, raw, report)
            except FAILURES as error:
                report.refuse(name, f"cannot be read: {error}")
    return report.answer


def examine_member(name: str, info: zipfile.ZipInfo, archive: zipfile.ZipFile, raw: BinaryIO, report: Report) -> None:
    """One member of an NPZ file: its header, its checksum while the budget lasts, and where it is."""
    if info.file_size > 1040 * info.compress_size + 1024:
        report.refuse(name, f"claims {info.file_size} bytes from {info.compress_size}: more than ZIP can compress")
        return
    with archive.open(info) as file:
        shape, fortran, dtype = npy_header(file)  # type: ignore[arg-type]
        header = file.tell()
        while report.budget > 0 and (piece := file.read(SLAB)):
            report.budget -= len(piece)
    if info.compress_type == zipfile.ZIP_STORED:
        offset, room = place_of(info, raw)
        place(report, name, shape, fortran, dtype, offset=offset + header, room=room - header)
    else:
        before = len(report.answer["arrays"])
        place(report, name, shape, fortran, dtype, offset=header, room=info.file_size - header)
        if len(report.answer["arrays"]) > before:
            report.answer["arrays"][-1]["member"] = info.filename


# List the numeric arrays of a MATLAB file of version 5 (versions 7.3 and later are HDF5 files).

HEADER = 128
MOST_INFLATED = 1040  # bytes that one byte becomes; the smallest numbers are stored in one
HEAD = 4096  # bytes of a variable that hold its type, its shape, its name and the tag of its numbers
COMPRESSED = 15
TYPES = {"double": "<f8", "single": "<f4", "int8": "<i1", "int16": "<i2", "int32": "<i4", "int64": "<i8"}
TYPES |= {f"u{name}": code.replace("i", "u") for name, code in TYPES.items() if name.startswith("int")}


def examine_matlab5(path: str, budget: int) -> Record:
    """Names, shapes and types from the headers; cells, structures, text and objects are refused."""
    check_elements(path)
    report = Report("matlab", budget)
    for name, shape, kind in whosmat(path, appendmat=False):
        if min(shape) < 0 or prod(shape) > MOST_INFLATED * os.path.getsize(path):
            report.refuse(name, f"has shape {tuple(shape)}, more numbers than a file of this size can hold")
        elif kind in TYPES:
            report.add(name, tuple(shape), np.dtype(TYPES[kind]), variable=name)
        else:
            report.refuse(name, f"is of MATLAB class {kind!r}, not an array of numbers")
    return report.answer


def read_matlab5(path: str, name: str) -> np.ndarray:
    """A variable of a file that was examined, in the type that it has: MATLAB stores small numbers in small types."""
    try:
        return np.asarray(loadmat(path, appendmat=False, variable_names=[name], mat_dtype=True)[name])
    except MemoryError:
        raise
    except Exception as error:  # whatever trips over a damaged file, the file is at fault
        raise DataError(f"Cannot read {name!r} in {path}: {type(error).__name__}: {error}") from error


def check_elements(path: str) -> None:
    """Every variable is a tag (type, bytes) of 8 bytes and that many bytes; all must lie within the file.

    A compressed variable says inside how many bytes it becomes, once for everything and once for its numbers.
    """
    size, position = os.path.getsize(path), HEADER
    with open(path, "rb") as file:
        order = "<" if file.read(HEADER)[-2:] == b"IM" else ">"
        while position < size:
            file.seek(position)
            tag = file.read(8)
            if len(tag) < 8:
                raise ValueError("the file ends within a tag")
            kind, length = struct.unpack(f"{order}2I", tag)
            if kind == COMPRESSED:
                claimed = max(claims(zlib.decompressobj().decompress(file.read(min(length, HEAD)), HEAD), order))
                if claimed > whole_limit(size):
                    raise ValueError(f"a variable claims {claimed} bytes, too many for a file of {size} bytes")
            position += 8 + length
    if position > size:
        raise ValueError(f"a variable needs {position} bytes, the file has {size}")


def claims(head: bytes, order: str) -> Iterator[int]:
    """How many bytes a variable claims to have, from its first bytes: in all, then part by part."""
    position = 0
    while position + 8 <= len(head):
        kind, length = struct.unpack_from(f"{order}2I", head, position)
        short = kind >> 16  # up to four bytes are stored within the tag
        yield short or length
        position += 8 if short or not position else 8 + length + -length % 8
