"""The order of trajectories is a function of seed and epoch."""

from itertools import chain

import pytest
import torch

from ssno.training.batches import BatchSource, epoch_batches, share


def test_an_epoch_visits_every_trajectory_once() -> None:
    batches = epoch_batches(10, 4, seed=0, epoch=3)
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert sorted(chain(*batches)) == list(range(10))


def test_order_depends_on_seed_and_epoch_alone() -> None:
    assert epoch_batches(50, 8, seed=1, epoch=2) == epoch_batches(50, 8, seed=1, epoch=2)
    assert epoch_batches(50, 8, seed=1, epoch=2) != epoch_batches(50, 8, seed=1, epoch=3)
    assert epoch_batches(50, 8, seed=1, epoch=2) != epoch_batches(50, 8, seed=2, epoch=2)


def test_shares_of_a_batch_make_the_batch() -> None:
    shares = [share([3, 1, 4, 1, 5], rank=rank, world=3) for rank in range(3)]
    assert sorted(chain(*shares)) == [1, 1, 3, 4, 5]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_the_same_from_memory_and_through_workers(waves, workers) -> None:
    source = BatchSource(waves, batch_size=6, seed=0, workers=workers)
    order = epoch_batches(len(waves), 6, seed=0, epoch=1)
    batches = list(source.epoch(1, first=1))
    assert [list(batch.samples) for batch in batches] == order[1:]
    for batch in batches:
        assert torch.equal(batch.frames.state, waves.read(list(batch.samples)).state)
    assert torch.equal(next(source.epoch(2)).frames.state, waves.read(epoch_batches(20, 6, seed=0, epoch=2)[0]).state)


def test_a_process_without_a_share_still_gets_frames(waves) -> None:
    source = BatchSource(waves.select(indices=range(4)), batch_size=3, seed=0, rank=1, world=2)
    last = list(source.epoch(0))[-1]
    assert last.samples == ()
    assert last.global_size == 1
    assert len(last.frames.state) == 1
