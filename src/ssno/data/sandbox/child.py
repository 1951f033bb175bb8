"""The process that opens a foreign file first, so that a crash of a C library is a crash of nobody else.

It reads one JSON request per line and answers with one JSON line. Asked to examine a file, it lists the arrays that can
be read (name, shape, type, attributes, names of axes and, for plain files, where the numbers are) and those that will
not be, with the reason. Asked to read numbers that must be decoded (CSV, MATLAB's, VTK's XML, chunks of a Zarr store),
it sends them behind that line. The system limits its memory and its computing, its parent
(`ssno.data.sandbox.parent`) its time and the bytes it may send.
"""

import json
import math
import os
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np

from ssno.base.json_io import DocumentError
from ssno.data.errors import DataError
from ssno.data.sandbox.arrays import examine_matlab5, examine_netcdf3, examine_npy, examine_npz, read_matlab5
from ssno.data.sandbox.csv_text import SUFFIXES, examine_csv, read_numbers
from ssno.data.sandbox.hdf5 import examine_hdf5
from ssno.data.sandbox.report import FORMATS, Record
from ssno.data.sandbox.torch_file import examine_torch
from ssno.data.sandbox.vtk_xml import read_vtk
from ssno.data.sandbox.zarr_store import examine_zarr, read_zarr

try:
    import resource
except ImportError:  # Windows: the parent's clock is the only limit there
    resource = None  # type: ignore[assignment]

LONGEST = 64 * 2**20  # bytes of a line: a small file may describe itself at any length


def examine(path: str, budget: int) -> Record:
    """Recognise a container by its first bytes (a Zarr store is a folder, PyTorch's are ZIP files) and list it."""
    if os.path.isdir(path):
        return examine_zarr(path)
    with open(path, "rb") as file:
        head = file.read(20)
    kind, examiner = "HDF5", examine_hdf5
    if head.startswith(b"\x93NUMPY"):
        kind, examiner = "NPY", examine_npy
    elif path.endswith(".pt"):
        if not head.startswith(b"PK"):
            return {
                "error": "is not a ZIP file, as torch.save writes since PyTorch 1.6; save it again with a newer one"
            }
        kind, examiner = "a PyTorch file of tensors", examine_torch
    elif path.lower().endswith(SUFFIXES):
        kind, examiner = "CSV", examine_csv
    elif head.startswith(b"PK"):
        kind, examiner = "NPZ", examine_npz
    elif head.startswith((b"CDF\x01", b"CDF\x02")):
        kind, examiner = "NetCDF", examine_netcdf3
    elif head.startswith(b"MATLAB 5.0 MAT-file"):
        kind, examiner = "MATLAB", examine_matlab5
    elif not h5py.is_hdf5(path):
        return {"error": f"is not an {FORMATS} file"}
    try:
        return examiner(path, budget)
    except (DataError, MemoryError):
        raise
    except Exception as error:  # whatever trips over a damaged file, the file is at fault
        return {"error": f"cannot be read as {kind}, it is damaged or incomplete ({type(error).__name__}: {error})"}


def read(request: Record) -> Mapping[str, np.ndarray]:
    """The numbers that a request names."""
    path = request["path"]
    if request["read"] == "csv":
        return {"table": read_numbers(Path(path))}
    if request["read"] == "vtk":
        return read_vtk(path).arrays()
    if request["read"] == "matlab":
        return {request["key"]: read_matlab5(path, request["key"])}
    selection = tuple(slice(*numbers) for numbers in request["selection"])
    return {request["key"]: read_zarr(path, request["key"], selection)}


def reply(request: Record) -> tuple[Record, list[np.ndarray]]:
    """The answer to a request, and the numbers that follow it. Whatever is wrong with the file is an answer, too."""
    try:
        if "read" not in request:
            return examine(request["path"], request["budget"]), []
        found = {name: np.ascontiguousarray(values) for name, values in read(request).items()}
        listed = [[name, values.shape, values.dtype.str] for name, values in found.items()]
        return {"arrays": listed, "bytes": sum(values.nbytes for values in found.values())}, list(found.values())
    except (DataError, DocumentError) as error:  # sentences of ours, which name the file
        return {"sentence": str(error)}, []
    except ImportError as error:
        return {"missing": str(error)}, []
    except MemoryError:
        return {"error": "asks for more memory than a file of its size may take: it is damaged or hostile"}, []
    except OSError as error:
        return {"error": f"cannot be opened: {error.strerror}"}, []


def limit_memory(size: int) -> None:
    """Let the system refuse what a damaged file might ask for; files mapped into memory do not count."""
    if resource is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (size, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_seconds(seconds: int) -> None:
    """Let the system end this process when it has computed for so long from now: a busy machine does not count."""
    if resource is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + seconds, hard))


def main() -> None:
    """Answer requests until the parent closes the pipe."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing else may speak on the channel of answers
    for line in sys.stdin:
        request = json.loads(line)
        limit_memory(request["memory"])
        limit_seconds(request["seconds"])
        answer, numbers = reply(request)
        text = json.dumps(answer)
        if len(text) > LONGEST:
            text, numbers = json.dumps({"error": f"describes itself in more than {LONGEST} bytes: it is hostile"}), []
        answers.write(text.encode() + b"\n")
        for values in numbers:
            answers.write(values.data.cast("B") if values.size else b"")
        answers.flush()
