"""Reproducible randomness: every trajectory has a random generator of its own.

Trajectory n of a split draws from  Philox(SeedSequence(seed, spawn_key=(split number, n))).  It depends on
nothing else, so any subset can be made in any order, batch or process, and is the same.
"""

from typing import Literal, get_args

import numpy as np

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


def trajectory_rng(seed: int, split: Split, index: int) -> np.random.Generator:
    """The random generator of trajectory `index` of `split` in the dataset with this `seed`."""
    if seed < 0:
        raise ValueError(f"`seed` must be 0 or more, got {seed}.")
    if split not in SPLITS:
        raise ValueError(f"`split` must be one of {', '.join(SPLITS)}, got {split!r}.")
    if index < 0:
        raise ValueError(f"`index` must be 0 or more, got {index}.")
    sequence = np.random.SeedSequence(seed, spawn_key=(SPLITS.index(split), index))
    return np.random.Generator(np.random.Philox(sequence))
