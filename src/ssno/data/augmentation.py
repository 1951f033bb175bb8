"""Reflection images of trajectories: more data for nothing, where the equation does not tell left from right.

    even    u(-x)     densities, temperatures, concentrations
    odd     -u(-x)    Burgers and KS in 1D, where u is a velocity; vorticity in 2D, for each axis by itself

Of a box the middle stays where it is, so walls must be alike on both sides.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ssno.data.trajectories import Frames, Trajectories

# Training noise that depends on (seed, epoch, step, sample) and on nothing else.
#
# Every sample of a batch has its own generator, seeded by a hash of those four numbers. Resuming a run,
# changing the number of workers or splitting a batch over machines therefore leaves the noise of each sample as
# it was.
#
# Noise is added to what the model sees, state and context alike, after normalisation, and in training only.


def sample_generator(*key: int) -> torch.Generator:
    """A CPU generator seeded by a hash of some non-negative integers, such as (seed, epoch, step, sample)."""
    # Two words per number and their count in front: NumPy drops leading zeros, so (1, 2) and (1, 2, 0) would
    # agree.
    words = [word for number in key for word in divmod(number, 2**32)]
    low, high = np.random.SeedSequence([len(key), *words]).generate_state(2)
    return torch.Generator().manual_seed(int(low) | int(high) << 32)


def noise_like(
    batch: Float[Tensor, "n ..."], *, std: float, seed: int, epoch: int, samples: Sequence[int], step: int = 0
) -> Float[Tensor, "n ..."]:
    """Gaussian noise of deviation `std` for each sample of a batch; `samples` are their numbers in the
    dataset.

    Drawn on the CPU in float32 and then moved, so a GPU run sees the noise of a CPU run.
    """
    if std < 0:
        raise ValueError(f"`std` must not be negative, got {std}.")
    if len(samples) != len(batch):
        raise ValueError(f"`samples` must name the {len(batch)} samples of the batch, got {len(samples)}.")
    if std == 0 or len(batch) == 0:
        return torch.zeros_like(batch)
    shape = batch.shape[1:]
    drawn = [torch.randn(shape, generator=sample_generator(seed, epoch, step, int(n))) for n in samples]
    return (std * torch.stack(drawn)).to(batch)


Reflection = Literal["none", "even", "odd"]
COINS = 5  # keeps the key of this draw apart from others


def reflected(frames: Frames, reflect: Reflection, key: tuple[int, int, int], samples: Sequence[int]) -> Frames:
    """Each sample as it is or as its image along each axis, by coins drawn from (seed, epoch, step, sample)."""
    if reflect == "none":
        return frames
    n_dims, sign = frames.state.ndim - 3, -1 if reflect == "odd" else 1
    coins = torch.stack([torch.rand(n_dims, generator=sample_generator(*key, n, COINS)) < 0.5 for n in samples])
    state, context = frames
    for axis in range(n_dims):
        tossed = coins[:, axis].to(state.device).reshape(-1, *(1,) * (state.ndim - 1))
        dim = axis - n_dims
        state = torch.where(tossed, sign * state.flip(dim), state)
        context = torch.where(tossed, context.flip(dim), context)
    return Frames(state, context)


def check_reflection(reflect: Reflection, data: Trajectories) -> None:
    """Refuse data whose images are not known to obey the same equation."""
    if reflect == "none":
        return
    data.geometry.require_box("reflect", data.name)
    if reflect == "odd" and (len(data.fields) > 1 or data.context_fields):
        names = ", ".join((*data.fields, *data.context_fields))
        raise ValueError(
            f"`reflect='odd'` needs a single field and no context fields; {data.name!r} has {names}. "
            "Use 'none', or 'even' if none of them changes its sign."
        )
