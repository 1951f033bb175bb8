"""The losses of a few steps of training, for tests that ask whether a module learns at all."""

import torch
from torch import Tensor, nn


def losses(model: nn.Module, given: Tensor, wanted: Tensor, *, steps: int = 10, rate: float = 1e-2) -> list[float]:
    """Mean squared errors before each of so many steps of Adam."""
    optimiser = torch.optim.Adam(model.parameters(), rate)
    found = []
    for _ in range(steps):
        loss = (model(given) - wanted).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        found.append(loss.item())
    return found
