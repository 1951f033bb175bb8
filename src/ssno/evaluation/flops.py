"""Floating-point operations, counted from what runs.

Public counters see matrix products and convolutions only: a convolution by FFT costs them nothing. Here every tensor
operation that torch executes, forwards and backwards, is counted by these rules:

    matrix product, convolution   2 per multiply-add; 8 if complex; solving n equations 2/3 n^3 + 2 n^2 per right side
    Fourier transform of n points 5 n log2 n;  2.5 n log2 n  if real on one side; several axes: n = their product
    elementwise, sums             1 per number and operation; complex: sum 2, product 6, real times complex 2
    exp, sin, cos, tanh, erf ...  `TRANSCENDENTAL` = 10 per number
    normalisation                 8 per number (mean 1, variance 3, scale 2, affine 2); 2 with given statistics
    moving and copying numbers    0

Models are compared by the plain engine, PyTorch operations written out. The fused engine, which is timed where it is
available, uses matrix products for scans where plain PyTorch may use transforms, and repeats some products in the
backward pass: `engine="fused"` counts those (`native_cost`). Rows of costs have both numbers.

Operations that make convolution kernels from state-space parameters are listed separately, as `kernel`: they depend on
the weights only, so inference need not repeat them. An operation without a rule counts nothing and is named in
`unknown`; tests keep that empty for all models. The published table counts differently, see `published_flops`.
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from ssno.models.baselines.factformer import FactformerConfig
from ssno.models.baselines.fno import FFNOConfig
from ssno.models.baselines.gkt import GKTConfig
from ssno.models.baselines.unet import HALVINGS, UNetConfig
from ssno.models.config import OperatorConfig
from ssno.models.operator import parameters_of
from ssno.models.ssno import SSNOConfig
from ssno.native.engine import Engine, use
from ssno.native.operations import observed

TRANSCENDENTAL = 10
KERNEL_MODULES = ("ssno.ssm.kernel", "ssno.ssm.discretise", "ssno.ssm.dplr", "ssno.layers.modes")


def _each(names: str, operations: int) -> dict[str, int]:
    return dict.fromkeys(names.split(), operations)


_T = TRANSCENDENTAL
PER_OUTPUT = {  # operations per number that comes out
    **_each("abs add div eq ge gt le lt maximum minimum mul ne neg pow reciprocal relu remainder rsqrt rsub sqrt", 1),
    **_each("ceil clamp clamp_min floor nan_to_num round sign square sub threshold_backward trunc", 1),
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
PER_INPUT = {  # operations per number that goes in
    **_each("all amax any mean scatter_add sum unfold_backward", 1),
    **_each("linalg_vector_norm", 2),
    **_each("var_mean", 4),
}
NORMALISATIONS = ("native_batch_norm", "native_group_norm", "native_layer_norm")
MOVING = _each(
    """alias arange as_strided bernoulli cat clone complex constant_pad_nd copy detach empty empty_like expand eye fill
    flip full full_like gather index lift_fresh linspace new_empty new_empty_strided new_zeros ones ones_like permute
    roll scalar_tensor select select_backward slice slice_backward split split_with_sizes squeeze stack t transpose
    unbind unfold unsqueeze view view_as_complex view_as_real where zero zeros zeros_like _conj _linalg_check_errors
    _local_scalar_dense masked_fill _reshape_alias _to_copy _unsafe_view""",
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
    counter = _counted(run, engine)
    return Flops(**counter.counts, unknown=frozenset(counter.unknown))


def count_calls(run: Callable[[], object], *, engine: Engine = "plain") -> list["OperatorCall"]:
    """Call `run` and list every tensor operation that moves or changes numbers, backward passes included."""
    return _counted(run, engine).calls


def _counted(run: Callable[[], object], engine: Engine) -> "_Counter":
    counter = _Counter()
    with use(engine), observed(counter.native), counter:
        run()
    return counter


class OperatorCall(NamedTuple):
    """One executed operation: what it computes, and the bytes of the tensors that it reads and writes, each once."""

    name: str
    kind: str
    operations: float
    bytes: int


class _Counter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.counts = dict.fromkeys(("matrix", "convolution", "transform", "pointwise", "kernel"), 0.0)
        self.unknown: set[str] = set()
        self.calls: list[OperatorCall] = []

    def native(self, name: str, tensors: list[Tensor], circle: bool) -> None:
        """Count a call of native code."""
        costs = native_cost(name, tensors, circle=circle)
        for kind, operations in costs.items():
            self.counts[kind] += operations
        self.calls.append(OperatorCall(name, "native", sum(costs.values()), sum(map(_size, tensors))))

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
        if moved := moved_bytes(name, func, args, kwargs, out):
            self.calls.append(OperatorCall(name, kind, operations, moved))
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


ALLOCATING = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
OVERWRITING = ("copy", "fill", "zero")
"""Operations in place that do not read what they replace."""


def moved_bytes(name: str, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> int:
    """Bytes that an operation reads and writes, each tensor once; a view moves none."""
    given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    made = [leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor)]
    if not func._schema.is_mutable:
        memory = {tensor.untyped_storage()._cdata for tensor in given}
        made = [tensor for tensor in made if tensor.untyped_storage()._cdata not in memory]
        if not made or name in ALLOCATING:
            return 0
    return sum(map(_size, given[name in OVERWRITING :])) + sum(map(_size, made))


def _size(tensor: Tensor) -> int:
    """Bytes of the different numbers of a tensor: what is expanded is read once."""
    shape = (count for count, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)
    return math.prod(shape) * tensor.element_size()


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


# Operations of the native code, which no counter of tensor operations sees, from the sizes it is called with.
#
#     scan    one product of a kernel with every line: l (l + 1) / 2 multiply-adds, l^2 if periodic; backward twice
#     gate    GLU(weight GELU(y) + bias) summed over directions; backward repeats the product, then two more
#     sample  4 for every mode and point of a kernel, 8 backwards; and about `PER_MODE` for every mode
#     head    w2 GELU(w1 x + b1) + b2; backward repeats the first product, then two for each
#
# Padded tiles at the edge of a triangle are not counted.

GELU, GELU_BACKWARD, GLU, GLU_BACKWARD = 14, 26, 11, 14  # per number, as in `PER_OUTPUT`
PER_MODE = 200
"""Exponentials, sine and cosine of a mode, its sixteen powers and its weight."""


def native_cost(name: str, tensors: list[Tensor], *, circle: bool) -> dict[str, int]:
    """Operations of one native call by kind; `tensors` are its arguments, inputs first."""
    operation, _, direction = name.partition("_")
    backward, first = direction == "backward", tensors[0]
    if operation == "scan":
        points = tensors[1].shape[-1]
        taps = points**2 if circle else points * (points + 1) // 2
        return {"matrix": 2 * first.numel() // points * len(tensors[1]) * taps * (1 + backward)}
    if operation == "gate":
        given, out = first.numel(), first.shape[0] * first.shape[2]
        product = 4 * given * first.shape[0]
        if backward:
            return {"matrix": 3 * product + 2 * given, "pointwise": (GELU + GLU_BACKWARD + GELU_BACKWARD + 2) * given}
        residual = 2 * out if len(tensors) > 4 else 0  # y, weight, bias, residual, out
        return {"matrix": product + 2 * given, "pointwise": (GELU + GLU) * given + given - out + residual}
    if operation == "sample":
        points = tensors[5].shape[1]  # five parameters, then the kernels
        return {"kernel": first.numel() * (4 * points + PER_MODE) * (1 + backward)}
    if operation == "warp":  # a product and a sum for each corner; of the weights, one product for each axis
        axes, channels = tensors[1].shape[-1], first.shape[-1]
        return {"pointwise": 2**axes * (2 * first.numel() + axes * first.numel() // channels) * (1 + backward)}
    if operation != "head":
        raise KeyError(f"No rule for the native operation {name!r}.")
    wide, out = len(tensors[1]) * first.shape[1], len(tensors[3]) * first.shape[1]
    products = 2 * wide * len(first), 2 * out * len(tensors[1])
    if backward:
        matrix = 3 * products[0] + wide + 2 * products[1]
        return {"matrix": matrix, "pointwise": (GELU + GELU_BACKWARD + 1) * wide + out}
    return {"matrix": sum(products) + wide + out, "pointwise": GELU * wide}


# What a GPU would take, by a roofline: a prediction, for nothing here was measured on one.
#
# Every operation takes as long as its arithmetic at the peak of float32, or as its bytes at the peak of memory,
# whichever is longer. `separate` adds up all operations as they were counted, one launch each; `fused` those alone
# that no compiler merges with a neighbour (products, convolutions, transforms): a compiled step lies between the two.
# Left out: launches (a few microseconds each, unless a CUDA graph replays them), caches, the optimiser.


class GPU(NamedTuple):
    """Peaks from the vendor's data sheet: float32 operations (no tensor cores) and bytes of memory per second."""

    name: str
    operations: float
    bytes: float


