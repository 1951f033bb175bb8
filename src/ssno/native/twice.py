"""Derivatives of derivatives through operations whose backward pass is our own.

Such a backward pass computes gradients and no graph. Where one is asked for (`create_graph=True`), autograd leaves
gradients enabled inside it; then the operation is written out in PyTorch, for PyTorch to differentiate again.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def gradients(function: Callable[..., Tensor], inputs: Sequence[Tensor], grad: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of `function(*inputs)`, differentiable themselves; None for inputs that need none."""
    needed = [tensor for tensor in inputs if tensor.requires_grad]
    found = iter(torch.autograd.grad(function(*inputs), needed, grad, create_graph=True))
    return tuple(next(found) if tensor.requires_grad else None for tensor in inputs)
