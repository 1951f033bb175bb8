"""Which engine computes the layers: the fused native one, or plain PyTorch.

    auto     fused where it can be built and the tensors fit (float32 on the CPU), else PyTorch      the default
    fused    fused, or an error
    torch    PyTorch always, with backward passes of our own that save few tensors
    plain    plain PyTorch operations, which compilers, `vmap` and double backward can transform

    with use("torch"):
        loss = model(frames)...

All give the same answers and gradients to rounding, each the same bits run after run. While PyTorch compiles, exports
or transforms a model (`vmap`, `jacrev`, `jvp` of `torch.func`), and under `torch.autocast`, the engine is plain,
whatever was chosen; double backward (`create_graph=True`) uses plain operations in the backward pass
(`ssno.native.operations`).
"""

import contextlib
import contextvars
import functools
import logging
from collections.abc import Iterator
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ssno.base.checks import require_one_of
from ssno.native.operations import available, available_bf16

Engine = Literal["auto", "fused", "torch", "plain"]
"""How operations are computed: native code where it is built, or PyTorch."""

_engine: contextvars.ContextVar[Engine] = contextvars.ContextVar("engine", default="auto")


@contextlib.contextmanager
def use(engine: Engine) -> Iterator[None]:
    """Compute with this engine inside the `with` block."""
    require_one_of("engine", engine, get_args(Engine))
    if engine == "fused" and not available():
        raise RuntimeError("The fused engine cannot be loaded; the log has the reason. Use engine='auto' or 'torch'.")
    token = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(token)


def plain() -> bool:
    """Whether to compute with plain PyTorch operations."""
    return (
        torch.compiler.is_compiling()  # or exporting; first, because a compiler cannot read the choice below
        or _engine.get() == "plain"
        or torch._C._are_functorch_transforms_active()
        or any(torch.is_autocast_enabled(device) for device in ("cpu", "cuda"))  # two precisions meet
    )


def fused(*tensors: Tensor) -> bool:
    """Whether to compute on these tensors with native operations."""
    if plain() or _engine.get() == "torch":
        return False
    fit = available(*tensors)
    if not fit and _engine.get() == "fused" and all(tensor.numel() for tensor in tensors):  # or nothing to compute
        got = ", ".join(f"{tensor.dtype} on {tensor.device} of shape {tuple(tensor.shape)}" for tensor in tensors)
        raise ValueError(
            f"The fused engine takes float32 tensors on the CPU, got {got}. Use engine='auto', which computes other "
            "tensors with PyTorch."
        )
    return fit


# The precision that a model computes in.
#
#     float32   the default
#     bf16      activations, and copies of the weights that multiply them, in bfloat16: 8 bits of
#               mantissa, half the memory
#     float64   everything in double precision: for science, several times slower
#
# In bf16 the weights themselves, the sampling of kernels, sums, the loss, the optimiser, normalisation and memory of
# past frames stay in float32. A model that can (`native_bf16`) casts its features itself and the fused engine
# multiplies them, on processors with AVX512-BF16. Everything else goes through `torch.autocast` and the plain engine;
# one line of log says so.
#
#     with computing(model, "bf16"):
#         answer = model(frames)

Precision = Literal["float32", "bf16", "float64"]

log = logging.getLogger("ssno")
_bf16_features: contextvars.ContextVar[bool] = contextvars.ContextVar("bf16_features", default=False)


def check_precision(precision: str) -> None:
    """Refuse an unknown precision."""
    require_one_of("precision", precision, get_args(Precision))


@contextlib.contextmanager
def computing(model: nn.Module, precision: Precision, *, device: torch.device | None = None) -> Iterator[None]:
    """Let a model compute with activations of this precision inside the `with` block; its weights stay as they are."""
    check_precision(precision)
    if precision != "bf16":
        yield
        return
    device = torch.device("cpu") if device is None else device
    if has_native_bf16(model, device):
        token = _bf16_features.set(True)
        try:
            yield
        finally:
            _bf16_features.reset(token)
        return
    _say_autocast(type(model).__name__, device.type)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        yield


def has_native_bf16(model: nn.Module, device: torch.device) -> bool:
    """Whether native code computes this model in bf16."""
    native = bool(getattr(model, "native_bf16", False)) and device.type == "cpu"
    return native and not plain() and _engine.get() != "torch" and available_bf16()


def to_activation_dtype(features: Tensor) -> Tensor:
    """Features in the precision of activations: bfloat16 inside `computing` with native code, else unchanged."""
    if torch.compiler.is_compiling() or not _bf16_features.get():  # a compiler cannot read a context variable
        return features
    return features.to(torch.bfloat16) if features.dtype == torch.float32 else features


@contextlib.contextmanager
def no_autocast(device: torch.device) -> Iterator[None]:
    """Without autocast inside: for what needs full precision, such as the sampling of kernels."""
    if device.type != "meta" and torch.is_autocast_enabled(device.type):
        with torch.autocast(device.type, enabled=False):
            yield
    else:
        yield


@functools.cache
def _say_autocast(model: str, device: str) -> None:
    if not torch.compiler.is_compiling():
        log.warning("bf16: %s is computed by torch.autocast on %s, not by native code.", model, device)
