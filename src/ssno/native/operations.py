"""The native operations on tensors: float32 or bfloat16 on the CPU in, new contiguous tensors out.

Features (x, y, residuals and their gradients) are float32 or bfloat16; weights, kernels, biases, their gradients and
the head's output are always float32.

Native code relies on sizes alone, so every tensor is checked here, by `checked`, against the shape of the operation and
made contiguous. The same mathematics in PyTorch is beside the callers (`ssno.ssm.scan`, `ssno.layers.block`,
`ssno.layers.pointwise`). Every call needs the library: ask `available` first.

Axes: h channel, d direction, o what comes before the scanned axis, l point, i what comes after, p position, c field,
g = 2h gated channel, w wide channel.
"""

import contextlib
import ctypes
import math
import mmap
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from ctypes import CDLL, c_double, c_float, c_int, c_int64, c_void_p
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Parameter

from ssno.native.build import load, tiled

# A buffer pool for large results of native operations.
#
# The system has to find the memory of a new large tensor and fill it with zeros, page by page, at every training step.
# Here the memory of a freed tensor is reused for the next one of its size, in huge pages where the system has them. It
# returns to the pool when the last reference to the storage is gone: views, saved tensors, the user's.

MIN_POOLED = 2**20
"""Bytes; smaller tensors take PyTorch's own memory."""
MAX_POOLED = 2**30
"""Bytes in the pool."""
HUGE_PAGE = 2**21

_free: dict[int, list[mmap.mmap]] = {}


