"""The process that opens a foreign file first, so that a crash of a C library is a crash of nobody else.

It reads one JSON request per line, examines the file and answers with one JSON line: the arrays that can be read
(name, shape, type, attributes, names of axes and, for plain files, where the numbers are) and those that will not be,
with the reason. The system limits its memory and its computing, its parent (`ssno.data.files.probe`) its time.
"""

import json
import math
import os
import sys
import time
import warnings

import h5py

from ssno.data.files.examine.hdf5 import examine_hdf5
from ssno.data.files.examine.numpy_files import examine_npy, examine_npz
from ssno.data.files.examine.report import Record

try:
    import resource
except ImportError:  # Windows: the parent's clock is the only limit there
    resource = None  # type: ignore[assignment]

MEMORY = 768 * 2**20  # of its own; files mapped into memory do not count


def examine(path: str, budget: int) -> Record:
    """Recognise a container by its first bytes and list it."""
    with open(path, "rb") as file:
        head = file.read(20)
    kind, examiner = "HDF5", examine_hdf5
    if head.startswith(b"\x93NUMPY"):
        kind, examiner = "NPY", examine_npy
    elif head.startswith(b"PK"):
        kind, examiner = "NPZ", examine_npz
    elif head.startswith((b"CDF\x01", b"CDF\x02")):
        from ssno.data.files.examine.netcdf3 import examine_netcdf3  # SciPy takes a while to import

        kind, examiner = "NetCDF", examine_netcdf3
    elif head.startswith(b"MATLAB 5.0 MAT-file"):
        from ssno.data.files.examine.matlab5 import examine_matlab5

        kind, examiner = "MATLAB", examine_matlab5
    elif not h5py.is_hdf5(path):
        return {"error": "is not an HDF5, NetCDF, NPY, NPZ or MATLAB file"}
    try:
        return examiner(path, budget)
    except Exception as error:  # whatever trips over a damaged file, the file is at fault
        return {"error": f"cannot be read as {kind}, it is damaged or incomplete ({type(error).__name__}: {error})"}


def limit_memory() -> None:
    """Let the system refuse what a damaged file might ask for."""
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_seconds(seconds: int) -> None:
    """Let the system end this process when it has computed for so long from now: a busy machine does not count."""
    if resource is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + seconds, hard))


def main() -> None:
    """Answer requests until the parent closes the pipe."""
    warnings.simplefilter("ignore")
    limit_memory()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing else may speak on the channel of answers
    for line in sys.stdin:
        request = json.loads(line)
        limit_seconds(request["seconds"])
        try:
            answer = examine(request["path"], request["budget"])
        except OSError as error:
            answer = {"error": f"cannot be opened: {error.strerror}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
