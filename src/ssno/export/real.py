"""A traced step in real arithmetic: no complex numbers, no FFT, constants computed once.

    z = a + i b              a pair of real tensors; products, slices and sums act on pairs
    rfft, fft, irfft         products with a matrix of cosines and sines, made in float64
    f(weights, grid)         evaluated here and stored, so kernels are numbers and not formulas of modes

Runtimes outside PyTorch lack complex tensors (ONNX, ExecuTorch) or transforms; matrix products every one of them has.
`RealStep` walks a graph of ATen operations and evaluates it with these rules; traced again it is the real program.

Axes: n points of a transformed line, f waves.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

aten = torch.ops.aten


class UnsupportedOperation(ValueError):
    """An operation on complex numbers for which there is no rule."""


class RealPair(NamedTuple):
    """A complex tensor as its real and imaginary parts."""

    real: Tensor
    imag: Tensor


class RealStep(nn.Module):
    """A module that computes what an exported program does, in real arithmetic."""

    def __init__(self, program: ExportedProgram):
        super().__init__()
        traced = program.run_decompositions().module(check_guards=False)
        assert isinstance(traced, GraphModule)
        # Not registered: of its weights only those that the graph still needs become part of this module.
        object.__setattr__(self, "traced", traced)
        self.stored: dict[Node, tuple[str, ...]] = {}
        constants = _constants(traced)
        equal: dict[Any, tuple[str, ...]] = {}
        for node, value in constants.items():
            if isinstance(value, Tensor) and any(user not in constants for user in node.users):
                self._store(node, value, equal)
        self.folded = set(constants)
        self.constants = {node: value for node, value in constants.items() if not isinstance(value, Tensor)}
        self.matrices: dict[tuple[str, int, torch.dtype], str] = {}
        for node in traced.graph.nodes:
            if node.target in TRANSFORMS and node not in constants:
                self._store_matrices(node)

    traced: GraphModule

    def _store(self, node: Node, value: Tensor, equal: dict[Any, tuple[str, ...]]) -> None:
        """Keep a constant as a buffer, or two; one that is equal to another, as those of unrolled steps are, once."""
        parts = [part.detach().contiguous() for part in ((value.real, value.imag) if value.is_complex() else (value,))]
        digests = tuple(hashlib.sha256(part.cpu().numpy().tobytes()).hexdigest() for part in parts)
        key = (tuple(value.shape), value.dtype, digests)
        if key not in equal:
            equal[key] = tuple(f"constant_{len(equal)}_{part}" for part in range(len(parts)))
            for name, part in zip(equal[key], parts, strict=True):
                self.register_buffer(name, part.clone())
        self.stored[node] = equal[key]

    def _store_matrices(self, node: Node) -> None:
        field, dims = node.args[0].meta["val"], node.args[1]  # type: ignore[union-attr]
        kind = field.real.dtype if field.is_complex() else field.dtype
        for dim in dims:  # type: ignore[union-attr]
            half = node.target == aten._fft_c2r.default and dim == dims[-1]  # type: ignore[index]
            points = int(node.args[3] if half else field.shape[dim])  # type: ignore[arg-type]
            for name, make in (("cosines", torch.cos), ("sines", torch.sin)):
                key = (name, points, kind)
                if key not in self.matrices:
                    self.matrices[key] = f"{name}_{points}_{len(self.matrices)}"
                    self.register_buffer(self.matrices[key], make(_angles(points)).to(kind))

    def forward(self, *inputs: Tensor) -> Any:
        """Evaluate the graph, node after node."""
        values: dict[Node, Any] = dict(self.constants)
        given = iter(inputs)
        for node in self.traced.graph.nodes:
            if node in self.stored:
                parts = [getattr(self, name) for name in self.stored[node]]
                values[node] = RealPair(*parts) if len(parts) == 2 else parts[0]
            elif node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "output":
                return torch.fx.map_arg(node.args[0], values.__getitem__)
            elif node.op == "call_function" and node not in self.folded:
                arguments = torch.fx.map_arg(node.args, values.__getitem__)
                options = torch.fx.map_arg(node.kwargs, values.__getitem__)
                values[node] = self._evaluate(node.target, arguments, dict(options))
        raise AssertionError("a graph ends with its output")

    def _evaluate(self, function: Any, arguments: Any, options: dict[str, Any]) -> Any:
        if function in TRANSFORMS:
            return TRANSFORMS[function](self._matrix, *arguments)
        if function in MAKES_PAIRS:
            return MAKES_PAIRS[function](*arguments)
        dtype = options.get("dtype")
        if isinstance(dtype, torch.dtype) and dtype.is_complex:  # zeros and other constants
            part = function(*arguments, **{**options, "dtype": dtype.to_real()})
            return RealPair(part, torch.zeros_like(part))
        pairs = [one for one in _flat(arguments) if isinstance(one, RealPair)]
        if not pairs:
            return function(*arguments, **options)
        if function in ON_PAIRS:
            return ON_PAIRS[function](*arguments, **options)
        if function not in PART_BY_PART:
            raise UnsupportedOperation(f"{function} of complex numbers has no rule in real arithmetic")
        parts = ([_part(one, place) for one in arguments] for place in (0, 1))
        return RealPair(*(function(*part, **options) for part in parts))

    def _matrix(self, name: str, points: int, like: Tensor) -> Tensor:
        return getattr(self, self.matrices[name, points, like.dtype])


def _constants(traced: GraphModule) -> dict[Node, Any]:
    """The value of every node that depends on no input."""
    known: dict[Node, Any] = {}
    with torch.no_grad():
        for node in traced.graph.nodes:
            if node.op == "get_attr":
                known[node] = _attribute(traced, node.target)
            elif node.op == "call_function" and all(one in known for one in node.all_input_nodes):
                known[node] = node.target(
                    *torch.fx.map_arg(node.args, known.__getitem__), **torch.fx.map_arg(node.kwargs, known.__getitem__)
                )
    return known


def _attribute(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _flat(values: Any) -> list[Any]:
    """Arguments and those inside lists, pairs as they are."""
    if isinstance(values, RealPair) or not isinstance(values, list | tuple):
        return [values]
    return [one for value in values for one in _flat(value)]


def _part(value: Any, place: int) -> Any:
    if isinstance(value, RealPair):
        return value[place]
    if isinstance(value, list | tuple):
        return type(value)(_part(one, place) for one in value)
    return value


# Fourier transforms as matrix products. PyTorch's three operations have (field, dims, norm, ...) as arguments; norm is
# 0 for a plain sum, 1 to divide by the root of the number of points, 2 to divide by their number.


def _angles(points: int) -> Float[Tensor, "n n"]:
    """2 pi i k / n, reduced modulo n first: so that the cosine of a large angle has all its digits."""
    index = torch.arange(points)
    return 2 * math.pi / points * (torch.outer(index, index) % points).double()


def _along(field: Tensor, dim: int, matrix: Tensor) -> Tensor:
    return (field.movedim(dim, -1) @ matrix).movedim(-1, dim)


def _scaled(pair: Any, norm: int, points: int) -> Any:
    if norm == 0:
        return pair
    factor = 1 / points if norm == 2 else 1 / math.sqrt(points)
    return RealPair(pair.real * factor, pair.imag * factor) if isinstance(pair, RealPair) else pair * factor


def _waves(matrix: Any, pair: Any, dim: int, sign: int) -> RealPair:
    """sum_j x_j exp(sign 2 pi i j k / n) along one dimension, all n waves."""
    real, imag = pair if isinstance(pair, RealPair) else (pair, None)
    cosines, sines = (matrix(name, real.shape[dim], real) for name in ("cosines", "sines"))
    first, second = _along(real, dim, cosines), sign * _along(real, dim, sines)
    if imag is None:
        return RealPair(first, second)
    return RealPair(first - sign * _along(imag, dim, sines), second + _along(imag, dim, cosines))


def _real_to_complex(matrix: Any, field: Tensor, dims: Sequence[int], norm: int, onesided: bool) -> RealPair:
    *others, last = dims
    pair: Any = field
    points = math.prod(field.shape[dim] for dim in dims)
    if onesided:
        kept, whole = field.shape[last] // 2 + 1, field.shape[last]
        cosines, sines = (matrix(name, whole, field)[:, :kept] for name in ("cosines", "sines"))
        pair = RealPair(_along(field, last, cosines), -_along(field, last, sines))
    else:
        pair = _waves(matrix, field, last, -1)
    for dim in others:
        pair = _waves(matrix, pair, dim, -1)
    return _scaled(pair, norm, points)


def _complex_to_complex(matrix: Any, pair: Any, dims: Sequence[int], norm: int, forward: bool) -> RealPair:
    points = math.prod(_part(pair, 0).shape[dim] for dim in dims)
    for dim in dims:
        pair = _waves(matrix, pair, dim, -1 if forward else 1)
    return _scaled(pair, norm, points)


def _complex_to_real(matrix: Any, pair: RealPair, dims: Sequence[int], norm: int, last_dim_size: int) -> Tensor:
    *others, last = dims
    points = math.prod(pair.real.shape[dim] for dim in others) * last_dim_size
    for dim in others:
        pair = _waves(matrix, pair, dim, 1)
    count = pair.real.shape[last]
    twice = pair.real.new_full((count, 1), 2.0)  # every wave stands for its conjugate, too: not the mean, nor Nyquist
    twice[0] = 1.0
    if last_dim_size % 2 == 0 and count == last_dim_size // 2 + 1:
        twice[-1] = 1.0
    cosines, sines = (twice * matrix(name, last_dim_size, pair.real)[:count] for name in ("cosines", "sines"))
    return _scaled(_along(pair.real, last, cosines) - _along(pair.imag, last, sines), norm, points)


TRANSFORMS: dict[Any, Callable[..., Any]] = {
    aten._fft_r2c.default: _real_to_complex,
    aten._fft_c2c.default: _complex_to_complex,
    aten._fft_c2r.default: _complex_to_real,
}


# Other operations on pairs.


def _bilinear(product: Callable[[Any, Any], Tensor], a: Any, b: Any) -> RealPair:
    if not isinstance(a, RealPair):
        return RealPair(product(a, b.real), product(a, b.imag))
    if not isinstance(b, RealPair):
        return RealPair(product(a.real, b), product(a.imag, b))
    return RealPair(
        product(a.real, b.real) - product(a.imag, b.imag), product(a.real, b.imag) + product(a.imag, b.real)
    )


def _plus(a: Any, b: Any, *, sign: int) -> RealPair:
    (first, second), (third, fourth) = (
        one if isinstance(one, RealPair) else RealPair(one, torch.zeros_like(one)) for one in (a, b)
    )
    return RealPair(first + sign * third, second + sign * fourth)


def _filled(pair: RealPair, value: float | int, **_: Any) -> RealPair:
    return RealPair(torch.full_like(pair.real, value), torch.zeros_like(pair.imag))


MAKES_PAIRS: dict[Any, Callable[..., Any]] = {
    aten.view_as_complex.default: lambda x: RealPair(x[..., 0], x[..., 1]),
    aten.complex.default: RealPair,
}
ON_PAIRS: dict[Any, Callable[..., Any]] = {
    aten.view_as_real.default: lambda pair: torch.stack(pair, dim=-1),
    aten.real.default: lambda pair: pair.real,
    aten.imag.default: lambda pair: pair.imag,
    aten.mul.Tensor: partial(_bilinear, torch.mul),
    aten.bmm.default: partial(_bilinear, torch.bmm),
    aten.mm.default: partial(_bilinear, torch.mm),
    aten.add.Tensor: partial(_plus, sign=1),
    aten.sub.Tensor: partial(_plus, sign=-1),
    aten._conj.default: lambda pair: RealPair(pair.real, -pair.imag),
    aten._conj_physical.default: lambda pair: RealPair(pair.real, -pair.imag),
    aten.conj_physical.default: lambda pair: RealPair(pair.real, -pair.imag),
    aten.full_like.default: _filled,
    aten.zeros_like.default: lambda pair, **_: _filled(pair, 0.0),
}
PART_BY_PART = {
    aten.slice.Tensor,
    aten.select.int,
    aten.permute.default,
    aten.transpose.int,
    aten.view.default,
    aten.reshape.default,
    aten._unsafe_view.default,
    aten.unsqueeze.default,
    aten.squeeze.dims,
    aten.squeeze.dim,
    aten.expand.default,
    aten.clone.default,
    aten.alias.default,
    aten.detach.default,
    aten.cat.default,
    aten.stack.default,
    aten.index.Tensor,
    aten.slice_scatter.default,
    aten.select_scatter.default,
    aten.copy.default,
    aten.constant_pad_nd.default,
    aten.sum.dim_IntList,
    aten.neg.default,
    aten.flip.default,
    aten.roll.default,
}
