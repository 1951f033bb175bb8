"""The tensors of a training run, by name, as they go into a checkpoint (`ssno.runs.checkpoint`) and come back."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ssno.training.optimiser import WeightAverage


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
    tensors: Mapping[str, Tensor], model: nn.Module, optimiser: torch.optim.Optimizer, average: WeightAverage | None
) -> None:
    """Put the tensors of `run_tensors` back. Raises `ValueError` if they are not those of such a run."""
    parameters = dict(model.named_parameters())
    moved: dict[str, dict[str, Tensor]] = {name: {} for name in parameters}
    for key, value in _below(tensors, "optimiser/").items():
        name, _, slot = key.rpartition("/")
        if name not in parameters or value.shape not in (torch.Size(), parameters[name].shape):
            raise ValueError(f"its optimiser state {key} belongs to no parameter of the model")
        moved[name][slot] = value.clone() if slot == "step" else value.clone().to(parameters[name].device)
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


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
