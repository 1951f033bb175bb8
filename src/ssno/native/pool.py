"""Memory for large results of native operations, used again and again.

A fresh large tensor is memory that the system has to find and fill with zeros, page by page, at every training step.
Here memory that a tensor no longer needs is kept for the next one of its size, in huge pages where the system has them.
A tensor's memory comes back when its storage is gone, whoever held it: views, saved tensors, the user.
"""

import contextlib
import ctypes
import mmap
import weakref

import torch
from torch import Tensor

SMALLEST = 2**20
"""Bytes below which PyTorch's own memory serves as well."""
MOST_KEPT = 2**30
"""Bytes kept for later use."""
HUGE_PAGE = 2**21

_free: dict[int, list[mmap.mmap]] = {}


def fresh(*shape: int, like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """A new tensor with whatever is in its memory, of the dtype of `like` unless given."""
    dtype = like.dtype if dtype is None else dtype
    count = 1
    for size in shape:
        count *= size
    size = count * dtype.itemsize
    # What follows or pretends tensors (memory counts, fake tensors) is to see PyTorch's own.
    if size < SMALLEST or torch._C._len_torch_dispatch_stack() > 0:
        return like.new_empty(shape, dtype=dtype)
    rounded = -(-size // HUGE_PAGE) * HUGE_PAGE
    kept = _free.get(rounded)
    memory = kept.pop() if kept else _mapped(rounded)
    window = (ctypes.c_char * size).from_buffer(memory)  # PyTorch holds it as long as the storage lives
    weakref.finalize(window, _give_back, memory, rounded).atexit = False
    return torch.frombuffer(window, dtype=dtype, count=count).view(shape)


def _mapped(size: int) -> mmap.mmap:
    """Memory of this process alone: a fork gets a copy, as of every other tensor."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _give_back(memory: mmap.mmap, size: int) -> None:
    if sum(each * len(kept) for each, kept in _free.items()) + size <= MOST_KEPT:
        _free.setdefault(size, []).append(memory)


def forget() -> None:
    """Give all kept memory back to the system."""
    _free.clear()
