"""The native library of the fused engine: built on demand, given PyTorch's own matrix product.

When anything is missing (a compiler, the matrix product that PyTorch's library usually exports), one line of log says
so, and `load` returns None: callers then take plain PyTorch.
"""

import ctypes
import functools
import logging
import os
from pathlib import Path

import torch

from ssno.native.build import SWITCH, library

log = logging.getLogger("ssno")

SOURCES = tuple(Path(__file__).with_name(name) for name in ("scan.cpp", "pointwise.cpp", "arithmetic.h"))


def load() -> ctypes.CDLL | None:
    """The library, ready for calls; None without it, after one line of log, or with SSNO_NATIVE=0."""
    return None if os.environ.get(SWITCH) == "0" else _loaded()


@functools.cache
def _loaded() -> ctypes.CDLL | None:
    found = library(*SOURCES)
    if found is None:
        return None
    try:
        bind(found)
    except (OSError, AttributeError) as reason:
        log.warning("The fused engine is off, plain PyTorch takes over: no matrix product to call (%s)", reason)
        return None
    return found


def bind(library: ctypes.CDLL) -> None:
    """Give the library the matrix product that PyTorch uses, and the switch that keeps it on one thread."""
    blas = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    product, threads = blas.sgemm_, blas.MKL_Set_Num_Threads_Local
    library.bind(ctypes.cast(product, ctypes.c_void_p), ctypes.cast(threads, ctypes.c_void_p))
