"""What a model computes from its weights and a grid alone, kept between predictions until a weight changes.

In evaluation mode without gradients a model asks here first. What is kept is valid as long as every parameter and
buffer is the same tensor, in the same memory, with the same version: PyTorch counts every operation that writes to a
tensor, so in-place edits, optimiser steps, `load_state_dict`, moves and replaced parameters are all seen. **Not seen**
are writes behind PyTorch's back: through `parameter.data`, a NumPy view, or another process's shared memory. Call
`model.train()`, or `forget`, after such a write.

A copy of a model starts with nothing kept. Threads may share a model: entries are replaced whole, never changed.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

MOST_ENTRIES = 4
"""Grids and numbers of frames remembered at a time, the latest ones."""


class _Entry(NamedTuple):
    tensors: tuple[Tensor, ...]
    """Aliases of the weights: they share versions, and hold the memory so that no other tensor can take its place."""
    versions: tuple[int, ...]
    value: Any


class KeptWeights:
    """A small cache beside a module; see the file's words on what it notices."""

    def __init__(self) -> None:
        self.entries: dict[Hashable, _Entry] = {}

    def get(self, module: nn.Module, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value kept under `key` if no weight of `module` has changed since, else a new one."""
        tensors: list[Tensor] = []
        _collect(module, tensors)
        try:
            versions = tuple(tensor._version for tensor in tensors)
            entry = self.entries.get(key)
            if entry is not None and entry.versions == versions and _same_memory(entry.tensors, tensors):
                return entry.value
            aliases = tuple(tensor.detach() for tensor in tensors)
            _same_memory(aliases, tensors)
        except RuntimeError:  # no versions (inference mode) or no memory (fake tensors): nothing can be checked
            return make()
        value = make()
        kept = {name: other for name, other in self.entries.items() if name != key and other.versions == versions}
        self.entries = {**dict(list(kept.items())[1 - MOST_ENTRIES :]), key: _Entry(aliases, versions, value)}
        return value

    def forget(self) -> None:
        """Keep nothing."""
        self.entries = {}

    def __deepcopy__(self, memo: Any) -> "KeptWeights":
        return KeptWeights()

    def __reduce__(self) -> Any:
        return KeptWeights, ()


def _collect(module: nn.Module, into: list[Tensor]) -> None:
    """All parameters and buffers; `module.parameters()` takes ten times as long."""
    for own in (module._parameters, module._buffers):
        into.extend(tensor for tensor in own.values() if tensor is not None)
    for child in module._modules.values():
        if child is not None:
            _collect(child, into)


def _same_memory(some: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    return len(some) == len(others) and all(a.data_ptr() == b.data_ptr() for a, b in zip(some, others, strict=True))


def may_keep(module: nn.Module) -> bool:
    """Whether predictions of this module may use what is kept."""
    return not (module.training or torch.is_grad_enabled())