GPUS = (
    GPU("A100 80GB SXM", 19.5e12, 2039e9),
    GPU("H100 SXM", 67e12, 3350e9),
    GPU("RTX 4060 Laptop", 14.6e12, 256e9),  # 3072 cores, 2 operations each at 2.37 GHz; 128 bits at 16 GT/s
)
NOT_FUSED = ("matrix", "convolution", "transform")


def predicted_seconds(calls: Iterable[OperatorCall], gpu: GPU) -> tuple[float, float]:
    """Seconds with every operation by itself, and with products, convolutions and transforms alone."""
    times = [(c.kind in NOT_FUSED, max(c.operations / gpu.operations, c.bytes / gpu.bytes)) for c in calls]
    return sum(time for _, time in times), sum(time for alone, time in times if alone)


def training_calls(config: OperatorConfig, grid: Sequence[int], *, batch: int, frames: int) -> list[OperatorCall]:
    """The operations of a training step, forward and backward, as a device that is no CPU executes them.

    They are executed on the meta device, which has shapes and no numbers, so that any size takes a second.
    """
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        model = config.build()
        given = torch.randn(batch, frames, config.in_channels, *grid)
        return count_calls(lambda: model(given).square().mean().backward())


# Operations as the published cost table counts them. The rules were inferred from its 25 rounded values; each model has
# a rule of its own (2 operations per multiply-add throughout, K = 4 frames, memory never counted):
#
#     U-Net, Factformer  4 frames; linear maps and convolutions, 4 per number of an affine norm; a transposed
#                     convolution counts all kernel points for every output; group norm and attention products nothing
#     GKT                one pass over 4 stacked frames; linear maps and norms only
#     F-FNO              4 frames; only the spectral part: 10 N log2 N per channel and 6 per kept mode and channel pair,
#                        modes = min(N / 2, 32); its linear maps are not counted
#     SS-NO              parameters times points, one frame
#
# By the rule used for U-Net and Factformer, SS-NO would cost 1.8 times what is printed. Compare models with each other
# by `count_flops`, where one rule holds for all.

