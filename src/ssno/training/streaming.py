"""Data larger than memory: files are read in order, a block at a time, and shuffled within a buffer.

    files      in an order drawn from (seed, epoch)
    blocks     of neighbouring trajectories of a file, so many that a read is worth its while, in a drawn order, too
    buffer     a drawn one of the trajectories held goes into the batch, and the next one read takes its place

All of it is drawn before anything is read, so that order is a function of (seed, epoch), whoever reads and however many
do. Resuming at batch n reads the blocks again that still hold something for batches n, n + 1, ..., and nothing else.
What is held lies in one piece of memory, as large as it ever becomes in the epoch (`most_held`).

Axes: t frame, c state field, k context field, then the grid.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int

from ssno.data.trajectories import Frames, Trajectories, trajectory_bytes
from ssno.data.windows import sample_generator

BLOCK = 16 * 2**20
"""Bytes of trajectories that are read at once."""


class Order(NamedTuple):
    """In which order the trajectories of an epoch are read, block by block, and in which they are shown."""

    read: list[list[int]]
    shown: list[int]


def block_size(data: Trajectories, buffer: int) -> int:
    """How many trajectories are read at once: at most half of the buffer."""
    return max(1, min(min(BLOCK, data.limit) // trajectory_bytes(data), buffer // 2))


def streamed_order(files: Int[np.ndarray, " n"], *, block: int, buffer: int, key: Sequence[int]) -> Order:
    """The order of an epoch with `buffer` trajectories held, drawn from `key`; trajectory n is in file `files[n]`."""
    generator = sample_generator(*key)

    def shuffled(count: int) -> list[int]:
        return torch.randperm(count, generator=generator).tolist()

    runs = np.split(np.arange(len(files)), np.flatnonzero(np.diff(files)) + 1)
    read: list[list[int]] = []
    for run in shuffled(len(runs)):
        blocks = [runs[run][first : first + block].tolist() for first in range(0, len(runs[run]), block)]
        read += [blocks[place] for place in shuffled(len(blocks))]
    coming = [sample for samples in read for sample in samples]
    held, shown = coming[:buffer], []
    draws = torch.randint(buffer, (max(0, len(coming) - buffer),), generator=generator).tolist()
    for place, following in zip(draws, coming[buffer:], strict=True):
        shown.append(held[place])
        held[place] = following
    return Order(read, shown + [held[place] for place in shuffled(len(held))])


def needed(read: Sequence[Sequence[int]], batches: Sequence[Sequence[int]]) -> list[list[int]]:
    """What of every block the batches take; blocks without any are left out."""
    wanted = {sample for batch in batches for sample in batch}
    return [mine for block in read if (mine := [sample for sample in block if sample in wanted])]


def most_held(blocks: Sequence[Sequence[int]], batches: Sequence[Sequence[int]]) -> int:
    """How many trajectories are held at most between reading and showing."""
    held: set[int] = set()
    most, coming = 0, iter(blocks)
    for batch in batches:
        while not held.issuperset(batch):
            held.update(next(coming))
        most = max(most, len(held))
        held.difference_update(batch)
    return most


def batches_of(
    blocks: Sequence[Sequence[int]], frames: Iterator[Frames], batches: Sequence[Sequence[int]]
) -> Iterator[Frames]:
    """The batches, of blocks that come in order; `frames` are theirs."""
    free, place, pool = list(range(most_held(blocks, batches))), dict[int, int](), list[torch.Tensor]()
    coming = zip(blocks, frames, strict=True)
    for batch in batches:
        while not place.keys() >= {*batch}:
            samples, read = next(coming)
            if not pool:
                pool = [torch.empty(len(free), *part.shape[1:]) for part in read]
            slots = [free.pop() for _ in samples]
            place.update(zip(samples, slots, strict=True))
            for held, part in zip(pool, read, strict=True):
                held[slots] = part
            del read
        slots = [place.pop(sample) for sample in batch]
        free += slots
        yield Frames(*(held[slots] for held in pool))
