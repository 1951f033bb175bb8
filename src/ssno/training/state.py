"""The tensors of a training run, by name, as they go into a checkpoint (`ssno.runs.checkpoint`) and come back."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ssno.runs.checkpoint import Progress
from ssno.training.optimiser import WeightAverage

SLOTS = ("step", "exp_avg", "exp_avg_sq")
"""What AdamW keeps for each parameter."""


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
    moved: dict[str, dict[str, Tensor]] = {name: {} for name in parameters}
    for key, value in _below(tensors, "optimiser/").items():
        name, _, slot = key.rpartition("/")
        if name not in parameters or slot not in SLOTS or value.shape != _shape(slot, parameters[name]):
            raise ValueError(f"its optimiser state {key} belongs to no parameter of the model")
        if not value.is_floating_point() or (slot != "step" and value.dtype != parameters[name].dtype):
            raise ValueError(f"its optimiser state {key} has another type, {value.dtype}")
        moved[name][slot] = value.clone() if slot == "step" else value.clone().to(parameters[name].device)
    for name, slots in moved.items():
        if slots and (missing := [slot for slot in SLOTS if slot not in slots]):
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


def _shape(slot: str, parameter: Tensor) -> torch.Size:
    return torch.Size() if slot == "step" else parameter.shape


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
