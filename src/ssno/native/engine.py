"""Which engine computes the layers: the fused native one, or plain PyTorch.

    auto     fused where it can be built and the tensors fit (float32 on the CPU), else PyTorch      the default
    fused    fused, or an error
    torch    PyTorch always, with backward passes of our own that save few tensors
    plain    plain PyTorch operations, which compilers, `vmap` and double backward can transform
    triton   as torch, with gates in one kernel of Triton on CUDA (`ssno.layers.triton_gate`), where it is installed

    with use("torch"):
        loss = model(frames)...

For trainings, auto is the engine that `ssno doctor --check` measured to be the fastest on the device (`preferred`).

All give the same answers and gradients to rounding, each the same bits run after run. While PyTorch compiles, exports
or transforms a model (`vmap`, `jacrev`, `jvp` of `torch.func`), and under `torch.autocast`, the engine is plain,
whatever was chosen; double backward (`create_graph=True`) uses plain operations in the backward pass
(`ssno.native.operations`).
"""

import contextlib
import contextvars
import functools
import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ssno.base.checks import require_one_of
from ssno.base.device import available_devices, device_name
from ssno.base.json_io import DocumentError, read_document, write_document
from ssno.base.provenance import package_version
from ssno.native.build import cache_folder, check_folder, is_ours
from ssno.native.operations import available, available_bf16

Engine = Literal["auto", "fused", "torch", "plain", "triton"]
"""How operations are computed: native code where it is built, or PyTorch."""

_engine: contextvars.ContextVar[Engine] = contextvars.ContextVar("engine", default="auto")


@contextlib.contextmanager
def use(engine: Engine) -> Iterator[None]:
    """Compute with this engine inside the `with` block."""
    require_one_of("engine", engine, get_args(Engine))
    if engine == "fused" and not available():
        raise RuntimeError("The fused engine cannot be loaded; the log has the reason. Use engine='auto' or 'torch'.")
    if engine == "triton" and find_spec("triton") is None:
        raise RuntimeError("Engine 'triton' needs the package triton, which PyTorch's builds for CUDA bring along.")
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
    if plain() or _engine.get() in ("torch", "triton"):
        return False
    fit = available(*tensors)
    if not fit and _engine.get() == "fused" and all(tensor.numel() for tensor in tensors):  # or nothing to compute
        got = ", ".join(f"{tensor.dtype} on {tensor.device} of shape {tuple(tensor.shape)}" for tensor in tensors)
        raise ValueError(
            f"The fused engine takes float32 tensors on the CPU, got {got}. Use engine='auto', which computes other "
            "tensors with PyTorch."
        )
    return fit


def by_triton(*tensors: Tensor) -> bool:
    """Whether to compute on these tensors with kernels of Triton, which convert between two precisions themselves."""
    if torch.compiler.is_compiling() or _engine.get() != "triton" or torch._C._are_functorch_transforms_active():
        return False
    return all(
        type(tensor) in (Tensor, nn.Parameter)
        and tensor.dtype in (torch.float32, torch.bfloat16)
        and tensor.numel() > 0
        and runs_triton(tensor.device)
        for tensor in tensors
    )


def runs_triton(device: torch.device) -> bool:
    """Whether kernels of Triton run on a device: CUDA, or the CPU if they are interpreted."""
    runs = device.type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1"
    return runs and find_spec("triton") is not None


# The engine that trains fastest here, as `ssno doctor --check` measured it.
#
# It is in the cache folder, one file for each device, version of PyTorch and version of ssno, and believed only if it
# is this user's and nobody else may write to it, as native libraries are.

MeasuredEngine = Literal["fused", "torch", "plain", "compiled", "triton"]
"""What is measured: the engines, and plain operations under `torch.compile`."""


def measured_engines(device: torch.device) -> tuple[MeasuredEngine, ...]:
    """Which engines can be compared on a device. On a CPU compiling takes minutes, so there it is left to the user."""
    if device.type != "cpu":
        return ("torch", "plain", "compiled", "triton") if runs_triton(device) else ("torch", "plain", "compiled")
    return ("fused", "torch", "plain") if available() else ("torch", "plain")


def remember_fastest(device: torch.device, seconds: Mapping[MeasuredEngine, float]) -> MeasuredEngine:
    """Keep which engine took the fewest seconds for a training step, for later runs of this user on this device."""
    fastest = min(seconds, key=lambda engine: seconds[engine])
    path = _measurement(device)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    check_folder(path.parent)
    content = {"device": device_name(device), "engine": fastest, "seconds": dict(seconds)}
    write_document(path, content, format="ssno-engine", version=1)
    path.chmod(0o600)
    return fastest


def fastest_engine(device: torch.device) -> MeasuredEngine | None:
    """The engine remembered for a device; None if nothing was measured, or if the file cannot be trusted."""
    if device.type not in {name.partition(":")[0] for name in available_devices()}:  # a device without a name
        return None
    try:
        path = _measurement(device)
        if not path.exists():
            return None
        if not is_ours(path):
            raise DocumentError(f"{path} may have been written by another user.")
        found = read_document(path, format="ssno-engine", versions=(1,), remedy="Run `ssno doctor --check` again.")
        require_one_of("engine", found.get("engine"), get_args(MeasuredEngine))
        return found["engine"]
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: no home, so no cache folder
        logging.getLogger("ssno").warning("The measured engine is not used: %s", error)
        return None


def preferred(engine: Engine, device: torch.device) -> Engine:
    """The engine of a training: the one asked for; for auto, what was measured to be the fastest on the device."""
    fastest = fastest_engine(device) if engine == "auto" else None
    return fastest if fastest == "torch" or fastest == "plain" or fastest == "triton" else engine


def _measurement(device: torch.device) -> Path:
    decides = "\0".join([device_name(device), str(torch.__version__), package_version()])
    return cache_folder() / f"engine-{hashlib.sha256(decides.encode()).hexdigest()[:16]}.json"


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
