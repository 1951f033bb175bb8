"""Converted datasets hold the same numbers, verify, and load by folder."""

from dataclasses import replace

import h5py
import numpy as np
import pytest

from ssno.data import convert
from ssno.data.convert import convert_data, finite_only, plan_shards, split_sets
from ssno.data.errors import DataError
from ssno.data.load import load_dataset
from ssno.data.manifest import verify
from ssno.data.readers.inspection import open_sets
from ssno.data.readers.registry import ReadOptions
from ssno.data.trajectories import Trajectories
from ssno.pde.geometry import POINT_CLOUD, SPHERE


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def test_a_converted_file_holds_the_same_numbers_and_verifies(tmp_path) -> None:
    u, f = values(10, 5, 8, 2), values(10, 8)
    np.savez(tmp_path / "mine.npz", u=u, f=f, nu=np.arange(10), scale=np.linspace(0, 1, 10).astype(np.float32))
    options = ReadOptions(axes="batch time x channel", arrays=("u",), context=("f",), dt=0.5, lengths=(4.0,))
    sets = split_sets(open_sets(tmp_path / "mine.npz", options)[0], (0.8, 0.1, 0.1))
    steps = []
    convert_data(sets, tmp_path / "mine", source="mine.npz", per_shard=3, report=lambda *done: steps.append(done))
    assert verify(tmp_path / "mine").findings == ()
    assert steps == [(3, 10), (6, 10), (8, 10), (9, 10), (10, 10)]
    train, test = load_dataset(tmp_path / "mine"), load_dataset(tmp_path / "mine", "test")
    assert (train.name, train.fields, train.context_fields) == ("mine", ("u0", "u1"), ("f",))
    assert (len(train), len(test), train.time_step, train.axes[0].length) == (8, 1, 0.5, 4.0)
    frames = train.read(slice(None))
    np.testing.assert_array_equal(frames.state, u[:8].transpose(0, 1, 3, 2))
    np.testing.assert_array_equal(frames.context[:, 2, 0], f[:8])
    np.testing.assert_array_equal(test.read([0]).state[0], u[9].transpose(0, 2, 1))
    assert train.parameters["nu"].tolist() == list(range(8))
    assert train.parameters["nu"].dtype == np.int64
    with h5py.File(tmp_path / "mine" / "train" / "shard-000.h5") as file:
        assert file["t0_fields/f"].shape == (3, 8)  # constant in time, stored once
        assert file.attrs["source"] == "mine.npz"


def test_context_that_varies_in_time_stays_so(tmp_path) -> None:
    data = Trajectories.from_array(values(3, 4, 2, 8), fields=("u", "f"), context_fields=("f",))
    convert_data({"train": data}, tmp_path / "out", source="memory")
    np.testing.assert_array_equal(load_dataset(tmp_path / "out").read([1]).context, data.read([1]).context)


