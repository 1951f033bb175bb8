"""Operations of the native code, which no counter of tensor operations sees: formulas on the sizes it is called with.

By the rules of `ssno.costs.flops`: 2 per multiply-add, biases among the products, `gelu` and `glu` as there. Axes as in
`ssno.native.operations`: h channel, d direction, l point of the scanned axis, p position, w wide channel, c field.

    scan    one product of a kernel with every line: l (l + 1) / 2 multiply-adds, l^2 on a circle; backward twice
    gate    GLU(weight GELU(y) + bias) summed over directions; backward makes the product again, then two more
    sample  4 for every mode and point of a kernel, 8 backwards; what belongs to a mode alone costs about `PER_MODE`
    head    w2 GELU(w1 x + b1) + b2; backward makes the first product again, then two for each

Tiles at the edge of a triangle, and matrices where no tiles are used, take more than that; this is what must be done.
"""

from collections.abc import Callable, Mapping

from torch import Tensor

GELU, GELU_BACKWARD, GLU, GLU_BACKWARD = 14, 26, 11, 14  # per number: as `ssno.costs.flops` counts them

PER_MODE = 200
"""Exponentials, sine and cosine of a mode, its sixteen powers and its weight."""

Counts = Mapping[str, int]


def native_cost(name: str, tensors: list[Tensor], *, circle: bool) -> Counts:
    """Operations of one call by their kind. `tensors` are its arguments, inputs first."""
    return RULES[name](tensors, circle)


def _scan(tensors: list[Tensor], circle: bool) -> int:
    x, kernels = tensors[:2]
    points = kernels.shape[-1]
    lines = x.numel() // points
    return 2 * lines * len(kernels) * (points**2 if circle else points * (points + 1) // 2)


def _scan_forward(tensors: list[Tensor], circle: bool) -> Counts:
    return {"matrix": _scan(tensors, circle)}


def _scan_backward(tensors: list[Tensor], circle: bool) -> Counts:
    return {"matrix": 2 * _scan(tensors, circle)}


def _gate(tensors: list[Tensor]) -> tuple[int, int, int]:
    """Multiply-adds of the product, numbers that go into it, and positions times channels."""
    y = tensors[0]
    channels = y.shape[0]
    return 2 * y.numel() * 2 * channels, y.numel(), channels * y.shape[2]


def _gate_forward(tensors: list[Tensor], circle: bool) -> Counts:
    product, given, out = _gate(tensors)
    residual = 2 * out if len(tensors) > 4 else 0  # y, weight, bias, residual, out
    return {"matrix": product + 2 * given, "pointwise": (GELU + GLU) * given + given - out + residual}


def _gate_backward(tensors: list[Tensor], circle: bool) -> Counts:
    product, given, _ = _gate(tensors)
    return {"matrix": 3 * product + 2 * given, "pointwise": (GELU + GLU_BACKWARD + GELU_BACKWARD + 2) * given}


def _head(tensors: list[Tensor]) -> tuple[int, int, int, int]:
    """Multiply-adds of both products, wide numbers, and numbers that come out."""
    x, w1, _, w2 = tensors[:4]
    wide, out = len(w1) * x.shape[1], len(w2) * x.shape[1]
    return 2 * wide * len(x), 2 * out * len(w1), wide, out


def _head_forward(tensors: list[Tensor], circle: bool) -> Counts:
    first, second, wide, out = _head(tensors)
    return {"matrix": first + wide + second + out, "pointwise": GELU * wide}


def _head_backward(tensors: list[Tensor], circle: bool) -> Counts:
    first, second, wide, out = _head(tensors)
    return {"matrix": 3 * first + wide + 2 * second, "pointwise": (GELU + GELU_BACKWARD + 1) * wide + out}


def _sample_forward(tensors: list[Tensor], circle: bool) -> Counts:
    modes, points = tensors[0].numel(), tensors[5].shape[1]  # five parameters, then the kernels
    return {"kernel": modes * (4 * points + PER_MODE)}


def _sample_backward(tensors: list[Tensor], circle: bool) -> Counts:
    modes, points = tensors[0].numel(), tensors[5].shape[1]
    return {"kernel": modes * (8 * points + 2 * PER_MODE)}


RULES: dict[str, Callable[[list[Tensor], bool], Counts]] = {
    "scan_forward": _scan_forward,
    "scan_backward": _scan_backward,
    "gate_forward": _gate_forward,
    "gate_backward": _gate_backward,
    "sample_forward": _sample_forward,
    "sample_backward": _sample_backward,
    "head_forward": _head_forward,
    "head_backward": _head_backward,
}
