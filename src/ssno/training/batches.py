"""Which trajectories come when: a function of (seed, epoch), whatever the number of workers or processes.

An epoch is one permutation cut into batches. Resuming in the middle of an epoch is starting at a later batch of the
same permutation. With several processes each takes its share of every batch.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset

from ssno.data.noise import sample_generator
from ssno.data.trajectories import Frames, Trajectories
from ssno.training.grids import drawn_grid, on_grids

ORDER = 1  # keeps the key of the permutation apart from the keys of noise and dropout


class Batch(NamedTuple):
    """Frames of some trajectories, their numbers in the dataset, the size of the whole batch, and which grid it has."""

    frames: Frames
    samples: tuple[int, ...]
    whole: int
    grid: int = 0


def epoch_batches(count: int, batch_size: int, *, seed: int, epoch: int) -> list[list[int]]:
    """The batches of an epoch over `count` trajectories, the last one perhaps smaller."""
    order = torch.randperm(count, generator=sample_generator(seed, epoch, ORDER)).tolist()
    return [order[first : first + batch_size] for first in range(0, count, batch_size)]


def share(batch: list[int], *, rank: int, world: int) -> list[int]:
    """What one of `world` processes takes of a batch; shares differ by one trajectory at most."""
    return batch[rank::world]


class BatchSource:
    """Hands out batches of an epoch, from memory or through loader processes, each on one of the `grids`."""

    def __init__(
        self,
        data: Trajectories,
        *,
        batch_size: int,
        seed: int,
        grids: Sequence[int] = (),
        workers: int = 0,
        rank: int = 0,
        world: int = 1,
    ):
        self.count, self.batch_size, self.seed = len(data), batch_size, seed
        self.rank, self.world = rank, world
        self.views = on_grids(data if workers else data.in_memory(), grids)
        self.schedule = _Schedule()
        self.loader: DataLoader[Any] | None = None
        if workers:
            self.loader = DataLoader(
                _Trajectory(self.views),
                batch_sampler=self.schedule,
                num_workers=workers,
                collate_fn=_first,
                persistent_workers=True,
                multiprocessing_context="spawn",
                generator=torch.Generator(),  # the loader draws a base seed: not from the global generator
            )

    @property
    def batches_per_epoch(self) -> int:
        return -(-self.count // self.batch_size)

    def epoch(self, epoch: int, *, first: int = 0) -> Iterator[Batch]:
        """Batches of an epoch from number `first` on."""
        whole = epoch_batches(self.count, self.batch_size, seed=self.seed, epoch=epoch)[first:]
        mine = [share(batch, rank=self.rank, world=self.world) for batch in whole]
        # A process without a share still takes part in the step: it computes one trajectory, which weighs nothing.
        grids = [
            drawn_grid(len(self.views), seed=self.seed, epoch=epoch, batch=first + number)
            for number in range(len(whole))
        ]
        wanted = [(grid, samples or batch[:1]) for grid, samples, batch in zip(grids, mine, whole, strict=True)]
        if self.loader is None:
            frames: Iterator[Frames] = (self.views[grid].read(samples) for grid, samples in wanted)
        else:
            self.schedule.batches = wanted
            frames = iter(self.loader)
        for loaded, samples, batch, grid in zip(frames, mine, whole, grids, strict=True):
            yield Batch(Frames(*loaded), tuple(samples), len(batch), grid)


class _Schedule:
    """A batch sampler whose content is set before each epoch; one batch is one request to a worker."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, list[int]]] = []

    def __iter__(self) -> Iterator[list[tuple[int, tuple[int, ...]]]]:
        return iter([[(grid, tuple(batch))] for grid, batch in self.batches])

    def __len__(self) -> int:
        return len(self.batches)


class _Trajectory(Dataset[Any]):
    def __init__(self, views: Sequence[Trajectories]):
        self.views = views

    def __getitem__(self, wanted: tuple[int, tuple[int, ...]]) -> Frames:
        grid, samples = wanted
        return self.views[grid].read(list(samples))


def _first(items: list[Frames]) -> Frames:
    return items[0]
