"""The native operations on tensors: contiguous float32 on the CPU in, new tensors out.

Shapes are checked by the callers (`ssno.ssm.fused`, `ssno.layers.gate`, `ssno.layers.pointwise`), which also hold
the mathematics in PyTorch. Every call needs the library, so ask `available` first.

Axes: h channel, d direction, o what comes before the scanned axis, l point, i what comes after, p position, c field.
"""

from ctypes import CDLL, c_float, c_int, c_int64, c_void_p
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.native.library import load


def available(*tensors: Tensor) -> bool:
    """Whether the native operations can take these tensors."""
    fitting = all(tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in tensors)
    return fitting and load() is not None


def scan_forward(
    x: Float[Tensor, "h o l i"], kernels: Float[Tensor, "d h l"], *, backward: int, periodic: bool, direct: bool
) -> Float[Tensor, "h d o l i"]:
    """Scan along l with one kernel per direction; bit d of `backward` turns direction d round."""
    directions = kernels.shape[0]
    y = x.new_empty(x.shape[0], directions, *x.shape[1:])
    library().scan_forward(
        at(x), at(kernels), at(y), *sizes(x, directions), backward, int(periodic), int(direct), torch.get_num_threads()
    )
    return y


def scan_backward(
    x: Float[Tensor, "h o l i"],
    kernels: Float[Tensor, "d h l"],
    grad_y: Float[Tensor, "h d o l i"],
    *,
    backward: int,
    periodic: bool,
) -> tuple[Float[Tensor, "h o l i"], Float[Tensor, "d h l"]]:
    """Gradients of x and of the kernels."""
    grad_x, grad_kernels = torch.empty_like(x), torch.zeros_like(kernels)
    library().scan_backward(
        *(at(tensor) for tensor in (x, kernels, grad_y, grad_x, grad_kernels)),
        *sizes(x, kernels.shape[0]),
        backward,
        int(periodic),
        torch.get_num_threads(),
    )
    return grad_x, grad_kernels


def gate_forward(
    y: Float[Tensor, "h d p"],
    weight: Float[Tensor, "d g h"],
    bias: Float[Tensor, "d g"],
    residual: Float[Tensor, "h p"] | None,
    copies: int,
) -> Float[Tensor, "h p"]:
    """copies * residual + sum over directions of GLU(weight GELU(y) + bias)."""
    channels, directions, positions = y.shape
    out = y.new_empty(channels, positions)
    library().gate_forward(
        at(y),
        *strides(y),
        at(weight),
        at(bias),
        at(residual),
        c_float(copies),
        at(out),
        channels,
        directions,
        c_int64(positions),
        torch.get_num_threads(),
    )
    return out


class GateGradients(NamedTuple):
    y: Float[Tensor, "h d p"]
    weight: Float[Tensor, "d g h"]
    bias: Float[Tensor, "d g"]


def gate_backward(
    y: Float[Tensor, "h d p"], weight: Float[Tensor, "d g h"], bias: Float[Tensor, "d g"], grad: Float[Tensor, "h p"]
) -> GateGradients:
    """Gradients of everything but the residual, whose gradient is a multiple of `grad`."""
    channels, directions, positions = y.shape
    found = GateGradients(torch.empty_like(y), torch.zeros_like(weight), torch.zeros_like(bias))
    library().gate_backward(
        at(y),
        *strides(y),
        at(weight),
        at(bias),
        at(grad),
        *(at(gradient) for gradient in found),
        channels,
        directions,
        c_int64(positions),
        torch.get_num_threads(),
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
    out = x.new_empty(w2.shape[0], x.shape[1])
    library().head_forward(*(at(tensor) for tensor in (x, w1, b1, w2, b2, out)), *head_sizes(x, w1, w2))
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
    found = HeadGradients(
        torch.empty_like(x),
        torch.zeros_like(w1),
        torch.zeros_like(b1),
        torch.zeros_like(w2),
        x.new_zeros(w2.shape[0]),
    )
    library().head_backward(
        *(at(tensor) for tensor in (x, w1, b1, w2, grad)),
        *(at(gradient) for gradient in found),
        *head_sizes(x, w1, w2),
    )
    return found


def library() -> CDLL:
    """The loaded library."""
    found = load()
    assert found is not None, "ask `available` first"
    return found


def at(tensor: Tensor | None) -> c_void_p:
    """The address of a tensor's first number."""
    return c_void_p(None if tensor is None else tensor.data_ptr())


def sizes(x: Tensor, directions: int) -> tuple[c_int, c_int, c_int64, c_int, c_int]:
    """Channels, directions, and the three factors of the positions."""
    channels, outer, points, inner = x.shape
    return c_int(channels), c_int(directions), c_int64(outer), c_int(points), c_int(inner)


def strides(y: Tensor) -> tuple[c_int64, c_int64]:
    """How far apart channels and directions lie."""
    return c_int64(y.stride(0)), c_int64(y.stride(1))


def head_sizes(x: Tensor, w1: Tensor, w2: Tensor) -> tuple[c_int, c_int, c_int, c_int64, c_int]:
    """Channels, width, fields, positions, threads."""
    return (
        c_int(x.shape[0]),
        c_int(w1.shape[0]),
        c_int(w2.shape[0]),
        c_int64(x.shape[1]),
        c_int(torch.get_num_threads()),
    )
