"""List the numeric arrays of a MATLAB file of version 5 (versions 7.3 and later are HDF5 files)."""

import os
import struct
import zlib
from collections.abc import Iterator
from math import prod

import numpy as np
from scipy.io import loadmat, whosmat

from ssno.data.errors import DataError
from ssno.data.files.examine.report import Record, Report, whole_limit

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
