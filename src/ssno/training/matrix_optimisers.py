"""SOAP and Muon: optimisers that treat a weight as a matrix, with all weights of one shape handled as one batch.

SOAP (Vyas et al., arXiv 2409.11321) runs Adam in the eigenbases of Shampoo's factors. For a gradient G of m x n

    L <- b L + (1 - b) G G^T,   R <- b R + (1 - b) G^T G          factors, b = 0.95
    G' = Q_L^T G Q_R,   W <- W - rate * Q_L Adam(G') Q_R^T        Q the bases; Adam with betas 0.95, 0.95

The first step only makes factors and bases and leaves such weights as they are; every `every` steps a basis takes one
step of power iteration, the Q of the QR decomposition of L Q_L. Axes longer than 512 are not rotated.

Muon (Jordan et al., 2024) replaces the momentum of a matrix by the nearest orthogonal one, found with five steps of
Newton-Schulz, times 0.2 sqrt(max(m, n)): its entries then are as large as those of AdamW's, whose rates carry over.

What counts as a matrix: axes of length 1 are dropped and complex weights are real ones with a last axis of 2. Muon
takes (first axis) x (all others). So does SOAP where the others have at most 512 entries together; where not, they are
merged from the left into as few axes of at most 512 as possible, and every axis has its own factor: a spectral weight
(modes, in, out, 2) becomes modes x in x 2 out. Vectors and scalars get plain Adam in either.

No package was taken: pytorch-optimizer's SOAP treats one weight at a time, which is slower on our models, refuses
complex weights and stores lists, not named tensors, and torch.optim.Muon rounds single matrices to bfloat16.
heavyball compiles its steps with torch.compile, which takes minutes on a CPU before the first one.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

LONGEST_AXIS = 512
"""Longer axes are not rotated by SOAP: their factors would cost more than they bring."""
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 5

Shape = tuple[int, ...]


@runtime_checkable
class Method(Protocol):
    """How a batch of equally shaped weights is moved."""

    def shape(self, shape: Shape) -> Shape:
        """The shape in which a real weight of this shape is treated."""

    def slots(self, shape: Shape) -> dict[str, Shape]:
        """Shapes of what is stored for one such weight, besides the number of its steps."""

    def direction(self, gradient: Tensor, slots: dict[str, Tensor], step: int) -> Tensor | None:
        """What to subtract from a batch of weights at a rate of 1, in step number `step` from 1 on; None for nothing.

        All tensors have the batch as their first axis; those in `slots` are updated in place.
        """


@dataclass(frozen=True)
class Adam:
    """Adam as in `torch.optim.AdamW`, whatever the shape."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def shape(self, shape: Shape) -> Shape:
        return (math.prod(shape),)

    def slots(self, shape: Shape) -> dict[str, Shape]:
        return {"exp_avg": shape, "exp_avg_sq": shape}

    def direction(self, gradient: Tensor, slots: dict[str, Tensor], step: int) -> Tensor:
        mean, square = slots["exp_avg"], slots["exp_avg_sq"]
        mean.lerp_(gradient, 1 - self.betas[0])
        square.mul_(self.betas[1]).addcmul_(gradient, gradient, value=1 - self.betas[1])
        correction = [1 - beta**step for beta in self.betas]
        size = (square.sqrt() / math.sqrt(correction[1])).add_(self.eps)
        return (mean / size).div_(correction[0])


