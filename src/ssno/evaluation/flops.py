"""Floating-point operations, counted from what really runs.

Public counters see matrix products and convolutions only: a convolution by FFT costs them nothing. Here every tensor
operation that torch executes, forwards and backwards, is counted by these rules:

    matrix product, convolution   2 per multiply-add; 8 if complex; solving n equations 2/3 n^3 + 2 n^2 per right side
    Fourier transform of n points 5 n log2 n;  2.5 n log2 n  if real on one side; several axes: n = their product
    elementwise, sums             1 per number and operation; complex: sum 2, product 6, real times complex 2
    exp, sin, cos, tanh, erf ...  `TRANSCENDENTAL` = 10 per number
    normalisation                 8 per number (mean 1, variance 3, scale 2, affine 2); 2 with given statistics
    moving and copying numbers    0

Models are compared by the plain engine, PyTorch operations written out. The fused engine, which is timed where it is
available, takes matrix products for scans where plain PyTorch may take transforms, and makes some products again in the
backward pass: `engine="fused"` counts those (`ssno.evaluation.flops`). Rows of costs have both numbers.

Operations that make convolution kernels from state-space parameters are listed apart, as `kernel`: they depend on the
weights only, so a model in use need not repeat them. An operation no rule knows counts nothing and is named in
`unknown`; tests keep that empty for all models. The published table counts otherwise, see `ssno.evaluation.cost`.
"""

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from ssno.native.engine import Engine, use
from ssno.native.operations import observed

# Operations of the native code, which no counter of tensor operations sees: formulas on the sizes it is called with.
#
# By the rules of `ssno.evaluation.flops`: 2 per multiply-add, biases among the products, `gelu` and `glu` as there.
# Axes as in `ssno.native.operations`: h channel, d direction, l point of the scanned axis, p position, w wide channel,
# c field.
#
#     scan    one product of a kernel with every line: l (l + 1) / 2 multiply-adds, l^2 on a circle; backward twice
#     gate    GLU(weight GELU(y) + bias) summed over directions; backward makes the product again, then two more
#     sample  4 for every mode and point of a kernel, 8 backwards; what belongs to a mode alone costs about `PER_MODE`
#     head    w2 GELU(w1 x + b1) + b2; backward makes the first product again, then two for each
#
# Tiles at the edge of a triangle, and matrices where no tiles are used, take more than that; this is what must be done.

GELU, GELU_BACKWARD, GLU, GLU_BACKWARD = 14, 26, 11, 14  # per number: as `ssno.evaluation.flops` counts them

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


# Floating-point operations, counted from what really runs.

TRANSCENDENTAL = 10
KERNEL_MODULES = ("ssno.ssm.kernel", "ssno.ssm.discretise", "ssno.ssm.dplr", "ssno.ssm.kernel", "ssno.layers.modes")


def _each(names: str, operations: int) -> dict[str, int]:
    return dict.fromkeys(names.split(), operations)


