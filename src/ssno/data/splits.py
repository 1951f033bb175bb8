"""Dividing trajectories into train, valid and test.

Sizes are three fractions, or three counts, in that order. Trajectories are taken in the order in which they are
stored: the first to train on, the last to test on, so a long run that was cut into pieces is tested on its future.
A dataset that has training trajectories but none for validation gives up the last tenth of them: test trajectories
choose nothing.
"""

from collections.abc import Sequence
from math import floor
from typing import Literal, get_args

import numpy as np

from ssno.base.checks import require_one_of
from ssno.data.errors import DataError

# Reproducible randomness: every trajectory has a random generator of its own.
#
# Trajectory n of a split draws from  Philox(SeedSequence(seed, spawn_key=(split number, n))).  It depends on
# nothing else, so any subset can be made in any order, batch or process, and is the same.

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


def trajectory_rng(seed: int, split: Split, index: int) -> np.random.Generator:
    """The random generator of trajectory `index` of `split` in the dataset with this `seed`."""
    if seed < 0:
        raise ValueError(f"`seed` must be 0 or more, got {seed}.")
    require_one_of("split", split, SPLITS)
    if index < 0:
        raise ValueError(f"`index` must be 0 or more, got {index}.")
    sequence = np.random.SeedSequence(seed, spawn_key=(SPLITS.index(split), index))
    return np.random.Generator(np.random.Philox(sequence))


FRACTIONS = (0.8, 0.1, 0.1)
TENTH = 10


def split_trajectories(total: int, sizes: Sequence[float | int] = FRACTIONS) -> dict[str, range]:
    """Which of `total` trajectories belong to which split; fractions leave none empty that should not be."""
    if len(sizes) != len(SPLITS) or any(size < 0 for size in sizes) or not sum(sizes) > 0:
        raise DataError(
            f"`splits` must be three fractions or three counts for {', '.join(SPLITS)}, got {tuple(sizes)}."
        )
    if all(float(size).is_integer() for size in sizes) and max(sizes) >= 1 and tuple(sizes) not in _WHOLE:
        counts = [int(size) for size in sizes]
        if sum(counts) > total:
            raise DataError(f"`splits` asks for {counts} = {sum(counts)} trajectories, there are {total}.")
    else:
        if sum(sizes) > 1 + 1e-9:
            raise DataError(f"`splits` are fractions that add up to {sum(sizes):g}, expected at most 1.")
        wanted = [size > 0 for size in sizes]
        if total < sum(wanted):
            raise DataError(
                f"{total} trajector{'y' if total == 1 else 'ies'} cannot be divided into {', '.join(SPLITS)}. "
                "Cut long runs into pieces with `segment` (frames per piece), or give `splits` in counts."
            )
        counts = [max(floor(size * total + 1e-9), int(size > 0)) for size in sizes]
        while sum(counts) > total:  # rounding up the small splits of a small set took more than there is
            counts[counts.index(max(counts))] -= 1
        counts[0] += max(0, floor(sum(sizes) * total + 1e-9) - sum(counts)) * wanted[0]
    train, valid, test = counts
    return {"train": range(train), "valid": range(train, train + valid), "test": range(total - test, total)}


def holdout(total: int) -> dict[str, range]:
    """Train and valid out of `total` training trajectories."""
    held = max(total // TENTH, 1) if total > 1 else 0
    return {"train": range(total - held), "valid": range(total - held, total)}


_WHOLE = {(1, 0, 0), (0, 1, 0), (0, 0, 1)}  # everything in one split, as fractions
