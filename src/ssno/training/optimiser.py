"""AdamW with state-space dynamics set apart, and an average of the weights.

Damping, frequency, step and input weight of every state-space layer get no weight decay and may have their own rate:
decaying them towards zero would pull the dynamics towards one particular system.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ssno.runs.options import TrainOptions


def state_space_parameters(model: nn.Module) -> Iterator[nn.Parameter]:
    """Parameters of all layers that declare some of theirs to be state-space dynamics."""
    for module in model.modules():
        declared = getattr(module, "state_space_parameters", None)
        if callable(declared):
            yield from declared()


def make_optimiser(model: nn.Module, options: TrainOptions) -> torch.optim.AdamW:
    """AdamW with two groups; `peak` remembers what the schedule scales."""
    dynamics = list(dict.fromkeys(state_space_parameters(model)))
    apart = set(map(id, dynamics))
    others = [p for p in model.parameters() if p.requires_grad and id(p) not in apart]
    ssm_rate = options.learning_rate if options.ssm_learning_rate is None else options.ssm_learning_rate
    groups = [
        {"params": others, "weight_decay": options.weight_decay, "peak": options.learning_rate},
        {"params": [p for p in dynamics if p.requires_grad], "weight_decay": 0.0, "peak": ssm_rate},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=options.learning_rate)


def set_rate(optimiser: torch.optim.Optimizer, factor: float) -> None:
    """Scale every group's peak rate."""
    for group in optimiser.param_groups:
        group["lr"] = group["peak"] * factor


class WeightAverage:
    """Exponential moving average of the parameters, without bias towards the random start."""

    def __init__(self, model: nn.Module, decay: float):
        self.decay = decay
        self.values = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Take in the weights after `step` optimiser steps."""
        pull = 1 - min(self.decay, step / (step + 9))
        for name, parameter in model.named_parameters():
            self.values[name].lerp_(parameter, pull)

    @torch.no_grad()
    def swap(self, model: nn.Module) -> None:
        """Exchange the model's weights with the average; a second call undoes the first."""
        for name, parameter in model.named_parameters():
            held: Tensor = self.values[name].clone()
            self.values[name].copy_(parameter)
            parameter.copy_(held)
