"""Reading a checkpoint folder: checkpoint.json names a safetensors file with its checksum (`ssno.runs.checkpoint`).

{"format": "ssno-checkpoint", "version": 1, "tensors": {"file": ..., "bytes": ..., "sha256": ...}, "progress": {...}}
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

FORMAT, VERSION = "ssno-checkpoint", 1
INDEX = "checkpoint.json"


def read_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a checkpoint, their checksum verified, and its progress as it is written."""
    index = _read_index(folder / INDEX)
    path = folder / Path(index["tensors"]["file"]).name
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"The checkpoint in {folder} lacks {path.name}. Take another one.") from None
    if hashlib.sha256(content).hexdigest() != index["tensors"]["sha256"]:
        raise ValueError(f"{path} does not match its checksum: it was damaged after it was written. Take another one.")
    try:
        return safetensors.torch.load(content), index["progress"]
    except safetensors.SafetensorError as error:
        raise ValueError(f"The checkpoint in {folder} is not readable ({error}). Take another one.") from None


def _read_index(path: Path) -> dict[str, Any]:
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no checkpoint in {path.parent}.") from None
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON ({error}). Take another checkpoint.") from None
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        raise ValueError(f"{path} is not a checkpoint of ssno: expected format {FORMAT!r}.")
    if index.get("version") != VERSION:
        found = index.get("version")
        raise ValueError(f"{path} has format version {found!r}; this ssno reads version {VERSION}. Upgrade ssno.")
    tensors = index.get("tensors")
    if not isinstance(tensors, dict) or not {"file", "sha256"} <= tensors.keys() or "progress" not in index:
        raise ValueError(f"{path} is not complete. Take another checkpoint.")
    return index
