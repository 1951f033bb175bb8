"""Derivatives of derivatives through operations whose backward pass is our own.

Such a backward pass computes gradients and no graph. Where one is asked for (`create_graph=True`), autograd leaves
gradients enabled inside it; then the operation is written out in PyTorch, for PyTorch to differentiate again.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def gradients(function: Callable[..., Tensor], inputs: Sequence[Tensor], grad: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of `function(*inputs)`, differentiable themselves; None for inputs that need none.

    One input may depend on another (a layer used twice, an unrolled model), and that path is not the function's: its
    gradients are those of aliases, which depend on nothing but their own input.
    """
    aliases = [tensor.view_as(tensor) if tensor.requires_grad else tensor for tensor in inputs]
    needed = [alias for alias in aliases if alias.requires_grad]
    found = iter(torch.autograd.grad(function(*aliases), needed, grad, create_graph=True))
    return tuple(next(found) if alias.requires_grad else None for alias in aliases)
