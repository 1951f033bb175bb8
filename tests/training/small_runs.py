"""A small model, and all that a run left behind, for tests of whole runs."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.checkpoint import load_checkpoint
from ssno.runs.log import read_log


def tiny(**fields) -> SSNO:
    torch.manual_seed(0)
    return SSNO(SSNOConfig.tiny(**fields))


def outcome(folder: Path) -> dict[str, Any]:
    """Digests of all final tensors and of the saved model, and the log without its clock."""
    clocks = {"seconds", "read_mb_per_s", "waited"}
    tensors = load_checkpoint(folder / "last")[0]
    return {
        "tensors": {name: (one.shape, sha256(one.numpy().tobytes()).hexdigest()) for name, one in tensors.items()},
        "model": sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
        "log": [{name: line[name] for name in line if name not in clocks} for line in read_log(folder)],
    }