@pytest.mark.parametrize("moving", [True, False])
def test_a_mask_of_missing_values_is_kept_frame_by_frame_where_it_moves(tmp_path, moving) -> None:
    u = values(4, 40, 16)
    for frame in range(40):
        u[2:, frame, frame // 35 if moving else 3] = np.nan  # stands still in the other trajectories
    np.savez(tmp_path / "mine.npz", u=u, nu=np.arange(4.0))
    options = {"axes": "batch time x", "arrays": "u", "context": "nu", "mask": "nan", "dt": 0.1, "lengths": (1.0,)}
    data = load_dataset(tmp_path / "mine.npz", "all", **options)
    convert_data({"train": data}, tmp_path / "out", source="mine.npz", per_shard=2)
    found, wanted = load_dataset(tmp_path / "out", "all").read(slice(None)), data.read(slice(None))
    np.testing.assert_array_equal(found.context, wanted.context)
    np.testing.assert_array_equal(found.state, wanted.state)
    for shard, varies in (("000", False), ("001", moving)):
        with h5py.File(tmp_path / "out" / "train" / f"shard-{shard}.h5") as file:
            assert file["t0_fields/mask"].shape == ((2, 40, 16) if varies else (2, 16))


@pytest.mark.parametrize("geometry", [SPHERE, POINT_CLOUD], ids=str)
def test_the_geometry_is_kept(tmp_path, geometry) -> None:
    data = replace(Trajectories.from_array(values(3, 4, 1, 8)), geometry=geometry)
    convert_data({"train": data}, tmp_path / "out", source="memory")
    assert load_dataset(tmp_path / "out", "all").geometry == geometry


def test_splits_of_the_source_are_kept(tmp_path, public_files) -> None:
    for split in ("train", "valid"):
        public_files.lpsda_ks(tmp_path / f"KS_{split}.h5", split)
    sets = split_sets(open_sets(tmp_path)[0], (0.8, 0.1, 0.1))
    assert {split: len(data) for split, data in sets.items()} == {"train": 4, "valid": 4}


def test_trajectories_that_are_not_finite_can_be_left_out(tmp_path) -> None:
    u = values(6, 4, 1, 8)
    u[2, 1, 0, 3] = np.nan
    data = Trajectories.from_array(u, parameters={"n": np.arange(6)})
    assert finite_only(data).parameters["n"].tolist() == [0, 1, 3, 4, 5]
    with pytest.raises(DataError, match="'u' is not finite in trajectory 2, frame 1"):
        convert_data({"train": data}, tmp_path / "out", source="memory")
    assert list(tmp_path.iterdir()) == []


def test_parameters_that_are_not_finite_are_refused(tmp_path) -> None:
    data = Trajectories.from_array(values(2, 3, 1, 8), parameters={"nu": np.array([1.0, np.inf])})
    with pytest.raises(DataError, match="Trajectory 1 of `train` is not finite at parameter 'nu'"):
        convert_data({"train": data}, tmp_path / "out", source="memory")


def test_an_interrupted_conversion_is_never_taken_for_a_dataset(tmp_path, monkeypatch) -> None:
    data = Trajectories.from_array(values(4, 3, 1, 8))
    partial = tmp_path / "out.partial"

    def killed(*_: object, **__: object) -> None:
        """As after a kill: whatever was there stays."""
        (tmp_path / "copy").mkdir()
        partial.rename(tmp_path / "copy" / "out.partial")
        raise KeyboardInterrupt

    monkeypatch.setattr(convert, "write_manifest", killed)
    with pytest.raises(KeyboardInterrupt):
        convert_data({"train": data}, tmp_path / "out", source="memory")
    monkeypatch.undo()
    (tmp_path / "copy" / "out.partial").rename(partial)
    assert (partial / "train" / "shard-000.h5").is_file()
    with pytest.raises(DataError, match="is not finished"):
        load_dataset(partial)
    convert_data({"train": data}, tmp_path / "out", source="memory")
    assert not partial.exists()
    assert len(load_dataset(tmp_path / "out", "all")) == 4


@pytest.mark.parametrize("moment", ["nothing in it", "whole, but for its name"])
def test_a_conversion_killed_between_two_steps_is_done_again(tmp_path, moment) -> None:
    data = Trajectories.from_array(values(4, 3, 1, 8))
    if moment == "nothing in it":
        (tmp_path / "out.partial").mkdir()
    else:
        convert_data({"train": data}, tmp_path / "out", source="memory")
        (tmp_path / "out").rename(tmp_path / "out.partial")
    convert_data({"train": data}, tmp_path / "out", source="memory")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_of_two_conversions_into_one_folder_the_second_is_refused(tmp_path, monkeypatch) -> None:
    data, encode = Trajectories.from_array(values(4, 3, 1, 8)), convert.encode

    def twice(*what: object, **how: object) -> bytes:
        monkeypatch.setattr(convert, "encode", encode)
        with pytest.raises(FileExistsError, match="Another conversion is writing to .*out.partial"):
            convert_data({"train": data}, tmp_path / "out", source="memory")
        return encode(*what, **how)

    monkeypatch.setattr(convert, "encode", twice)
    convert_data({"train": data}, tmp_path / "out", source="memory")
    assert len(load_dataset(tmp_path / "out", "all")) == 4


def test_nothing_of_the_users_is_overwritten_or_removed(tmp_path) -> None:
    data = Trajectories.from_array(values(2, 3, 1, 8))
    (tmp_path / "out").mkdir()
    with pytest.raises(FileExistsError, match="out exists already; choose another name"):
        convert_data({"train": data}, tmp_path / "out", source="memory")
    (tmp_path / "new.partial").mkdir()
    (tmp_path / "new.partial" / "thesis.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="is not the rest of a conversion; move it away"):
        convert_data({"train": data}, tmp_path / "new", source="memory")
    assert (tmp_path / "new.partial" / "thesis.txt").read_text() == "mine"
    with pytest.raises(DataError, match="memory has no trajectories to convert"):
        convert_data({"train": data.select(indices=[])}, tmp_path / "none", source="memory")


def test_shards_are_bounded_in_number_and_size() -> None:
    vast = Trajectories.from_array(np.broadcast_to(np.float32(0), (70_000, 2, 1, 4)))
    shards = plan_shards({"train": vast}, None)
    assert max(shard.number for shard in shards) < 1000
    assert sum(shard.count for shard in shards) == 70_000
    large = Trajectories.from_array(np.broadcast_to(np.float32(0), (8, 16, 1, 1024, 1024)))
    assert [shard.count for shard in plan_shards({"train": large}, None)] == [1] * 8
