"""Blocks filled from the arrays of a public S4 block, to compare with its kernels and outputs."""

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from ssno.layers.memory import S4Block, S4DBlock

# Filling a block from the arrays of a public S4 block: its state dict, saved as NumPy arrays.
#
# Names may have `.` or `__` between their parts, leading axes of one may be missing, and what belongs to one system may
# be given for fewer systems than channels; the rows are then repeated in turn, as the public code does.

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


def s4d_from_public(arrays: Mapping[str, np.ndarray]) -> S4DBlock:
    """Build a forward block from the arrays of a public S4 block in diagonal mode.

    Names, with `layer__kernel__` standing before the first five and `.` allowed in place of `__`:

        A_real (h, n) log damping      A_imag (h, n) frequency w of rate = -exp(A_real) - i w
        B, C   (1, h, n, 2) complex    inv_dt (h, 1) log step
        layer__D (1, h) skip           output_linear__0__weight (2h, h), output_linear__0__bias (2h,)

    A leading axis of one may be missing, and A_real, A_imag, B may hold fewer rows, shared by the channels in turn.
    """
    value = named_arrays(arrays, PUBLIC_ARRAYS, kind="diagonal")
    channels = value["layer__D"].numel()
    pairs = value["layer__kernel__A_real"].shape[-1]
    block = S4DBlock(channels, d_state=2 * pairs).to(value["layer__D"].dtype)
    fill_block(block, value, systems=f"{channels} channels with {pairs} modes")
    return block


def s4_from_public(arrays: Mapping[str, np.ndarray], *, length: int | None = None) -> S4Block:
    """Build a block from the arrays of a public S4 block in diagonal-plus-low-rank mode.

    Names, with `layer__kernel__` standing before the first six and `.` allowed in place of `__`:

        A_real (h, n) log damping       A_imag (h, n) frequency w of rate = -exp(A_real) - i w
        P (r, h, n, 2) complex, A = diag(rate) - sum over r of P P^H      inv_dt (h, 1) log step
        B, C (1, h, n, 2) complex, C already truncated, that is multiplied by (I - Abar^length)
        layer__D (1, h) skip            output_linear__0__weight (2h, h), output_linear__0__bias (2h,)

    Leading axes of one may be missing; A_real, A_imag, P and B may hold fewer rows, shared by the channels in turn.
    `length` is the one that C was truncated to. Left out, it is read from `layer__kernel__l_kernel` or from the
    last axis of `kernel` or `x`, if one of them is there; else C is taken as truncated to each sequence's length.
    """
    value = named_arrays(arrays, (*PUBLIC_ARRAYS, "layer__kernel__P"), kind="diagonal-plus-low-rank")
    channels = value["layer__D"].numel()
    pairs = value["layer__kernel__A_real"].shape[-1]
    low_rank = value["layer__kernel__P"]
    rank = low_rank.shape[0] if low_rank.ndim == 4 else 1
    length = _stored_length(arrays) if length is None else length
    block = S4Block(channels, length=1 if length is None else length, d_state=2 * pairs)
    block.modes.length = length
    block.modes.low_rank = nn.Parameter(torch.zeros(rank, channels, pairs, 2))
    block.to(value["layer__D"].dtype)
    systems = f"{channels} channels with {pairs} modes"
    fill_block(block, value, systems=systems)
    for column, target in zip(low_rank.unflatten(0, (rank, -1)), block.modes.low_rank, strict=True):
        fill(target, column, name="layer__kernel__P", systems=systems)
    return block


def _stored_length(arrays: Mapping[str, np.ndarray]) -> int | None:
    """The length that C was truncated to, as far as the arrays tell."""
    for name, array in arrays.items():
        if name.replace(".", "__") == "layer__kernel__l_kernel":
            return int(np.asarray(array).item())
    return next((int(arrays[name].shape[-1]) for name in ("kernel", "x") if name in arrays), None)
