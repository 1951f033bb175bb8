"""Counting parameters the way the paper does: complex numbers count as two, frozen ones count, buffers do not."""

from torch import nn


def count_parameters(model: nn.Module, *, learnable_only: bool = False) -> int:
    """Number of real parameters of a model."""
    return sum(
        parameter.numel() * (2 if parameter.is_complex() else 1)
        for parameter in model.parameters()
        if parameter.requires_grad or not learnable_only
    )
