"""Peak memory of a computation: the most bytes of new tensors alive at one moment.

Every tensor that torch creates is followed until its memory is freed, so the figure is exact, the same on every machine
and free of the noise of process-wide measures. It counts what the computation adds: activations, saved tensors,
gradients. Parameters and inputs exist before, and scratch space inside a single torch operation is not seen.
"""

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def peak_memory(run: Callable[[], object]) -> int:
    """Call `run` and give the peak, in bytes. What `run` returns is alive until it ends."""
    follower = _Follower()
    with follower:
        kept = run()
    del kept
    return follower.peak


class _Follower(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self.followed: dict[int, Any] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = {id(storage) for storage in _storages((args, kwargs))}
        out = func(*args, **(kwargs or {}))
        for storage in _storages(out):
            if id(storage) not in given and id(storage) not in self.followed:
                self._follow(storage)
        return out

    def _follow(self, storage: Any) -> None:
        key, size = id(storage), storage.nbytes()
        self.followed[key] = weakref.finalize(storage, self._forget, key, size)
        self.now += size
        self.peak = max(self.peak, self.now)

    def _forget(self, key: int, size: int) -> None:
        self.now -= size
        del self.followed[key]


def _storages(tree: Any) -> list[Any]:
    return [leaf.untyped_storage() for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]
