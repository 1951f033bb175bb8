"""The roofline: how fast this machine multiplies large float32 matrices, which is what training could reach at most."""

import time
from collections.abc import Callable

import torch
from torch import Tensor

from ssno.base.device import threads as using

SIZE = 1536


def matrix_product(size: int) -> Callable[[], Tensor]:
    """A product of two square matrices that are made once: 2 size^3 operations per call."""
    a, b = (torch.full((size, size), value) for value in (0.5, 0.25))
    out = torch.empty(size, size)
    return lambda: torch.mm(a, b, out=out)


def gemm_peak(*, threads: int, size: int = SIZE, repeats: int = 20) -> float:
    """GFLOP/s of the fastest of some products."""
    with using(threads):
        product, fastest = matrix_product(size), float("inf")
        for _ in range(repeats):
            started = time.perf_counter()
            product()
            fastest = min(fastest, time.perf_counter() - started)
    return 2e-9 * size**3 / fastest
