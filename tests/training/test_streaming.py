"""Trajectories read file by file and shuffled within a buffer."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
import torch
from tests.training.small_runs import outcome, tiny
from tests.waves import travelling_waves

from ssno.data.load import load_dataset
from ssno.data.storage import FrameWriter, Layout
from ssno.data.trajectories import Frames, Trajectories, trajectory_bytes
from ssno.runs.log import Silent, read_log
from ssno.training.batches import BatchSource, share
from ssno.training.processes import TrainingInterrupted
from ssno.training.streaming import batches_of, block_size, most_held, needed, streamed_order
from ssno.training.train import train

FILES = np.arange(24) // 8


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Trajectories:
    """24 trajectories in three files."""
    folder = tmp_path_factory.mktemp("stored")
    waves = travelling_waves(24, seed=0)
    layout = Layout("waves", waves.fields, waves.axes, waves.times)
    for number in range(3):
        with FrameWriter(folder / f"part_{number}.h5", layout, count=8) as file:
            file.write(0, 0, waves.read(range(8 * number, 8 * number + 8)).state.numpy())
    return load_dataset(folder, "all")


def test_files_are_read_one_after_the_other_in_a_drawn_order() -> None:
    orders = [streamed_order(FILES, block=3, buffer=6, key=(0, epoch, 1)) for epoch in range(9)]
    files = [[sample // 8 for sample in chain(*order.read)] for order in orders]
    assert all(sum(np.diff(numbers) != 0) == 2 for numbers in files), "a file is left and opened again"
    assert len({tuple(numbers) for numbers in files}) > 2
    assert all(np.diff(block).tolist() == [1] * (len(block) - 1) for block in orders[0].read)
    assert {len(block) for block in orders[0].read} == {3, 2}
    assert streamed_order(FILES, block=3, buffer=6, key=(0, 3, 1)) == orders[3]


@pytest.mark.parametrize("buffer", [1, 2, 7, 24, 100])
def test_every_trajectory_is_shown_once_within_the_buffer_of_where_it_was_read(buffer) -> None:
    order = streamed_order(FILES, block=max(1, buffer // 2), buffer=buffer, key=(1, 2, 3))
    read = list(chain(*order.read))
    assert sorted(read) == sorted(order.shown) == list(range(24))
    assert all(read.index(sample) <= place + buffer - 1 for place, sample in enumerate(order.shown))
    assert buffer == 1 or order.shown != read
    batches = [order.shown[first : first + 4] for first in range(0, 24, 4)]
    assert most_held(order.read, batches) <= buffer + 4 + max(map(len, order.read))


def test_a_block_is_read_at_once_and_no_more_than_half_the_buffer(stored) -> None:
    assert block_size(stored, 100) == 50
    assert block_size(stored, 1) == 1
    assert block_size(replace(stored, limit=4 * trajectory_bytes(stored)), 100) == 4


def test_what_is_held_stays_within_its_place_and_is_what_was_read(stored) -> None:
    order = streamed_order(FILES, block=2, buffer=5, key=(4,))
    batches = [order.shown[first : first + 3] for first in range(3, 24, 3)]
    blocks = needed(order.read, batches)
    assert sorted(chain(*blocks)) == sorted(order.shown[3:])
    asked: list[int] = []

    def frames() -> Iterator[Frames]:
        for number, block in enumerate(blocks):
            asked.append(number)
            yield stored.read(block)

    for number, (batch, found) in enumerate(zip(batches, batches_of(blocks, frames(), batches), strict=True)):
        assert torch.equal(found.state, stored.read(batch).state)
        assert len(set(chain(*blocks[: len(asked)])) - set(chain(*batches[:number]))) <= most_held(blocks, batches)


@pytest.mark.parametrize(("workers", "world"), [(0, 1), (1, 2)])
def test_batches_are_the_same_whoever_reads_them(stored, workers, world) -> None:
    settings = {"batch_size": 5, "seed": 0, "buffer": 8}
    whole = [batch.samples for batch in BatchSource(stored, **settings).epoch(2)]
    source = BatchSource(stored, **settings, workers=workers, rank=world - 1, world=world)
    found = list(source.epoch(2, first=1))
    assert [batch.samples for batch in found] == [
        tuple(share(list(batch), rank=world - 1, world=world)) for batch in whole[1:]
    ]
    for batch in found:
        assert torch.equal(batch.frames.state, stored.read(batch.samples or [whole[-1][0]]).state)
    if workers:
        rates = source.reading.rates()
        assert source.reading.read == sum(batch.frames.state.nbytes for batch in found)
        assert rates["read_mb_per_s"] > 0
        assert 0 < rates["waited"] <= 1


def test_a_stopped_and_resumed_stream_ends_bitwise_as_the_uninterrupted_one(tmp_path, stored, valid_waves) -> None:
    settings = {"valid": valid_waves, "epochs": 2, "batch_size": 4, "noise_std": 0.01, "shuffle_buffer": 7}
    settings["reporter"] = Silent()
    train(tiny(), stored, folder=tmp_path / "whole", **settings)
    with pytest.raises(TrainingInterrupted):
        train(tiny(), stored, folder=tmp_path / "cut", stop_after=8, num_workers=1, **settings)
    train(tiny(), stored, folder=tmp_path / "cut", resume=True, **settings)
    assert outcome(tmp_path / "cut") == outcome(tmp_path / "whole")
    first, second = (line for line in read_log(tmp_path / "cut") if line["kind"] == "epoch")
    assert 0 < first["waited"] < 1
    assert "waited" not in second, "nothing waits for what is in memory"


@pytest.mark.usefixtures("as_users_call_it")
def test_a_buffer_holds_one_grid(stored) -> None:
    with pytest.raises(ValueError, match=r"`shuffle_buffer` is 4 and `grids` \(8, 16\): a buffer holds"):
        BatchSource(stored, batch_size=2, seed=0, buffer=4, grids=(8, 16))


def test_pieces_of_one_trajectory_are_read_with_one_request(stored, monkeypatch) -> None:
    pieces = stored.cut(2)
    asked = []
    part = type(stored.parts[0])
    read = part.read
    monkeypatch.setattr(part, "read", lambda self, *where: asked.append(where) or read(self, *where))
    found = pieces.read([1, 2, 3, 4, 5, 11, 0])
    assert len(asked) == 4, "pieces 1 to 3, 4 and 5 of the next trajectory, 11, and 0"
    for place, piece in enumerate([1, 2, 3, 4, 5, 11, 0]):
        assert torch.equal(found.state[place], pieces.read([piece]).state[0])
    every_second = stored.select(time_index=slice(0, 8, 2)).cut(2)
    assert torch.equal(
        every_second.read(range(6)).state.flatten(0, 1), stored.read(range(3)).state[:, ::2].flatten(0, 1)
    )