@dataclass(frozen=True)
class Soap:
    """Adam in slowly turning eigenbases, one for every axis of up to `LONGEST_AXIS` entries."""

    every: int = 10
    """Steps between updates of the bases."""
    adam: Adam = Adam(betas=(0.95, 0.95))

    def shape(self, shape: Shape) -> Shape:
        kept = [length for length in shape if length > 1]
        axes = kept[:2]
        for length in kept[2:]:
            if axes[-1] * length <= LONGEST_AXIS:
                axes[-1] *= length
            else:
                axes.append(length)
        return tuple(axes) or (1,)

    def rotated_axes(self, shape: Shape) -> list[int]:
        """Axes that have a basis: none of a vector."""
        return [axis for axis, length in enumerate(shape) if length <= LONGEST_AXIS] if len(shape) > 1 else []

    def slots(self, shape: Shape) -> dict[str, Shape]:
        squares = {axis: (shape[axis], shape[axis]) for axis in self.rotated_axes(shape)}
        factors = {f"factor_{axis}": square for axis, square in squares.items()}
        return self.adam.slots(shape) | factors | {f"basis_{axis}": square for axis, square in squares.items()}

    def direction(self, gradient: Tensor, slots: dict[str, Tensor], step: int) -> Tensor | None:
        axes = self.rotated_axes(tuple(gradient.shape[1:]))
        if not axes:
            return self.adam.direction(gradient, slots, step)
        if step == 1:
            self._update_factors(gradient, slots, axes)
            for axis in axes:
                slots[f"basis_{axis}"].copy_(_eigenvectors(slots[f"factor_{axis}"]))
            return None
        bases = self._bases(gradient, slots)
        moved = self.adam.direction(_rotate(gradient, bases), slots, step - 1)
        update = _rotate(moved, bases, back=True)
        self._update_factors(gradient, slots, axes)
        if (step - 1) % self.every == 0:
            self._turn_bases(slots, axes, bases)
        return update

    def _bases(self, gradient: Tensor, slots: dict[str, Tensor]) -> list[Tensor | None]:
        return [slots.get(f"basis_{axis}") for axis in range(gradient.dim() - 1)]

    def _update_factors(self, gradient: Tensor, slots: dict[str, Tensor], axes: Iterable[int]) -> None:
        beta = self.adam.betas[1]
        for axis in axes:
            rows = gradient.movedim(1 + axis, 1).flatten(2)
            slots[f"factor_{axis}"].baddbmm_(rows, rows.mT, beta=beta, alpha=1 - beta)

    def _turn_bases(self, slots: dict[str, Tensor], axes: Iterable[int], bases: list[Tensor | None]) -> None:
        """One step of power iteration, largest eigenvalue first; both moments follow into the new bases."""
        mean, square = slots["exp_avg"], slots["exp_avg_sq"]
        fixed = _rotate(mean, bases, back=True)
        for axis in axes:
            factor, basis = slots[f"factor_{axis}"], slots[f"basis_{axis}"]
            product = factor @ basis
            order = (basis * product).sum(1).argsort(dim=1, descending=True, stable=True)
            basis.copy_(_orthonormal(product.gather(2, order[:, None, :].expand_as(product))))
            along = order.reshape(-1, *(order.shape[1] if other == axis else 1 for other in range(square.dim() - 1)))
            square.copy_(square.gather(1 + axis, along.expand_as(square)))
        mean.copy_(_rotate(fixed, bases))  # `bases` are the tensors in `slots`


@dataclass(frozen=True)
class Muon:
    """Momentum with all singular values near one, in the size of AdamW's updates. For matrices only."""

    momentum: float = 0.95

    def shape(self, shape: Shape) -> Shape:
        first, *rest = [length for length in shape if length > 1]
        return first, math.prod(rest)

    def slots(self, shape: Shape) -> dict[str, Shape]:
        return {"momentum": shape}

    def direction(self, gradient: Tensor, slots: dict[str, Tensor], step: int) -> Tensor:
        momentum = slots["momentum"].lerp_(gradient, 1 - self.momentum)
        ahead = gradient.lerp(momentum, self.momentum)  # Nesterov
        return orthogonalised(ahead).mul_(0.2 * math.sqrt(max(gradient.shape[1:])))


def is_matrix(weight: Tensor) -> bool:
    """Whether a weight has at least two axes longer than 1: what Muon can treat."""
    return sum(length > 1 for length in _as_real(weight).shape) > 1


