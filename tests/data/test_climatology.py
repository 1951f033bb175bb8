"""The mean of training trajectories, frame by frame."""

from dataclasses import replace

import numpy as np
import pytest
import safetensors.torch
import torch
from tests.waves import travelling_waves

from ssno.data import normalise
from ssno.data.envelope import Climatology
from ssno.data.trajectories import Trajectories


def test_it_is_the_mean_over_trajectories_whatever_the_chunks(monkeypatch) -> None:
    values = (1e4 + np.random.default_rng(0).normal(size=(7, 5, 2, 6))).astype(np.float32)
    data = Trajectories.from_array(values)
    whole = Climatology.of(data)
    monkeypatch.setattr(normalise.chunks, "__kwdefaults__", {"size": 1})  # a trajectory at a time
    one_by_one = Climatology.of(data)
    expected = torch.from_numpy(values).double().mean(0)
    torch.testing.assert_close(whole.frames.double(), expected, rtol=1e-7, atol=0)
    torch.testing.assert_close(one_by_one.frames, whole.frames)
    mean = whole.mean_of(data)
    torch.testing.assert_close(mean.double(), expected.mean(0).expand(5, 2, 6), rtol=2e-7, atol=0)


def test_frames_are_found_by_their_times() -> None:
    data = travelling_waves(6, seed=0)
    found = Climatology.of(data)
    thinned = data.select(time_index=slice(1, None, 2))
    assert torch.equal(found.at(thinned), found.frames[1::2])
    with pytest.raises(ValueError, match="the training trajectories have no frame at t = "):
        found.at(replace(data, times=data.times + 0.5 * np.diff(data.times)[0]))
    with pytest.raises(ValueError, match=r"the training trajectories have \(fields, \*grid\) "):
        found.at(data.select(resolution=data.axes[0].points // 2))


def test_pieces_of_long_runs_have_a_mean_but_no_climatology() -> None:
    pieces = travelling_waves(4, seed=0).cut(3)
    found = Climatology.of(pieces)
    assert found.pieces
    assert found.mean_of(pieces).shape == pieces.shape[1:]
    with pytest.raises(ValueError, match="pieces of long runs, whose frame numbers mean nothing"):
        found.at(pieces)


def test_places_without_data_count_in_no_mean() -> None:
    values = np.ones((3, 2, 1, 4), np.float32)
    values[1:] = 5.0
    values[0, :, :, 2] = values[1:, :, :, 3] = np.nan
    frames = Climatology.of(Trajectories.from_array(values).masked("nan")).frames
    torch.testing.assert_close(frames[0, 0], torch.tensor([11 / 3, 11 / 3, 5.0, 1.0]))


def test_it_is_stored_and_read_back_and_a_damaged_file_is_named(tmp_path) -> None:
    found = Climatology.of(travelling_waves(3, seed=0))
    path = tmp_path / "climatology.safetensors"
    found.write(path)
    again = Climatology.read(path)
    assert torch.equal(again.frames, found.frames)
    assert (again.times == found.times).all()
    assert not again.pieces
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ValueError, match="climatology.safetensors is damaged .* made anew of the training data"):
        Climatology.read(path)
    tensors = {"frames": found.frames, "times": torch.from_numpy(found.times[1:]), "pieces": torch.tensor(False)}
    path.write_bytes(safetensors.torch.save(tensors))
    with pytest.raises(ValueError, match="is damaged .*frames"):
        Climatology.read(path)
