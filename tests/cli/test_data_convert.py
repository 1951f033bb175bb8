"""`ssno data convert` as a user calls it."""

import json

import numpy as np
import pytest

from ssno.cli.main import main
from ssno.data.load import load_dataset


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    values = np.random.default_rng(0).normal(size=(10, 12, 8)).astype(np.float32)
    np.savez("mine.npz", u=values)
    return values


def test_a_file_becomes_a_dataset_that_verifies_and_loads(folder, capsys) -> None:
    main(["data", "convert", "mine.npz", "mine", "--axes", "batch time x", "--dt", "0.1", "--lengths", "2"])
    printed = capsys.readouterr().out
    assert "8 train, 1 valid, 1 test" in printed
    assert "Train on it: ssno train mine" in printed
    main(["data", "verify", "mine"])
    np.testing.assert_array_equal(load_dataset("mine").read(slice(None)).state[:, :, 0], folder[:8])


def test_counts_frames_points_pieces_and_shards_can_be_chosen(folder, capsys) -> None:
    options = ["--axes", "batch time x", "--splits", "4", "2", "1", "--per-shard", "3", "--json"]
    more = ["--time-index", "::2", "--resolution", "4", "--reduction", "mean", "--segment", "3", "--periodic", "none"]
    main(["data", "convert", "mine.npz", "mine", *options, *more])
    result = json.loads(capsys.readouterr().out)
    assert result["trajectories"] == {"train": 4, "valid": 2, "test": 1}
    assert (result["frames"], result["grid"], result["written"]) == (3, [4], True)
    assert result["bytes_on_disk"] > 1000
    data = load_dataset("mine")
    expected = folder[:, ::2].reshape(20, 3, 4, 2).mean(-1)[:4]
    np.testing.assert_allclose(data.read(slice(None)).state[:, :, 0], expected, rtol=1e-6, atol=1e-7)
    assert [part.count for part in data.parts] == [3, 1]
    assert not data.axes[0].periodic


def test_a_dry_run_writes_nothing(folder, tmp_path, capsys) -> None:
    main(["data", "convert", "mine.npz", "mine", "--axes", "batch time x", "--dry-run"])
    printed = capsys.readouterr().out
    assert "mine: dry run" in printed
    assert "before compression" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["mine.npz"]


def test_bad_trajectories_stop_it_unless_they_are_to_be_dropped(folder, capsys) -> None:
    folder[3, 2, 1] = np.nan
    np.savez("bad.npz", u=folder, f=np.ones(8))
    options = ["--axes", "batch time x", "--arrays", "u", "--fields", "v", "--context", "f"]
    with pytest.raises(SystemExit, match="2"):
        main(["data", "convert", "bad.npz", "good", *options])
    assert "'v' is not finite in trajectory 3, frame 2" in capsys.readouterr().err
    main(["data", "convert", "bad.npz", "good", *options, "--drop-not-finite"])
    data = load_dataset("good", "all")
    assert (len(data), data.fields, data.context_fields) == (9, ("v",), ("f",))
    assert "context fields" in capsys.readouterr().out


def test_trajectories_whose_parameters_are_not_finite_can_be_dropped(folder, capsys) -> None:
    np.savez("meta.npz", u=folder, quality=np.array([1.0] * 3 + [np.nan] + [1.0] * 6))
    options = ["--axes", "batch time x", "--arrays", "u", "--drop-not-finite"]
    main(["data", "convert", "meta.npz", "good", *options])
    data = load_dataset("good", "all")
    assert len(data) == 9
    np.testing.assert_array_equal(data.read(slice(None)).state[:, :, 0], np.delete(folder, 3, axis=0))


def test_shards_hold_at_least_one_trajectory(folder, tmp_path, capsys) -> None:
    for number in ("0", "-3"):
        with pytest.raises(SystemExit, match="2"):
            main(["data", "convert", "mine.npz", "mine", "--axes", "batch time x", "--per-shard", number])
        assert f"`--per-shard` must be at least 1, got {number}." in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()


def test_an_existing_folder_is_left_alone(folder, tmp_path, capsys) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(SystemExit, match="2"):
        main(["data", "convert", "mine.npz", "mine", "--axes", "batch time x"])
    assert "mine exists already; choose another name" in capsys.readouterr().err


def test_the_viscosity_of_a_ks_file_is_stored(folder, tmp_path) -> None:
    import h5py

    with h5py.File("KS_train.h5", "w") as file:
        group = file.create_group("train")
        group["pde_3-8"] = np.random.default_rng(0).normal(size=(4, 3, 8))
        group["x"] = np.tile(np.arange(8.0), (4, 1))
        group["t"] = np.tile(np.arange(3.0), (4, 1))
    main(["data", "convert", "KS_train.h5", "ks-mine", "--viscosity", "0.2"])
    assert load_dataset("ks-mine", "all").parameters["viscosity"].tolist() == [0.2] * 4
