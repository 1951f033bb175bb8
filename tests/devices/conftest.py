"""A pretended GPU: numbers on the CPU that say they are elsewhere, so that wrong devices show without the hardware.

PyTorch's fake tensors hold no numbers, and on a build without CUDA their backward pass does not run. Here every tensor
of the device "gpu:0" wraps one on the CPU which does the work; operations that mix the two kinds raise as CUDA's do.
Whole trainings run on it, and end as those on the CPU.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import backend_registration, checkpoint
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

MOVES = ("aten::_to_copy", "aten::copy_")
TAKES_INDICES = ("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index")

# A sign that is only noted on a tensor is not seen by what is called from below.
AT_ONCE = {
    torch.ops.aten._conj.default: torch.ops.aten.conj_physical.default,
    torch.ops.aten._neg_view.default: torch.ops.aten.neg.default,
}


class Away(Tensor):
    """A tensor that says it is on the pretended device; `here` holds its numbers."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> "Away":
        away = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, here.shape, strides=here.stride(), dtype=here.dtype, device=torch.device("gpu:0")
        )
        away.here = here
        return away

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"{self.here!r} on gpu:0"

    def tolist(self) -> Any:
        return self.here.tolist()

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(operation, args, kwargs or {})


class Pretending(TorchDispatchMode):
    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(operation, args, kwargs or {})


def compute(operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Do on the CPU what was asked of either device, and say where the result is."""
    given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
    away = [tensor for tensor in given if isinstance(tensor, Away)]
    name = operation._schema.name
    left = [tuple(tensor.shape) for tensor in given if tensor.ndim and not isinstance(tensor, Away)]
    if away and left and name not in MOVES + TAKES_INDICES:
        raise RuntimeError(f"{operation}: tensors on gpu:0 and on the CPU, the latter of shape {left}")
    target = kwargs.get("device")
    if target is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
        goes = torch.device(target).type == "gpu"
    else:
        goes = isinstance(args[0], Away) if name == "aten::copy_" else bool(away)
    args, kwargs = tree_map(lambda value: value.here if isinstance(value, Away) else value, (args, kwargs))
    known = {id(tensor.here): tensor for tensor in away}  # operations in place give back what they were given

    def placed(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        return known.get(id(value)) if id(value) in known else Away(value) if goes else value

    return tree_map(placed, AT_ONCE.get(operation, operation)(*args, **kwargs))


class Hooks(torch._C._acc.PrivateUse1Hooks):
    """What PyTorch asks of the device: it is there while a test that uses it runs."""

    there = False

    def is_available(self) -> bool:
        return Hooks.there

    def is_built(self) -> bool:
        return True

    def has_primary_context(self, number: int) -> bool:
        return Hooks.there


class Module(backend_registration._DummyBackendModule):
    """What would be `torch.cuda`."""

    def is_available(self) -> bool:
        return Hooks.there

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


@cache
def make_device() -> None:
    """Give PyTorch a device called "gpu", once per process."""
    backend_registration._setup_privateuseone_for_python_backend("gpu", backend_module=Module(), hook=Hooks())


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """The pretended device, while a test runs."""
    make_device()
    future = torch.__future__
    overwrite = future.get_overwrite_module_params_on_conversion()
    future.set_overwrite_module_params_on_conversion(True)  # a parameter cannot change its class in place
    # Tensors made for inference share no views with others, which tensors that wrap tensors cannot keep to.
    monkeypatch.setattr(torch._C, "_InferenceMode", lambda mode: torch.no_grad())
    monkeypatch.setattr(Hooks, "there", True)
    monkeypatch.setattr(checkpoint.DefaultDeviceType, "_default_device_type", "gpu")  # remembered otherwise
    with Pretending():
        yield torch.device("gpu:0")
    future.set_overwrite_module_params_on_conversion(overwrite)
