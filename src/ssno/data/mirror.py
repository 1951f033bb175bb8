"""Mirror images of trajectories: more data for nothing, where the equation does not tell left from right.

    even    u(-x)     densities, temperatures, concentrations
    odd     -u(-x)    Burgers and KS in 1D, where u is a velocity; vorticity in 2D, for each axis by itself

Of a box the middle stays where it is, so walls must be alike on both sides.
"""

from collections.abc import Sequence
from typing import Literal

import torch

from ssno.data.noise import sample_generator
from ssno.data.trajectories import Frames, Trajectories

Mirror = Literal["none", "even", "odd"]
COINS = 5  # keeps the key of this draw apart from others


def mirrored(frames: Frames, mirror: Mirror, key: tuple[int, int, int], samples: Sequence[int]) -> Frames:
    """Each sample as it is or as its image along each axis, by coins drawn from (seed, epoch, step, sample)."""
    if mirror == "none":
        return frames
    n_dims, sign = frames.state.ndim - 3, -1 if mirror == "odd" else 1
    coins = torch.stack([torch.rand(n_dims, generator=sample_generator(*key, n, COINS)) < 0.5 for n in samples])
    state, context = frames
    for axis in range(n_dims):
        tossed = coins[:, axis].to(state.device).reshape(-1, *(1,) * (state.ndim - 1))
        dim = axis - n_dims
        state = torch.where(tossed, sign * state.flip(dim), state)
        context = torch.where(tossed, context.flip(dim), context)
    return Frames(state, context)


def check_mirror(mirror: Mirror, data: Trajectories) -> None:
    """Refuse data whose images are not known to obey the same equation."""
    if mirror == "none":
        return
    if data.grid_type != "cartesian":
        raise ValueError(f"`mirror` needs a box with a regular grid, but {data.name!r} is of type {data.grid_type!r}.")
    if mirror == "odd" and (len(data.fields) > 1 or data.context_fields):
        names = ", ".join((*data.fields, *data.context_fields))
        raise ValueError(
            f"`mirror` = 'odd' changes the sign of a single field without known ones, but {data.name!r} has {names}. "
            "Use 'none', or 'even' if none of them changes its sign."
        )