_T = TRANSCENDENTAL
PER_OUTPUT = {  # operations per number that comes out
    **_each("abs add div eq ge gt le lt maximum minimum mul ne neg pow reciprocal relu remainder rsqrt rsub sqrt", 1),
    **_each("ceil clamp floor round sign square sub threshold_backward trunc", 1),
    **_each("max_pool2d_with_indices_backward max_pool3d_with_indices_backward", 1),
    **_each("addcmul", 2),
    **_each("sigmoid_backward tanh_backward", 3),
    **_each("glu_backward", (_T + 4) // 2),
    **_each("atan2 cos erf exp expm1 log log1p sigmoid sin tanh", _T),
    **_each("glu silu", _T + 1),
    **_each("gelu silu_backward", _T + 4),
    **_each("polar", 2 * _T + 2),
    **_each("gelu_backward", 2 * _T + 6),
}
PER_INPUT = {**_each("all amax any mean sum", 1), **_each("var_mean", 4)}  # operations per number that goes in
NORMALISATIONS = ("native_batch_norm", "native_group_norm", "native_layer_norm")
MOVING = _each(
    """alias arange as_strided bernoulli cat clone complex constant_pad_nd copy detach empty empty_like expand eye fill
    flip full full_like index lift_fresh linspace new_empty new_empty_strided new_zeros ones ones_like permute roll
    scalar_tensor select select_backward slice slice_backward split split_with_sizes squeeze stack t transpose unbind
    unsqueeze view view_as_complex view_as_real where zero zeros zeros_like _conj _linalg_check_errors
    _local_scalar_dense _reshape_alias _to_copy _unsafe_view""",
    0,
)


@dataclass(frozen=True)
class Flops:
    """Operations by kind. The kinds are disjoint: making kernels counts as `kernel` whatever it does."""

    matrix: float = 0.0
    convolution: float = 0.0
    transform: float = 0.0
    pointwise: float = 0.0
    kernel: float = 0.0
    unknown: frozenset[str] = field(default_factory=frozenset)

    @property
    def total(self) -> float:
        return self.matrix + self.convolution + self.transform + self.pointwise + self.kernel


def count_flops(run: Callable[[], object], *, engine: Engine = "plain") -> Flops:
    """Call `run` and count what it computes with this engine, backward passes included."""
    counter = _Counter()
    with use(engine), observed(counter.native), counter:
        run()
    return Flops(**counter.counts, unknown=frozenset(counter.unknown))


class _Counter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.counts = dict.fromkeys(("matrix", "convolution", "transform", "pointwise", "kernel"), 0.0)
        self.unknown: set[str] = set()

    def native(self, name: str, tensors: list[Tensor], circle: bool) -> None:
        """Count a call of native code."""
        for kind, operations in native_cost(name, tensors, circle=circle).items():
            self.counts[kind] += operations

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func._schema.name.split("::")[1].removesuffix("_")
        kind, operations = cost(name, func, args, kwargs, out)
        if kind == "unknown":
            self.unknown.add(name)
        elif operations:
            self.counts["kernel" if _making_a_kernel() else kind] += operations
        return out


def cost(name: str, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> tuple[str, float | int]:
    """The kind of an operation and what it costs."""
    if name in MOVING:
        return "moving", 0
    if name in ("mm", "bmm", "addmm", "baddbmm", "dot"):
        adds_to = name.startswith(("add", "badd"))
        left = args[1] if adds_to else args[0]
        complex_numbers = out.is_complex()
        products = out.numel() * left.shape[-1] * (8 if complex_numbers else 2)
        return "matrix", products + adds_to * out.numel() * (2 if complex_numbers else 1)
    if name in ("convolution", "convolution_backward"):
        return "convolution", flop_registry[func._overloadpacket](*args, **kwargs, out_val=out)
    if name.startswith("_fft_"):
        real_side = out if name == "_fft_c2r" else args[0]
        points = math.prod(real_side.shape[dim] for dim in args[1])
        return "transform", (5.0 if name == "_fft_c2c" else 2.5) * real_side.numel() * math.log2(max(2, points))
    if name.removesuffix("_backward") in NORMALISATIONS:
        given_statistics = name == "native_batch_norm" and not args[5]
        per_number = 2 if given_statistics else 8
        return "pointwise", per_number * (2 if name.endswith("_backward") else 1) * args[0].numel()
    if name in ("_linalg_solve_ex", "linalg_lu_solve"):
        matrix, columns = args[0], (out[0] if isinstance(out, tuple) else out).numel() / args[0].shape[-1]
        size, factor = matrix.shape[-1], 4 if matrix.is_complex() else 1
        elimination = 2 / 3 * size * matrix.numel() if name == "_linalg_solve_ex" else 0
        return "matrix", factor * (elimination + 2 * size**2 * columns)
    if name in ("max_pool2d_with_indices", "max_pool3d_with_indices"):  # in 1D too
        return "pointwise", math.prod(args[1]) * out[0].numel()
    if name in PER_INPUT:
        return "pointwise", PER_INPUT[name] * args[0].numel() * (2 if args[0].is_complex() else 1)
    if name in PER_OUTPUT:
        first = out[0] if isinstance(out, tuple) else out
        return "pointwise", PER_OUTPUT[name] * first.numel() * _complex_factor(name, args, first)
    return "unknown", 0


def _complex_factor(name: str, args: tuple[Any, ...], out: Tensor) -> int:
    """How many real operations one complex one takes."""
    if not out.is_complex() or name == "polar":
        return 1
    both = all(isinstance(factor, Tensor) and factor.is_complex() for factor in args[:2])
    return 6 if name in ("mul", "div") and both else 2


def _making_a_kernel() -> bool:
    """Whether the running code was called from a module that makes kernels."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__") in KERNEL_MODULES:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
