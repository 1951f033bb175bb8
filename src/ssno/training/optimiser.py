"""The optimiser of a run, with state-space dynamics set apart, its schedule, and an average of the weights.

Damping, frequency, step and input weight of every state-space layer get no weight decay and may have their own rate:
decaying them towards zero would pull the dynamics towards one particular system. SOAP and Muon are in
`ssno.training.matrix_optimisers`.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ssno.runs.checkpoint import Progress
from ssno.runs.options import Schedule, TrainOptions
from ssno.training.matrix_optimisers import MatrixOptimiser, Muon, Soap, is_matrix


def state_space_parameters(model: nn.Module) -> Iterator[nn.Parameter]:
    """Parameters of all layers that declare some of theirs to be state-space dynamics."""
    for module in model.modules():
        declared = getattr(module, "state_space_parameters", None)
        if callable(declared):
            yield from declared()


def make_optimiser(model: nn.Module, options: TrainOptions) -> torch.optim.Optimizer:
    """AdamW, SOAP or Muon with state-space dynamics as their own group; `peak` is the rate that the schedule scales."""
    dynamics = list(dict.fromkeys(state_space_parameters(model)))
    apart = set(map(id, dynamics))
    others = [p for p in model.parameters() if p.requires_grad and id(p) not in apart]
    ssm_rate = options.learning_rate if options.ssm_learning_rate is None else options.ssm_learning_rate
    common = {"weight_decay": options.weight_decay, "peak": options.learning_rate}
    groups: list[dict[str, Any]] = [
        {"params": others, **common},
        {"params": [p for p in dynamics if p.requires_grad], "weight_decay": 0.0, "peak": ssm_rate},
    ]
    if options.optimizer == "soap":
        groups = [{**group, "method": Soap(every=options.precondition_every)} for group in groups]
    elif options.optimizer == "muon":
        matrices = [p for p in others if is_matrix(p)]
        vectors = [p for p in others if not is_matrix(p)]
        groups = [{"params": matrices, **common, "method": Muon()}, {"params": vectors, **common}, groups[1]]
    groups = [group for group in groups if group["params"]]
    if options.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=options.learning_rate)
    return MatrixOptimiser(groups, lr=options.learning_rate)


def optimiser_bytes(model: nn.Module, options: TrainOptions) -> int:
    """How much an optimiser stores from its first step on."""
    optimiser = make_optimiser(model, options)
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    return sum(
        shape.numel() * torch.finfo(p.dtype).bits // 8
        for p in parameters
        for slot, shape in _state_shapes(optimiser, p).items()
        if slot != "step"
    )


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


# Learning rate as a function of the step: no state, so a resumed run needs none.
#
# cosine     linear rise over `warmup` of the run, then half a cosine down to 0
# one-cycle  half a cosine up from 1/25, then half a cosine down to 1e-4 of the peak
# constant   1

ONE_CYCLE_START, ONE_CYCLE_END = 1 / 25, 1e-4


def rate_factor(step: int, total: int, *, schedule: Schedule, warmup: float) -> float:
    """Learning rate at `step` of `total`, as a fraction of the peak."""
    rising = round(warmup * total)
    if schedule == "constant":
        return 1.0
    if schedule == "cosine":
        if step < rising:
            return (step + 1) / rising
        return _half_cosine(1.0, 0.0, (step - rising) / max(1, total - rising))
    if step < rising:
        return _half_cosine(ONE_CYCLE_START, 1.0, step / rising)
    return _half_cosine(1.0, ONE_CYCLE_END, (step - rising) / max(1, total - 1 - rising))


def _half_cosine(start: float, end: float, progress: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * min(1.0, progress))) / 2


# The tensors of a training run, by name, as they go into a checkpoint (`ssno.runs.checkpoint`) and come back.


def run_tensors(model: nn.Module, optimiser: torch.optim.Optimizer, average: WeightAverage | None) -> dict[str, Tensor]:
    """All tensors of a run by name: model/..., optimiser/<parameter>/<slot>, average/..."""
    tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for parameter, slots in optimiser.state.items():
        for slot, value in slots.items():
            tensors[f"optimiser/{names[id(parameter)]}/{slot}"] = torch.as_tensor(value)
    if average is not None:
        tensors |= {f"average/{name}": value for name, value in average.values.items()}
    return tensors


def restore(
    tensors: Mapping[str, Tensor],
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    average: WeightAverage | None,
    progress: Progress,
) -> dict[str, Tensor]:
    """Put the tensors of `run_tensors` back and return the best weights so far.

    Raises `ValueError` if they are not those of such a run after such progress.
    """
    parameters = dict(model.named_parameters())
    trained = [p for group in optimiser.param_groups for p in group["params"]]
    names = {id(parameter): name for name, parameter in parameters.items()}
    shapes = {names[id(parameter)]: _state_shapes(optimiser, parameter) for parameter in trained}
    moved: dict[str, dict[str, Tensor]] = {name: {} for name in parameters}
    for key, value in _below(tensors, "optimiser/").items():
        name, _, slot = key.rpartition("/")
        if name not in shapes or value.shape != shapes[name].get(slot):
            raise ValueError(f"its optimiser state {key} belongs to no parameter of the model")
        if not value.is_floating_point() or (slot != "step" and value.dtype != parameters[name].dtype.to_real()):
            raise ValueError(f"its optimiser state {key} has another type, {value.dtype}")
        moved[name][slot] = value.clone() if slot == "step" else value.clone().to(parameters[name].device)
    for name, slots in moved.items():
        if slots and (missing := [slot for slot in shapes[name] if slot not in slots]):
            raise ValueError(f"its optimiser state lacks {name}/{missing[0]}")
    if progress.step and not any(moved.values()):
        raise ValueError(f"it has no optimiser state after {progress.step} steps")
    state = {name: value.shape for name, value in model.state_dict().items()} if progress.best_epoch >= 0 else {}
    if {name: value.shape for name, value in _below(tensors, "best/").items()} != state:
        raise ValueError("its best weights are not those of the model")
    averaged = {name: value.clone() for name, value in _below(tensors, "average/").items()}
    if {name: value.shape for name, value in averaged.items()} != (
        {} if average is None else {name: value.shape for name, value in parameters.items()}
    ):
        raise ValueError("its averaged weights are not those of the model")
    try:
        model.load_state_dict(_below(tensors, "model/"))
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    for name, slots in moved.items():
        if slots:
            optimiser.state[parameters[name]] = slots
    if average is not None:
        average.values = {name: value.to(parameters[name].device) for name, value in averaged.items()}
    return _below(tensors, "best/")


def _state_shapes(optimiser: torch.optim.Optimizer, parameter: nn.Parameter) -> dict[str, torch.Size]:
    """Shapes of the tensors that an optimiser stores for a parameter."""
    if isinstance(optimiser, MatrixOptimiser):
        return optimiser.state_shapes(parameter)
    return {"step": torch.Size(), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
