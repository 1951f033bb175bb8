"""Filling a block from the arrays of a public S4 block: its state dict, saved as NumPy arrays.

Names may have `.` or `__` between their parts, leading axes of one may be missing, and what belongs to one system may
be given for fewer systems than channels; the rows are then repeated in turn, as the public code does.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor


def named_arrays(arrays: Mapping[str, np.ndarray], needed: Sequence[str], *, kind: str) -> dict[str, Tensor]:
    """The needed arrays as tensors, by their names with `__`; what is missing is named in the error."""
    named = {key.replace(".", "__"): value for key, value in arrays.items()}
    missing = [name for name in needed if name not in named]
    if missing:
        raise ValueError(
            f"`arrays` lacks {', '.join(missing)}; it has {', '.join(sorted(arrays)) or 'nothing'}. "
            f"Pass the state dict of a public S4 block in {kind} mode as NumPy arrays."
        )
    return {name: torch.as_tensor(np.array(named[name])) for name in needed}


def fill(target: Tensor, value: Tensor, *, name: str, systems: str) -> None:
    """Copy `value` into a parameter in place. Its last axes must match, its first may repeat; axes of one may differ.

    `systems` says in words what the other arrays describe, for the error message.
    """
    rows, *rest = target.shape
    trailing = [size for size in rest if size != 1]
    given = [size for size in value.shape if size != 1]
    repeats = target.numel() // max(1, value.numel())
    if given[len(given) - len(trailing) :] != trailing or repeats * value.numel() != target.numel():
        raise ValueError(
            f"`arrays[{name!r}]` has shape {tuple(value.shape)}, which does not fit {systems}; "
            f"expected something like {tuple(target.shape)}."
        )
    with torch.no_grad():
        target.copy_(value.reshape(rows // repeats, *rest).repeat(repeats, *(1 for _ in rest)))
