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
    """Put the tensors of `run_tensors` back."""
    model.load_state_dict(_below(tensors, "model/"))
    states = _below(tensors, "optimiser/")
    for name, parameter in model.named_parameters():
        slots = _below(states, f"{name}/")
        if slots:
            optimiser.state[parameter] = {
                slot: value.clone() if slot == "step" else value.clone().to(parameter.device)
                for slot, value in slots.items()
            }
    if average is not None:
        average.values = {name: value.clone() for name, value in _below(tensors, "average/").items()}


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
