"""Filling a block from the arrays of a public S4 block: its state dict, saved as NumPy arrays.

Names may have `.` or `__` between their parts, leading axes of one may be missing, and what belongs to one system may
be given for fewer systems than channels; the rows are then repeated in turn, as the public code does.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor, nn

PUBLIC_ARRAYS = {
    "layer__kernel__A_real": "modes.log_damping",
    "layer__kernel__A_imag": "modes.frequency",
    "layer__kernel__B": "modes.input_weight",
    "layer__kernel__C": "modes.output_weight",
    "layer__kernel__inv_dt": "modes.log_step",
    "layer__D": "skip",
    "output_linear__0__weight": "mix.weight",
    "output_linear__0__bias": "mix.bias",
}
"""What public blocks of either kind have, and what our blocks call it."""


def named_arrays(arrays: Mapping[str, np.ndarray], needed: Iterable[str], *, kind: str) -> dict[str, Tensor]:
    """The needed arrays as tensors, by their names with `__`; what is missing is named in the error."""
    named = {key.replace(".", "__"): value for key, value in arrays.items()}
    missing = [name for name in needed if name not in named]
    if missing:
        raise ValueError(
            f"`arrays` lacks {', '.join(missing)}; it has {', '.join(sorted(arrays)) or 'nothing'}. "
            f"Pass the state dict of a public S4 block in {kind} mode as NumPy arrays."
        )
    return {name: torch.as_tensor(np.array(named[name])) for name in needed}


def fill_block(block: nn.Module, values: Mapping[str, Tensor], *, systems: str) -> None:
    """Copy what public blocks of either kind have."""
    for name, ours in PUBLIC_ARRAYS.items():
        fill(block.get_parameter(ours), values[name], name=name, systems=systems)


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