FRAMES = 4
AFFINE_NORM = 4
MOST_MODES = 32


def published_flops(config: OperatorConfig, points: int) -> float | None:
    """Operations of one prediction in 1D by the table's rule; None for a model or setting the table does not have."""
    rule = PUBLISHED_RULES.get(type(config)) if config.name == config.model_name else None
    return None if rule is None or config.n_dims != 1 else 2.0 * rule(config, points)


def _unet(config: UNetConfig, points: int) -> float | int:
    widths = [config.hidden_channels * 2**level for level in range(HALVINGS + 1)]

    def block(channels_in: int, width: int, length: float) -> float:
        return length * (3 * width * (channels_in + width) + 2 * AFFINE_NORM * width)

    down = sum(
        block(narrow, wide, points / 2**level)
        for level, (narrow, wide) in enumerate(zip([config.lifted_channels(), *widths[:-1]], widths, strict=True))
    )
    up = sum(
        points / 2**level * (2 * width * 2 * width) + block(2 * width, width, points / 2**level)
        for level, width in enumerate(widths[:-1])
    )
    return FRAMES * (down + up + points * widths[0] * config.out_channels)


def _factformer(config: FactformerConfig, points: int) -> float | int:
    width, inner = config.hidden_channels, config.n_heads * config.head_channels
    square, norm = width * width, AFFINE_NORM * width
    reducer = square + norm + 2 * square + square
    layer = norm + width * inner + square + reducer + 2 * width * inner + inner * width + square
    tail = square + norm + 2 * square + square // 8 + width * (width // 2) + width // 2 * config.out_channels
    frame = config.lifted_channels() * width + config.n_layers * layer + tail
    position = config.n_layers * square  # the same for all frames, so computed once
    return points * (FRAMES * frame + position)


def _gkt(config: GKTConfig, points: int) -> float | int:
    width, coordinates = config.hidden_channels, config.n_dims
    layer = 5 * width * width + 2 * AFFINE_NORM * width
    decoder = (width + coordinates) * width + 2 * width * width
    head = width * config.head_channels + config.head_channels * config.out_channels
    return points * (config.lifted_channels() * width + config.n_layers * layer + decoder + head)


def _ffno(config: FFNOConfig, points: int) -> float | int:
    width, modes = config.hidden_channels, min(points // 2, MOST_MODES)
    spectral = 10 * points * math.log2(points) * width + 6 * modes * width**2
    return FRAMES * config.n_layers * spectral


PUBLISHED_RULES: dict[type, Callable[[Any, int], float | int]] = {
    UNetConfig: _unet,
    FactformerConfig: _factformer,
    GKTConfig: _gkt,
    FFNOConfig: _ffno,
    SSNOConfig: lambda config, points: parameters_of(config) * points,
}
