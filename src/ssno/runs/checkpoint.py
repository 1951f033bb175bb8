"""Checkpoints: everything a run needs to go on exactly where it was. No pickle.

A checkpoint is a folder with two files:

    tensors-STEP-DIGEST.safetensors   weights, optimiser state, averaged weights
    checkpoint.json                   progress, and the name, size and sha256 of the tensors file

    {"format": "ssno-checkpoint", "version": 1, "tensors": {"file", "bytes", "sha256"}, "progress": {...}}

A tensors file is named after its content, so no save ever touches the file of the checkpoint before. The JSON is
written last and replaced in one rename: at that moment a checkpoint comes to exist. A kill before it leaves the
previous one whole; a kill after it leaves at most an old tensors file, which the next save removes.
"""

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from ssno.base import DocumentError, description_from_json, read_document, read_regular, write_document, write_whole
from ssno.models.pretrained import as_safetensors

FORMAT, VERSION = "ssno-checkpoint", 1
INDEX = "checkpoint.json"
REMEDY = "Take another checkpoint of the run."
LARGEST = 2**36
"""Bytes of tensors that are read at most."""


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

    def __post_init__(self) -> None:
        for name, least in (("epoch", 0), ("batch", 0), ("step", 0), ("stale", 0), ("best_epoch", -1)):
            if not least <= getattr(self, name) < 2**63:
                raise ValueError(f"`progress.{name}` must be at least {least}, got {getattr(self, name)}.")


def save_checkpoint(folder: Path, tensors: Mapping[str, Tensor], progress: Progress) -> None:
    """Replace the checkpoint in `folder`, or leave the old one untouched. What others linked there is not ours."""
    if folder.is_symlink():
        raise ValueError(f"{folder} is a link, to {os.readlink(folder)}. Checkpoints are written to real folders only.")
    folder.mkdir(parents=True, exist_ok=True)
    content = as_safetensors(tensors)
    digest = hashlib.sha256(content).hexdigest()
    name = f"tensors-{progress.step:08d}-{digest[:16]}.safetensors"
    write_whole(folder / name, content)
    index = {"tensors": {"file": name, "bytes": len(content), "sha256": digest}, "progress": asdict(progress)}
    write_document(folder / INDEX, index, format=FORMAT, version=VERSION)
    for old in folder.glob("tensors-*.safetensors*"):
        if old.name != name:
            old.unlink(missing_ok=True)


def has_checkpoint(folder: Path) -> bool:
    """Whether a checkpoint was saved in `folder`."""
    return (folder / INDEX).is_file()


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], Progress]:
    """The tensors of a checkpoint, their checksum verified, and its progress."""
    index = _read_index(folder)
    described = index["tensors"]
    path = folder / Path(str(described["file"])).name
    try:
        content = read_regular(path, limit=LARGEST)
    except FileNotFoundError:
        raise FileNotFoundError(f"The checkpoint in {folder} lacks {path.name}. {REMEDY}") from None
    if hashlib.sha256(content).hexdigest() != described["sha256"]:
        raise DocumentError(f"{path} does not match its checksum: it was damaged after it was written. {REMEDY}")
    try:
        return safetensors.torch.load(content), _progress(index, folder)
    except safetensors.SafetensorError as error:
        raise DocumentError(f"{path} is not a readable safetensors file ({error}). {REMEDY}") from None


def read_progress(folder: Path) -> Progress:
    """How far a checkpoint is, without its tensors."""
    return _progress(_read_index(folder), folder)


def _progress(index: Mapping[str, Any], folder: Path) -> Progress:
    values = dict(index["progress"])
    values["best"] = math.inf if values.get("best") is None else values["best"]
    try:
        return description_from_json(Progress, values, where="progress.")
    except ValueError as error:
        raise DocumentError(f"The progress of the checkpoint in {folder} is damaged: {error} {REMEDY}") from None


def _read_index(folder: Path) -> dict[str, Any]:
    try:
        index = read_document(folder / INDEX, format=FORMAT, versions=(VERSION,), remedy=REMEDY)
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no checkpoint in {folder}.") from None
    tensors, progress = index.get("tensors"), index.get("progress")
    if not (isinstance(tensors, dict) and {"file", "sha256"} <= tensors.keys() and isinstance(progress, dict)):
        raise DocumentError(f"{folder / INDEX} is not complete. {REMEDY}")
    return index
