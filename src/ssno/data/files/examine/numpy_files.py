"""Find the arrays of NPY and NPZ files from their headers. No pickles, no memory for the numbers themselves."""

import os
import zipfile
import zlib
from math import prod
from typing import BinaryIO

import numpy as np

from ssno.data.files.examine.report import MAX_OBJECTS, SLAB, Record, Report, why_not

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
        raw.seek(info.header_offset + 26)
        lengths = np.frombuffer(raw.read(4), "<u2")
        offset = info.header_offset + 30 + int(lengths.sum()) + header
        room = min(info.file_size - header, os.fstat(raw.fileno()).st_size - offset)
        place(report, name, shape, fortran, dtype, offset=offset, room=room)
    else:
        before = len(report.answer["arrays"])
        place(report, name, shape, fortran, dtype, offset=header, room=info.file_size - header)
        if len(report.answer["arrays"]) > before:
            report.answer["arrays"][-1]["member"] = info.filename
