"""What an examiner writes down about a file, and what it refuses to read."""

from math import prod
from typing import Any

import numpy as np

MAX_OBJECTS = 10_000
LONGEST_AXIS = 2**26
SLAB = 16 * 2**20
WHOLE = 512 * 2**20  # bytes of an array that is compressed in one piece and can only be read whole
WHOLE_LIMIT = 4 * 2**30  # the same for files that are large themselves, so that nothing small becomes huge
INFLATION = 16  # times the bytes of such a file

Record = dict[str, Any]
FORMATS = "HDF5, NetCDF, NPY, NPZ, MATLAB, CSV or PyTorch"
"""Files that `examine` recognises; help texts and pages quote it (tests/cli/test_data_inspect.py)."""


class Report:
    """What was found in a file, and how many bytes may still be read through; with none at all, nothing is."""

    def __init__(self, kind: str, budget: int):
        self.answer: Record = {"kind": kind, "arrays": [], "groups": {}, "refused": {}}
        self.budget = budget
        self.reads = budget > 0
        self.names: set[str] = set()

    def add(self, name: str, shape: tuple[int, ...], dtype: np.dtype, **more: Any) -> None:
        """An array that may be read, unless its shape alone would fill the memory: times, places, lists of rows."""
        if max(shape, default=0) > LONGEST_AXIS:
            self.refuse(name, f"has shape {tuple(shape)}; axes of more than {LONGEST_AXIS} numbers are not read")
        elif self._is_new(name):
            record = {"name": name, "shape": [int(n) for n in shape], "dtype": dtype.str, "attributes": {}, "dims": []}
            self.answer["arrays"].append(record | more)

    def refuse(self, name: str, why: str) -> None:
        """Something that may not."""
        if self._is_new(name):
            self.answer["refused"][name] = why

    def _is_new(self, name: str) -> bool:
        """Whether a name occurs for the first time; of two arrays with one name nobody knows which is meant."""
        if name not in self.names:
            self.names.add(name)
            return True
        self.answer["arrays"] = [record for record in self.answer["arrays"] if record["name"] != name]
        self.answer["refused"][name] = "occurs more than once in the file"
        return False


def why_not(dtype: np.dtype) -> str | None:
    """Why numbers of this type are not read, or None if they are."""
    if dtype.hasobject:
        return "holds Python objects, references or strings of varying length"
    if dtype.kind not in "fiub" or dtype.itemsize > 8:
        return f"holds {dtype}, not real numbers"
    return None


def plain(value: Any) -> Any:
    """An attribute as JSON, or None if it has no plain form."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()] if value.ndim else plain(value[()])
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) else None


def whole_limit(stored: int) -> int:
    """Bytes that an array of a file of `stored` bytes may have if it can only be read whole."""
    return min(WHOLE_LIMIT, max(WHOLE, INFLATION * stored))


def read_through(array: Any, itemsize: int, report: Report) -> None:
    """Read an array slab by slab while the budget lasts, then its last slab."""
    if not report.reads:
        return
    if array.ndim == 0:
        array[()]
        return
    row = max(1, itemsize * prod(array.shape[1:]))
    if row > 4 * SLAB:  # one row is too much: its corner says whether the first chunk can be read
        array[(slice(0, 1),) * array.ndim]
        return
    rows = max(1, SLAB // row)
    for start in range(0, array.shape[0], rows):
        report.budget -= row * len(array[start : start + rows])
        if report.budget < 0:
            array[max(0, array.shape[0] - rows) :]
            return
