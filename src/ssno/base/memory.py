"""Memory of a computation: the bytes of new tensors alive, now and at most.

Every tensor that torch creates is followed until its memory is freed, in forward and backward passes and inside custom
functions alike, so the figure is exact, the same on every machine and free of the noise of process-wide measures. It
counts what the computation adds: activations, saved tensors, gradients. Parameters and inputs exist before, and scratch
space inside a single torch operation is not seen.
"""

import os
import resource
import sys
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveMemory(TorchDispatchMode):
    """Inside this context, counts the bytes of all tensors that come to exist: `live` now, `peak` at most."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self._followed: dict[int, Any] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = {id(storage) for storage in _storages((args, kwargs))}
        result = func(*args, **(kwargs or {}))
        for storage in _storages(result):
            if id(storage) not in given and id(storage) not in self._followed:
                self._follow(storage)
        return result

    def _follow(self, storage: Any) -> None:
        key, size = id(storage), storage.nbytes()
        self._followed[key] = weakref.finalize(storage, self._forget, key, size)
        self.live += size
        self.peak = max(self.peak, self.live)

    def _forget(self, key: int, size: int) -> None:
        self.live -= size
        del self._followed[key]


def peak_memory(run: Callable[[], object]) -> int:
    """Call `run` and give the peak, in bytes. What `run` returns is alive until it ends."""
    with LiveMemory() as count:
        kept = run()
    del kept
    return count.peak


def _storages(tree: Any) -> list[Any]:
    return [leaf.untyped_storage() for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


# Memory as the operating system counts it: what this process holds and held, what is free, what there is. In bytes.


def most_held() -> int:
    """The most memory this process has held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def held() -> int:
    """Memory this process holds now; the most it has held where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return most_held()
    return pages * os.sysconf("SC_PAGE_SIZE")


def physical_memory() -> int:
    """All that the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def free_memory() -> int:
    """What new processes can have without swapping; all there is where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return physical_memory()
