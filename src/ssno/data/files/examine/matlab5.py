"""List the numeric arrays of a MATLAB file of version 5 (versions 7.3 and later are HDF5 files)."""

import os

import numpy as np
from scipy.io import whosmat

from ssno.data.files.examine.report import Record, Report

HEADER = 128
TYPES = {"double": "<f8", "single": "<f4", "int8": "<i1", "int16": "<i2", "int32": "<i4", "int64": "<i8"}
TYPES |= {f"u{name}": code.replace("i", "u") for name, code in TYPES.items() if name.startswith("int")}


def examine_matlab5(path: str, budget: int) -> Record:
    """Names, shapes and types from the headers; cells, structures, text and objects are refused."""
    check_elements(path)
    report = Report("matlab", budget)
    for name, shape, kind in whosmat(path, appendmat=False):
        if kind in TYPES:
            report.add(name, tuple(shape), np.dtype(TYPES[kind]), variable=name)
        else:
            report.refuse(name, f"is of MATLAB class {kind!r}, not an array of numbers")
    return report.answer


def check_elements(path: str) -> None:
    """Every variable is a tag (type, bytes) of 8 bytes and that many bytes; all must lie within the file."""
    size, position = os.path.getsize(path), HEADER
    with open(path, "rb") as file:
        order = "<u4" if file.read(HEADER)[-2:] == b"IM" else ">u4"
        while position < size:
            file.seek(position)
            tag = file.read(8)
            if len(tag) < 8:
                raise ValueError("the file ends within a tag")
            position += 8 + int(np.frombuffer(tag, order)[1])
    if position > size:
        raise ValueError(f"a variable needs {position} bytes, the file has {size}")