def orthogonalised(matrix: Float[Tensor, "c m n"]) -> Float[Tensor, "c m n"]:
    """U V^T of matrices U S V^T, roughly: singular values end up between 0.7 and 1.2 unless they are tiny."""
    wide = matrix.shape[1] <= matrix.shape[2]
    x = matrix if wide else matrix.mT
    x = x / torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True).clamp_(min=torch.finfo(x.dtype).tiny)
    a, b, c = NEWTON_SCHULZ
    for _ in range(NEWTON_SCHULZ_STEPS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide else x.mT.contiguous()


def _rotate(tensor: Tensor, bases: Sequence[Tensor | None], *, back: bool = False) -> Tensor:
    """Into the bases of all axes, or back; None leaves an axis as it is."""
    for basis in bases:  # each round takes the first axis to the end
        lines = tensor.flatten(2).mT
        lines = lines if basis is None else lines @ (basis.mT if back else basis)
        tensor = lines.reshape(tensor.shape[0], *tensor.shape[2:], tensor.shape[1])
    return tensor


def _eigenvectors(factor: Float[Tensor, "c n n"]) -> Float[Tensor, "c n n"]:
    """Largest eigenvalue first; in float64, since this happens once."""
    return torch.linalg.eigh(factor.to("cpu", torch.float64)).eigenvectors.flip(-1).to(factor)


def _orthonormal(matrix: Float[Tensor, "c n n"]) -> Float[Tensor, "c n n"]:
    if matrix.device.type == "mps":  # which has no QR decomposition
        return torch.linalg.qr(matrix.cpu()).Q.to(matrix)
    return torch.linalg.qr(matrix).Q


@dataclass
class _Stack:
    """Parameters that one method treats in one shape, and their state side by side."""

    method: Method
    shape: Shape
    parameters: list[nn.Parameter]
    groups: list[dict[str, Any]]
    slots: dict[str, Tensor]
    step: int


class MatrixOptimiser(torch.optim.Optimizer):
    """Groups of parameters with a `method` each; weights of equal shape move as one batch, whatever their group.

    Weight decay is decoupled, as in AdamW. State is stored for every parameter, as in any optimiser of torch; its
    tensors are views into the batches. Batches are put together anew when state was loaded or when other parameters
    have gradients, so a checkpoint knows nothing of them.
    """

    _stacks: tuple[_Stack, ...] = ()
    _built_from: tuple[tuple[Any, ...], ...] = ()

    def __init__(self, groups: Iterable[dict[str, Any]], *, lr: float):
        super().__init__(groups, {"lr": lr, "weight_decay": 0.0, "method": Adam()})

    def state_shapes(self, parameter: nn.Parameter) -> dict[str, torch.Size]:
        """Shapes of the tensors that are stored for a parameter; `step` counts, the others have its precision."""
        group = next(group for group in self.param_groups if any(parameter is one for one in group["params"]))
        method: Method = group["method"]
        slots = method.slots(method.shape(tuple(_as_real(parameter).shape)))
        return {"step": torch.Size(), **{slot: torch.Size(shape) for slot, shape in slots.items()}}

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move all parameters that have gradients."""
        for stack in self._current_stacks():
            gradients = [_as_real(p.grad).reshape(stack.shape) for p in stack.parameters if p.grad is not None]
            stack.step += 1
            stack.slots["step"].add_(1)
            direction = stack.method.direction(torch.stack(gradients), stack.slots, stack.step)
            if direction is None:
                continue
            weights = [_as_real(p) for p in stack.parameters]
            torch._foreach_mul_(weights, [1 - group["lr"] * group["weight_decay"] for group in stack.groups])
            moves = [move.reshape(w.shape) for move, w in zip(direction, weights, strict=True)]
            torch._foreach_mul_(moves, [-group["lr"] for group in stack.groups])
            torch._foreach_add_(weights, moves)

    def _current_stacks(self) -> tuple[_Stack, ...]:
        moving = [(p, group) for group in self.param_groups for p in group["params"] if p.grad is not None]
        known = [(p, group, self.state[p].get("step")) for p, group in moving]
        if len(known) != len(self._built_from) or any(
            new is not old
            for one, other in zip(known, self._built_from, strict=True)
            for new, old in zip(one, other, strict=True)
        ):
            self._stacks = self._build(moving)
            self._built_from = tuple((p, group, self.state[p]["step"]) for p, group in moving)
        return self._stacks

    def _build(self, moving: Sequence[tuple[nn.Parameter, dict[str, Any]]]) -> tuple[_Stack, ...]:
        """Batches of those parameters that can move together, and their state as views into the batches'."""
        batches: dict[tuple[Any, ...], list[tuple[nn.Parameter, dict[str, Any]]]] = {}
        for parameter, group in moving:
            real, state = _as_real(parameter), self.state[parameter]
            shape = group["method"].shape(tuple(real.shape))
            if not state:
                state["step"] = torch.zeros(())
                for slot, size in group["method"].slots(shape).items():
                    state[slot] = real.new_zeros(size)
            key = (group["method"], shape, real.dtype, real.device, int(state["step"]))
            batches.setdefault(key, []).append((parameter, group))
        stacks = []
        for (method, shape, *_, step), members in batches.items():
            parameters, groups = [p for p, _ in members], [group for _, group in members]
            slots = {slot: torch.stack([self.state[p][slot] for p in parameters]) for slot in self.state[parameters[0]]}
            for index, parameter in enumerate(parameters):
                self.state[parameter].update({slot: values[index] for slot, values in slots.items()})
            stacks.append(_Stack(method, shape, parameters, groups, slots, step))
        return tuple(stacks)


def _as_real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor
