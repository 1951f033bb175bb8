"""Checkpoints: everything a run needs to go on exactly where it was. No pickle.

A checkpoint is a folder with two files:

    tensors-NNNNNNNN.safetensors   weights, optimiser state, averaged weights
    checkpoint.json                progress, and the name, size and sha256 of the tensors file

The JSON is written last and replaced in one rename: at that moment a checkpoint comes to exist. A kill before it leaves
the previous checkpoint whole; a kill after it leaves at most an old tensors file, which the next save removes.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from ssno.base.whole import write_whole
from ssno.runs.checkpoint_folder import FORMAT, INDEX, VERSION, read_checkpoint
from ssno.training.optimiser import WeightAverage


@dataclass(frozen=True)
class Progress:
    """Where a run is: the next batch to train on, and what has been seen so far."""

    epoch: int = 0
    batch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    loss_count: float = 0.0
    best: float = float("inf")
    best_epoch: int = -1
    stale: int = 0
    finished: bool = False
    seconds: float = 0.0


def save_checkpoint(folder: Path, tensors: Mapping[str, Tensor], progress: Progress) -> None:
    """Replace the checkpoint in `folder`, or leave the old one untouched."""
    folder.mkdir(parents=True, exist_ok=True)
    content = safetensors.torch.save({name: tensor.detach().contiguous() for name, tensor in tensors.items()})
    name = f"tensors-{progress.step:08d}.safetensors"
    write_whole(folder / name, content)
    index = {
        "format": FORMAT,
        "version": VERSION,
        "tensors": {"file": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()},
        "progress": {key: (None if value == float("inf") else value) for key, value in asdict(progress).items()},
    }
    write_whole(folder / INDEX, json.dumps(index, indent=2).encode())
    for old in folder.glob("tensors-*.safetensors*"):
        if old.name != name:
            old.unlink(missing_ok=True)


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], Progress]:
    """Read a checkpoint, its checksum verified."""
    tensors, written = read_checkpoint(folder)
    try:
        progress: dict[str, Any] = {key: float("inf") if v is None else v for key, v in written.items()}
        return tensors, Progress(**progress)
    except (TypeError, AttributeError) as error:
        raise ValueError(f"The checkpoint in {folder} is not readable ({error}). Take another one.") from None


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
