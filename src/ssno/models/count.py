"""Counting parameters the way the paper does: complex numbers count as two, frozen ones count, buffers do not."""

from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from ssno.models.config import OperatorConfig

FILLING = (nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_)
"""What draws the numbers of large weights. Not in it: what repeats its draws until they suit."""


def count_parameters(model: nn.Module, *, learnable_only: bool = False) -> int:
    """Number of real parameters of a model."""
    return sum(
        parameter.numel() * (2 if parameter.is_complex() else 1)
        for parameter in model.parameters()
        if parameter.requires_grad or not learnable_only
    )


def parameters_of(config: OperatorConfig) -> int:
    """Number of real parameters of the model that is described, without making room for them."""
    with torch.random.fork_rng(devices=[]), Unfilled():
        return count_parameters(config.build())


class Unfilled(TorchFunctionMode):
    """Weights are not filled with random numbers: what is never written takes no memory.

    The meta device would do as well, but its first sum imports PyTorch's compiler, which takes a second.
    """

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        if function in FILLING:
            return options["tensor"]
        return function(*arguments, **(options or {}))
