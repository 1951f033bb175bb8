"""Which engine computes the layers: the fused native one, or plain PyTorch.

    auto     fused where it can be built and the tensors fit (float32 on the CPU), else PyTorch      the default
    fused    fused, or an error that says what is missing
    torch    PyTorch always, with backward passes of our own that keep little
    plain    PyTorch operations written out, for whatever transforms them: compilers, `vmap`, derivatives of derivatives

    with use("torch"):
        loss = model(frames)...

All give the same answers and gradients to rounding, each the same bits run after run. While PyTorch compiles, exports
or transforms a model (`vmap`, `jacrev`, `jvp` of `torch.func`), and under `torch.autocast`, the engine is plain,
whatever was chosen; derivatives of derivatives (`create_graph=True`) are written out in the backward pass
(`ssno.native.twice`).
"""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Literal, get_args

import torch
from torch import Tensor

from ssno.native.operations import available

Engine = Literal["auto", "fused", "torch", "plain"]

_engine: contextvars.ContextVar[Engine] = contextvars.ContextVar("engine", default="auto")


@contextlib.contextmanager
def use(engine: Engine) -> Iterator[None]:
    """Compute with this engine inside the `with` block."""
    if engine not in get_args(Engine):
        raise ValueError(f"`engine` must be one of {', '.join(map(repr, get_args(Engine)))}, got {engine!r}.")
    if engine == "fused" and not available():
        raise RuntimeError("The fused engine cannot be loaded; the log says why. Use engine='auto' or 'torch'.")
    token = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(token)


def chosen_engine() -> Engine:
    """What was chosen; `plain` and `fused` say what that means here and now."""
    return _engine.get()


def plain() -> bool:
    """Whether operations are to be written out."""
    return (
        torch.compiler.is_compiling()  # first: a compiler cannot read the choice below
        or torch.compiler.is_exporting()
        or _engine.get() == "plain"
        or torch._C._are_functorch_transforms_active()
        or any(torch.is_autocast_enabled(device) for device in ("cpu", "cuda"))  # two precisions meet
    )


def fused(*tensors: Tensor) -> bool:
    """Whether the native operations are to compute on these tensors."""
    if plain() or _engine.get() == "torch":
        return False
    fit = available(*tensors)
    if not fit and _engine.get() == "fused" and all(tensor.numel() for tensor in tensors):  # or nothing to compute
        got = ", ".join(f"{tensor.dtype} on {tensor.device} of shape {tuple(tensor.shape)}" for tensor in tensors)
        raise ValueError(
            f"The fused engine takes float32 numbers on the CPU, got {got}. Use engine='auto', which "
            "leaves other tensors to PyTorch."
        )
    return fit