def pooled_empty(*shape: int, like: Tensor) -> Tensor:
    """An uninitialised tensor of the dtype of `like`."""
    count = math.prod(shape)
    size = count * like.dtype.itemsize
    # Dispatch modes (memory counts, fake tensors) must see PyTorch's own allocation.
    if size < MIN_POOLED or torch._C._len_torch_dispatch_stack() > 0:
        return like.new_empty(shape)
    rounded = -(-size // HUGE_PAGE) * HUGE_PAGE
    pooled = _free.get(rounded)
    memory = pooled.pop() if pooled else _mapped(rounded)
    window = (ctypes.c_char * size).from_buffer(memory)  # PyTorch holds it as long as the storage lives
    weakref.finalize(window, _give_back, memory, rounded).atexit = False
    return torch.frombuffer(window, dtype=like.dtype, count=count).view(shape)


def _mapped(size: int) -> mmap.mmap:
    """Memory of this process alone: a fork gets a copy, as of every other tensor."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _give_back(memory: mmap.mmap, size: int) -> None:
    if sum(each * len(pooled) for each, pooled in _free.items()) + size <= MAX_POOLED:
        _free.setdefault(size, []).append(memory)


LARGEST = 2**31 - 1
"""Sizes are 32-bit integers in the matrix product."""
LONGEST_SCAN = 8192
"""Points of an axis that a matrix scans: at this length, the matrices of one thread fill half a gigabyte."""


Observer = Callable[[str, list[Tensor], bool], None]
_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


@contextlib.contextmanager
def observed(by: Observer) -> Iterator[None]:
    """Call `by` with every operation: its name, its tensors, and whether the axis is periodic."""
    token = _observer.set(by)
    try:
        yield
    finally:
        _observer.reset(token)


def available(*tensors: Tensor) -> bool:
    """Whether native operations can take these tensors: dense, not empty, float32 (or bfloat16 with AVX512-BF16)."""
    return all(_fits(tensor) for tensor in tensors) and load() is not None


def available_bf16() -> bool:
    """Whether there are native operations on bfloat16: the processor and the compiler need AVX512-BF16."""
    return tiled(torch.bfloat16)


def _fits(tensor: Tensor, dtype: torch.dtype | None = None) -> bool:
    # Subclasses (fake tensors, wrappers of transformations) may have no memory to read.
    ordinary = type(tensor) in (Tensor, Parameter) and tensor.layout == torch.strided
    if not ordinary or tensor.device.type != "cpu" or tensor.numel() == 0:
        return False
    if dtype is not None:
        return tensor.dtype == dtype
    return tensor.dtype == torch.float32 or (tensor.dtype == torch.bfloat16 and available_bf16())


def checked(name: str, tensor: Tensor, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """The tensor, contiguous; an error if it is not what the operation takes."""
    if tuple(tensor.shape) != shape or not _fits(tensor, dtype) or max(shape) > LARGEST:
        kind = str(dtype).removeprefix("torch.")
        raise ValueError(
            f"`{name}` must be a dense {kind} tensor on the CPU of shape {shape}, each size from 1 to {LARGEST}; "
            f"got a {type(tensor).__name__} of {tensor.dtype} on {tensor.device} with shape {tuple(tensor.shape)}. "
            "The engine 'torch' takes any tensor."
        )
    if tensor.is_neg() or tensor._is_zerotensor():  # a view that is negated on reading; zeros without memory
        tensor = tensor.clone()
    return tensor.contiguous()


def _kind(features: Tensor) -> torch.dtype:
    """The dtype of features; without native bfloat16, float32 is expected."""
    return torch.bfloat16 if features.dtype == torch.bfloat16 and available_bf16() else torch.float32


def check_length(points: int) -> None:
    """Refuse axes that are too long for a matrix; forward alone, a direct scan may still take them."""
    if points > LONGEST_SCAN:
        raise ValueError(f"A native scan takes at most {LONGEST_SCAN} points, got {points}. Use method='fft'.")


def scan_forward(
    x: Float[Tensor, "h o l i"], kernels: Float[Tensor, "d h l"], *, backward: int, periodic: bool, direct: bool
) -> Float[Tensor, "h d o l i"]:
    """Scan along l with one kernel per direction; bit d of `backward` reverses direction d."""
    channels, outer, points, inner = x.shape
    directions = len(kernels)
    if not direct:
        check_length(points)
    y = pooled_empty(channels, directions, outer, points, inner, like=x)
    _call(
        "scan_forward",
        checked("x", x, channels, outer, points, inner, dtype=_kind(x)),
        checked("kernels", kernels, directions, channels, points),
        y,
        *_scan_sizes(x, kernels),
        c_int(backward),
        c_int(periodic),
        c_int(direct),
        tiles=not direct,
        circle=periodic,
    )
    return y


def scan_backward(
    x: Float[Tensor, "h o l i"],
    kernels: Float[Tensor, "d h l"],
    grad_y: Float[Tensor, "h d o l i"],
    *,
    backward: int,
    periodic: bool,
    residual: Float[Tensor, "h o l i"] | None = None,
    copies: int = 0,
) -> tuple[Float[Tensor, "h o l i"], Float[Tensor, "d h l"]]:
    """Gradients of x (plus `copies` times that of a residual) and of the kernels."""
    channels, outer, points, inner = x.shape
    directions = len(kernels)
    check_length(points)
    grad_x, grad_kernels = pooled_empty(*x.shape, like=x), kernels.new_zeros(kernels.shape)
    given = (
        checked("x", x, channels, outer, points, inner, dtype=_kind(x)),
        checked("kernels", kernels, directions, channels, points),
        checked("grad_y", grad_y, channels, directions, outer, points, inner, dtype=_kind(x)),
    )
    if residual is not None:
        residual = checked("residual", residual, channels, outer, points, inner, dtype=_kind(x))
    sizes = (*_scan_sizes(x, kernels), c_int(backward), c_int(periodic))
    if tiled(_kind(x)):
        _call("scan_backward", *given, residual, c_float(copies), grad_x, grad_kernels, *sizes, circle=periodic)
    else:
        _call("scan_backward", *given, grad_x, grad_kernels, *sizes, circle=periodic)
        if residual is not None:
            grad_x.add_(residual, alpha=copies)
    return grad_x, grad_kernels


def gate_forward(
    y: Float[Tensor, "h d p"],
    weight: Float[Tensor, "d g h"],
    bias: Float[Tensor, "d g"],
    residual: Float[Tensor, "h p"] | None,
    copies: int,
    *,
    product: bool = False,
) -> Float[Tensor, "h p"]:
    """copies * residual + sum over directions of GLU(weight GELU(y) + bias), or of products (`ssno.layers.gate`)."""
    channels, directions, positions = y.shape
    out = pooled_empty(channels, positions, like=y)
    _call(
        "gate_forward",
        *_gate_inputs(y, weight, bias),
        None if residual is None else checked("residual", residual, channels, positions, dtype=_kind(y)),
        c_float(copies),
        out,
        c_int(channels),
        c_int(directions),
        c_int(product),
        c_int64(positions),
    )
    return out


class GateGradients(NamedTuple):
    y: Float[Tensor, "h d p"]
    weight: Float[Tensor, "d g h"]
    bias: Float[Tensor, "d g"]


def gate_backward(
    y: Float[Tensor, "h d p"],
    weight: Float[Tensor, "d g h"],
    bias: Float[Tensor, "d g"],
    grad: Float[Tensor, "h p"],
    *,
    product: bool = False,
) -> GateGradients:
    """Gradients of everything but the residual, whose gradient is a multiple of `grad`."""
    channels, directions, positions = y.shape
    found = GateGradients(pooled_empty(*y.shape, like=y), weight.new_zeros(weight.shape), bias.new_zeros(bias.shape))
    _call(
        "gate_backward",
        *_gate_inputs(y, weight, bias),
        checked("grad", grad, channels, positions, dtype=_kind(y)),
        *found,
        c_int(channels),
        c_int(directions),
        c_int(product),
        c_int64(positions),
    )
    return found


def head_forward(
    x: Float[Tensor, "h p"],
    w1: Float[Tensor, "w h"],
    b1: Float[Tensor, " w"],
    w2: Float[Tensor, "c w"],
    b2: Float[Tensor, " c"],
) -> Float[Tensor, "c p"]:
    """w2 GELU(w1 x + b1) + b2 at every position."""
    out = w1.new_empty(len(w2), x.shape[1])
    inputs = _head_inputs(x, w1, b1, w2)
    _call("head_forward", *inputs, checked("b2", b2, len(w2)), out, *_head_sizes(x, w1, w2))
    return out


class HeadGradients(NamedTuple):
    x: Float[Tensor, "h p"]
    w1: Float[Tensor, "w h"]
    b1: Float[Tensor, " w"]
    w2: Float[Tensor, "c w"]
    b2: Float[Tensor, " c"]


def head_backward(
    x: Float[Tensor, "h p"],
    w1: Float[Tensor, "w h"],
    b1: Float[Tensor, " w"],
    w2: Float[Tensor, "c w"],
    grad: Float[Tensor, "c p"],
) -> HeadGradients:
    """Gradients of the head's input, weights and biases."""
    grad_w1, grad_b1, grad_w2 = (tensor.new_zeros(tensor.shape) for tensor in (w1, b1, w2))
    found = HeadGradients(pooled_empty(*x.shape, like=x), grad_w1, grad_b1, grad_w2, w2.new_zeros(len(w2)))
    inputs = _head_inputs(x, w1, b1, w2)
    _call("head_backward", *inputs, checked("grad", grad, len(w2), x.shape[1]), *found, *_head_sizes(x, w1, w2))
    return found


class Systems(NamedTuple):
    """The parameters of diagonal systems, one for each channel."""

    log_damping: Float[Tensor, "h n"]
    frequency: Float[Tensor, "h n"]
    log_step: Float[Tensor, " h"]
    input_weight: Float[Tensor, "h n 2"]
    output_weight: Float[Tensor, "h n 2"]


def sample_forward(systems: Systems, *, length: int, spacing: float, circle: bool) -> Float[Tensor, "h l"]:
    """Kernels of diagonal systems, discretised by zero-order hold; on a periodic axis with all their images."""
    inputs = _checked_systems(systems)
    if not 1 <= length <= LARGEST:
        raise ValueError(f"`length` must be from 1 to {LARGEST}, got {length}.")
    kernels = inputs.log_step.new_empty(len(inputs.log_step), length)
    sizes = _sample_sizes(inputs, length, spacing, circle)
    _call("sample_forward", *inputs, kernels, *sizes, tiles=False, circle=circle)
    return kernels


def sample_backward(systems: Systems, grad: Float[Tensor, "h l"], *, spacing: float, circle: bool) -> Systems:
    """Gradients of the parameters."""
    inputs = _checked_systems(systems)
    length = grad.shape[-1]
    found = Systems(*(torch.empty_like(tensor) for tensor in inputs))
    sizes = _sample_sizes(inputs, length, spacing, circle)
    grad = checked("grad", grad, len(inputs.log_step), length)
    _call("sample_backward", *inputs, grad, *found, *sizes, tiles=False, circle=circle)
    return found


class WarpGrid(NamedTuple):
    """The axes of a grid on which fields are read at displaced points (`ssno.layers.warp`), one number for each."""

    points: tuple[int, ...]
    copies: tuple[int, ...]
    """Of how many interleaved copies of the learned grid an axis consists; points of different copies never meet."""
    periodic: tuple[bool, ...]
    cells: tuple[float, ...]
    """Cells of a copy for each unit of displacement."""


def warp_forward(
    values: Float[Tensor, "p b heads c"], displacements: Float[Tensor, "p b heads a"], grid: WarpGrid
) -> Float[Tensor, "p b heads c"]:
    """The values at displaced points, by multilinear interpolation."""
    out = pooled_empty(*values.shape, like=values)
    _call("warp_forward", *_warp_inputs(values, displacements, grid), out, *_warp_sizes(values, grid), tiles=False)
    return out


def warp_backward(
    values: Float[Tensor, "p b heads c"],
    displacements: Float[Tensor, "p b heads a"],
    grad: Float[Tensor, "p b heads c"],
    grid: WarpGrid,
) -> tuple[Float[Tensor, "p b heads c"], Float[Tensor, "p b heads a"]]:
    """Gradients of the values and of the displacements."""
    given = (*_warp_inputs(values, displacements, grid), checked("grad", grad, *values.shape))
    found = pooled_empty(*values.shape, like=values), torch.empty_like(given[1])  # which is contiguous
    _call("warp_backward", *given, *found, *_warp_sizes(values, grid), tiles=False)
    return found


def _warp_inputs(values: Tensor, displacements: Tensor, grid: WarpGrid) -> tuple[Tensor, Tensor]:
    axes = len(grid.points)
    if not 1 <= axes <= 3 or any(n % k for n, k in zip(grid.points, grid.copies, strict=True)):
        raise ValueError(f"`grid` must have one to three axes of whole copies, got {grid}.")
    _, frames, heads, channels = values.shape
    return (
        checked("values", values, math.prod(grid.points), frames, heads, channels),
        checked("displacements", displacements, math.prod(grid.points), frames, heads, axes),
    )


def _warp_sizes(values: Tensor, grid: WarpGrid) -> tuple[Any, ...]:
    """Points, copies and boundary of every axis, cells for each unit, frames, axes, heads and channels."""
    axes, (_, frames, heads, channels) = len(grid.points), values.shape
    sizes = [int(one) for each in zip(grid.points, grid.copies, grid.periodic, strict=True) for one in each]
    arrays = (c_int64 * (3 * axes))(*sizes), (c_float * axes)(*grid.cells)
    return *arrays, c_int64(frames), c_int(axes), c_int(heads), c_int(channels)


def _checked_systems(systems: Systems) -> Systems:
    channels, modes = systems.log_damping.shape
    shapes = ((channels, modes), (channels, modes), (channels,), (channels, modes, 2), (channels, modes, 2))
    named = zip(Systems._fields, systems, shapes, strict=True)
    return Systems(*(checked(name, tensor, *shape) for name, tensor, shape in named))


def _sample_sizes(
    systems: Systems, length: int, spacing: float, circle: bool
) -> tuple[c_double, c_int64, c_int, c_int, c_int]:
    """Spacing, channels, modes, points, whether the axis is periodic."""
    channels, modes = systems.log_damping.shape
    return c_double(spacing), c_int64(channels), c_int(modes), c_int(length), c_int(circle)


def _call(
    name: str,
    *arguments: Any,
    tiles: bool = True,
    circle: bool = False,
) -> None:
    """Call the library with the addresses of tensors, other arguments (ctypes) as they are, and the number of threads.

    The first argument has the dtype of the features. `tiles` allows tiled products of float32 where they are built.
    """
    found: CDLL | None = load()
    assert found is not None, "ask `available` first"
    features = arguments[0]
    assert isinstance(features, Tensor)
    if (observer := _observer.get()) is not None:
        observer(name, [argument for argument in arguments if isinstance(argument, Tensor)], circle)
    if features.dtype == torch.bfloat16:
        name += "_bf16"
    elif tiles and tiled(torch.float32):
        name += "_float32"
    plain = [c_void_p(a.data_ptr()) if isinstance(a, Tensor) else a for a in arguments]
    getattr(found, name)(*plain, c_int(torch.get_num_threads()))


def _scan_sizes(x: Tensor, kernels: Tensor) -> tuple[c_int, c_int, c_int64, c_int, c_int]:
    """Channels, directions, and the three factors of the positions."""
    channels, outer, points, inner = x.shape
    return c_int(channels), c_int(len(kernels)), c_int64(outer), c_int(points), c_int(inner)


def _gate_inputs(y: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    channels, directions, positions = y.shape
    return (
        checked("y", y, channels, directions, positions, dtype=_kind(y)),
        checked("weight", weight, directions, 2 * channels, channels),
        checked("bias", bias, directions, 2 * channels),
    )


def _head_inputs(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    channels, positions = x.shape
    wide = len(w1)
    return (
        checked("x", x, channels, positions, dtype=_kind(x)),
        checked("w1", w1, wide, channels),
        checked("b1", b1, wide),
        checked("w2", w2, len(w2), wide),
    )


def _head_sizes(x: Tensor, w1: Tensor, w2: Tensor) -> tuple[c_int, c_int, c_int, c_int64]:
    """Channels, width, fields, positions."""
    return c_int(len(x)), c_int(len(w1)), c_int(len(w2)), c_int64(x.shape[1])


# Double backward through operations with a backward pass of our own.
#
# Such a backward pass computes gradients without a graph. With `create_graph=True` autograd leaves gradients enabled
# inside it; then the operation is computed in plain PyTorch, which can be differentiated again.


def gradients(function: Callable[..., Tensor], inputs: Sequence[Tensor], grad: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of `function(*inputs)`, differentiable themselves; None for inputs that need none.

    One input may depend on another (a layer used twice, an unrolled model), which is not the function's own path:
    gradients are taken of aliases, each of which depends on its own input alone.
    """
    aliases = [tensor.view_as(tensor) if tensor.requires_grad else tensor for tensor in inputs]
    needed = [alias for alias in aliases if alias.requires_grad]
    found = iter(torch.autograd.grad(function(*aliases), needed, grad, create_graph=True))
    return tuple(next(found) if alias.requires_grad else None for alias in aliases)
