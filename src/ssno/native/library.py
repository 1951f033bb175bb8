"""The native library of the fused engine: built on demand, given PyTorch's own matrix product.

Without a compiler one line of log says so, and `load` returns None: callers then take plain PyTorch. Where PyTorch
exports no matrix product (builds without MKL: ARM, macOS), the library takes its own (`product.h`).
"""

import ctypes
import functools
import logging
import os
from pathlib import Path
from typing import Any

import torch

from ssno.native.build import SWITCH, library

log = logging.getLogger("ssno")

SOURCES = tuple(
    Path(__file__).with_name(name)
    for name in (
        "scan.cpp",
        "pointwise.cpp",
        "scan_tiles.cpp",
        "pointwise_tiles.cpp",
        "sampling.cpp",
        "arithmetic.h",
        "blocks.h",
        "product.h",
        "tiles.h",
    )
)
TILED_KINDS = {torch.float32: 1, torch.bfloat16: 2}
"""Bits of `tiled_kinds`."""


def load() -> ctypes.CDLL | None:
    """The library, ready for calls; None without it, after one line of log, or with SSNO_NATIVE=0."""
    return None if os.environ.get(SWITCH) == "0" else _loaded()


@functools.cache
def _loaded() -> ctypes.CDLL | None:
    found = library(*SOURCES)
    if found is not None:
        bind(found, *matrix_product())
    return found


def tiled(kind: torch.dtype) -> bool:
    """Whether products of such numbers are computed in tiles (`tiles.h`): AVX-512, for bfloat16 AVX512-BF16."""
    found = load()
    return found is not None and bool(found.tiled_kinds() & TILED_KINDS.get(kind, 0))


def matrix_product() -> tuple[Any, Any]:
    """PyTorch's own matrix product and the switch that keeps it on one thread; None for both if either is missing."""
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib", "torch_cpu.dll"):
        path = Path(torch.__file__).parent / "lib" / name
        if path.exists():
            try:
                blas = ctypes.CDLL(str(path))
                return blas.sgemm_, blas.MKL_Set_Num_Threads_Local
            except (OSError, AttributeError) as reason:
                log.info("The fused engine multiplies matrices by itself, more slowly: %s", reason)
    return None, None


def bind(library: ctypes.CDLL, product: Any, threads: Any) -> None:
    """Give the library a matrix product and its switch; without them it takes its own."""
    library.bind(*(None if f is None else ctypes.cast(f, ctypes.c_void_p) for f in (product, threads)))
