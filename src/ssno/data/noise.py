"""Training noise that depends on (seed, epoch, step, sample) and on nothing else.

Every sample of a batch has its own generator, seeded by a hash of those four numbers. Resuming a run,
changing the number of workers or splitting a batch over machines therefore leaves the noise of each sample as
it was.

Noise is added to what the model sees, state and context alike, after normalisation, and in training only.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor


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
