"""The process that opens a foreign file first, so that a crash of a C library is a crash of nobody else.

It reads one JSON request per line, examines the file and answers with one JSON line: the arrays that can be read
(name, shape, type, attributes, names of axes and, for plain files, where the numbers are) and those that will not be,
with the reason. The system limits its memory, its parent (`ssno.data.probe`) its time.
"""

import json
import os
import sys
import warnings

import h5py

from ssno.data.examine.hdf5 import examine_hdf5
from ssno.data.examine.numpy_files import examine_npy, examine_npz
from ssno.data.examine.report import Record

MEMORY = 6 * 2**30


def examine(path: str, budget: int) -> Record:
    """Recognise a container by its first bytes and list it."""
    with open(path, "rb") as file:
        head = file.read(16)
    if head.startswith(b"\x93NUMPY"):
        return examine_npy(path, budget)
    if head.startswith(b"PK"):
        return examine_npz(path, budget)
    if head.startswith((b"CDF\x01", b"CDF\x02")):
        from ssno.data.examine.netcdf3 import examine_netcdf3  # SciPy takes a while to import

        return examine_netcdf3(path, budget)
    if h5py.is_hdf5(path):
        return examine_hdf5(path, budget)
    return {"error": "is not an HDF5, NetCDF, NPY or NPZ file"}


def limit_memory() -> None:
    """Let the system refuse what a damaged file might ask for. Not available on every system."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Answer requests until the parent closes the pipe."""
    warnings.simplefilter("ignore")
    limit_memory()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing else may speak on the channel of answers
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = examine(request["path"], request["budget"])
        except Exception as error:
            answer = {"error": f"cannot be read: {type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
