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
from torch import Tensor

from ssno.base.whole import write_whole
from ssno.runs.checkpoint_folder import FORMAT, INDEX, VERSION, read_checkpoint


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
