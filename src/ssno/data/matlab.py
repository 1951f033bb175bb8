"""Arrays of MATLAB files of version 5, whose variables are compressed and can only be read whole."""

import zlib
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from ssno.data.arrays import Selection, Stamp
from ssno.data.errors import DataError

MAX_BYTES = 4 * 2**30


@dataclass(frozen=True)
class MatlabArray:
    """A variable of a MATLAB file, kept in memory once read."""

    stamp: Stamp
    key: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def label(self) -> str:
        return f"{self.key!r} in {self.stamp.shown}"

    def read(self, selection: Selection) -> np.ndarray:
        self.stamp.check()
        size = prod(self.shape) * np.dtype(self.dtype).itemsize
        if size > MAX_BYTES:
            raise DataError(
                f"{self.label} takes {size / 2**30:.3g} GiB, and a MATLAB file of version 5 can only be read whole "
                f"(limit {MAX_BYTES / 2**30:g} GiB). Save it with -v7.3."
            )
        return _whole(self)[selection]


@lru_cache(maxsize=2)
def _whole(array: MatlabArray) -> np.ndarray:
    try:
        # mat_dtype: MATLAB stores small numbers in small types; ask for the type that the variable has.
        values = loadmat(array.stamp.path, appendmat=False, variable_names=[array.key], mat_dtype=True)[array.key]
    except (OSError, KeyError, ValueError, TypeError, EOFError, zlib.error, MatReadError) as error:
        raise DataError(f"Cannot read {array.label}: {error}") from error
    if values.shape != array.shape:
        raise DataError(f"{array.label} is {values.dtype} {values.shape}, expected {array.dtype} {array.shape}.")
    return values.astype(array.dtype, copy=False)
