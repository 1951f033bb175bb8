"""`load_dataset`: names, folders, files, splits."""

import os
import shutil

import h5py
import numpy as np
import pytest

from ssno.data.convert import convert_data
from ssno.data.datasets import build_plan
from ssno.data.errors import DataError
from ssno.data.generation import generate
from ssno.data.load import load_dataset, parse_index
from ssno.data.manifest import MANIFEST, PROGRESS, read_manifest, seal
from ssno.data.splits import split_trajectories
from ssno.data.trajectories import Trajectories, concatenate
from ssno.data.windows import CONVENTIONS, dataset_conventions


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """A root folder with a tiny heat dataset in several shards."""
    root = tmp_path_factory.mktemp("data")
    plan = build_plan("heat", "tiny", per_shard=3)
    generate(plan, root / "heat-tiny", jobs=1)
    return root, plan


def test_a_generated_dataset_is_found_by_name_and_equals_its_solution(generated) -> None:
    root, plan = generated
    data = load_dataset("heat", "train", root=root)
    assert (data.name, len(data), data.axes) == ("heat", 8, plan.problem.axes)
    np.testing.assert_array_equal(data.times, plan.problem.times)
    parameters = [
        {name: values[n] for name, values in data.parameters.items() if name not in ("seed",)} for n in range(8)
    ]
    drawn = set(plan.problem.draw(np.random.default_rng(0)))
    solved = plan.problem.solve([{k: v for k, v in p.items() if k in drawn} for p in parameters]).state
    np.testing.assert_array_equal(data.read(slice(None)).state, solved.astype(np.float32))
    assert len(load_dataset("heat", "valid", root=root, preset="tiny")) == 2
    assert len(load_dataset(root / "heat-tiny", "all")) == 12


@pytest.mark.parametrize(
    ("name", "options", "older"),
    [
        ("heat", {}, False),
        ("heat", {}, True),
        ("burgers", {"points": 16, "cells": 16, "spectral_points": 16, "frames": 8}, False),
    ],
)
def test_without_a_validation_split_the_last_training_trajectories_are_held_out(tmp_path, name, options, older) -> None:
    folder = tmp_path / f"{name}-tiny"
    plan = build_plan(name, "tiny", counts={"train": 12, "valid": 0}, **options)
    generate(plan, folder, jobs=1)
    if older:  # manifests used to say that valid was test
        manifest = read_manifest(folder)
        manifest["recipe"]["same_as"] = {"valid": "test"}
        (folder / MANIFEST).write_bytes(seal(manifest))
        assert generate(plan, folder, jobs=1).made == 0
    train, valid, test, everything = (
        load_dataset(name, split, root=tmp_path).read(slice(None)).state for split in ("train", "valid", "test", "all")
    )
    assert (len(train), len(valid), len(test), len(everything)) == (11, 1, 2, 14)
    np.testing.assert_array_equal(everything, np.concatenate([train, valid, test]))
    assert not any(np.array_equal(one, other) for one in valid for other in test)


def test_context_of_generated_data_can_be_chosen_or_left_out(tmp_path) -> None:
    small = {"points": 8, "solver_points": 8, "frames": 2, "step": 0.1}
    counts = {"train": 2, "valid": 1, "test": 0}
    generate(build_plan("torus-vis", "tiny", counts=counts, **small), tmp_path / "torus-vis-tiny", jobs=1)
    both = load_dataset("torus-vis", root=tmp_path)
    force = load_dataset("torus-vis", root=tmp_path, context=("force",))
    none = load_dataset("torus-vis", root=tmp_path, context=("none",))
    assert [data.context_fields for data in (both, force, none)] == [("force", "viscosity"), ("force",), ()]
    np.testing.assert_array_equal(force.read([0]).context, both.read([0]).context[:, :, :1])
    np.testing.assert_array_equal(none.read([1]).state, both.read([1]).state)


def test_a_split_that_was_not_generated_is_missed(tmp_path) -> None:
    plan = build_plan("heat", "tiny", counts={"train": 1, "valid": 0, "test": 0})
    generate(plan, tmp_path / "heat-tiny", jobs=1)
    for split in ("valid", "test"):
        with pytest.raises(DataError, match=f"has no split '{split}', only train"):
            load_dataset("heat", split, root=tmp_path)


def test_a_missing_dataset_prints_the_command_that_makes_it(tmp_path, generated, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # no ./data here
    with pytest.raises(FileNotFoundError, match=r"Make it with: ssno data generate ks --viscosity 0.1 --preset small"):
        load_dataset("ks", viscosity=0.1, preset="small", root=tmp_path)
    with pytest.raises(
        FileNotFoundError, match=r"There is no data.ks-0.075-paper.* Make it with: ssno data generate ks"
    ):
        load_dataset("ks")
    with pytest.raises(FileNotFoundError, match=r"There is heat-tiny, which other .* Make it with: .* --out"):
        load_dataset("heat", preset="paper", root=generated[0])
    with pytest.raises(FileNotFoundError, match="no file or folder 'kz', and no dataset of that name"):
        load_dataset("kz")
    with pytest.raises(ValueError, match="`preset` must be one of 'tiny', 'small', 'paper', got 'huge'"):
        load_dataset("ks", preset="huge")
    with pytest.raises(ValueError, match="`split` must be one of 'train', 'valid', 'test', 'all', got 'training'"):
        load_dataset("ks", "training")


def test_an_unfinished_or_changed_folder_is_not_taken_for_a_whole_one(generated, tmp_path) -> None:
    folder = tmp_path / "heat-tiny"
    shutil.copytree(generated[0] / "heat-tiny", folder)
    shard = folder / "train" / "shard-001.h5"
    content = shard.read_bytes()
    shard.write_bytes(content[:-100])
    with pytest.raises(DataError, match=r"shard-001.h5 has \d+ bytes, expected \d+. Check the folder with"):
        load_dataset(folder)
    shard.unlink()
    with pytest.raises(DataError, match=r"shard-001.h5 is missing"):
        load_dataset(folder)
    (folder / MANIFEST).unlink()
    (folder / PROGRESS).mkdir()
    with pytest.raises(DataError, match="is not finished: run its `ssno data generate` command again"):
        load_dataset(folder)


def test_a_flipped_bit_in_a_shard_is_an_error_when_it_is_read(generated, tmp_path) -> None:
    folder = tmp_path / "heat-tiny"
    shutil.copytree(generated[0] / "heat-tiny", folder)
    shard = folder / "train" / "shard-000.h5"
    with h5py.File(shard) as file:
        place = file["t0_fields/u"].id.get_chunk_info(0)
    content = bytearray(shard.read_bytes())
    content[place.byte_offset + place.size // 2] ^= 4
    shard.write_bytes(content)
    data = load_dataset(folder)
    with pytest.raises(DataError, match="Cannot read 't0_fields/u'"):
        data.read([0])


def test_folders_in_the_layout_of_the_well_are_read_in_the_order_of_their_numbers(tmp_path, public_files) -> None:
    for number in (10, 2):
        (tmp_path / "data" / "train").mkdir(parents=True, exist_ok=True)
        public_files.the_well(tmp_path / "data" / "train" / f"part_{number}.hdf5", samples=number)
    data = load_dataset(tmp_path, "train")
    assert [part.count for part in data.parts] == [2, 10]
    with pytest.raises(DataError, match=r"has no data of split 'test': expected test/\*.h5"):
        load_dataset(tmp_path, "test")


def test_files_named_after_their_split_make_a_folder_a_dataset(tmp_path, public_files) -> None:
    for split, samples in (("train", 5), ("valid", 2)):
        public_files.lpsda_ks(tmp_path / f"KS_{split}_0.1.h5", split, samples=samples)
    assert len(load_dataset(tmp_path, "train")) == 5
    data = load_dataset(tmp_path, "valid", viscosity=0.2)
    assert (len(data), data.parameters["viscosity"][0]) == (2, 0.2)
    public_files.lpsda_ks(tmp_path / "KS_test.h5", "train")
    with pytest.raises(DataError, match=r"KS_test.h5 has no split 'test', only train"):
        load_dataset(tmp_path, "test")
    with pytest.raises(DataError, match=r"KS_test.h5 has no split 'test', only train"):
        load_dataset(tmp_path / "KS_test.h5", "test")
    assert [len(load_dataset(tmp_path / "KS_test.h5", split)) for split in ("train", "valid")] == [3, 1]


def numbered(path, *numbers: int, frames: int = 5) -> None:
    """Trajectories that hold their numbers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.array(numbers, float)[:, None, None] + np.zeros((len(numbers), frames, 8)))


def numbers_of(data: Trajectories) -> list[float]:
    return data.read(slice(None)).state[:, 0, 0, 0].tolist()


@pytest.mark.parametrize("valid", ["valid", "val", "validation"])
def test_splits_may_be_folders_of_runs_or_files(tmp_path, valid) -> None:
    runs, files = tmp_path / "runs", tmp_path / "files"
    for split, first in (("train", 0), (valid, 2), ("test", 4)):
        numbered(runs / split / "run_0.npy", first)
        numbered(runs / split / "run_1.npy", first + 1)
        numbered(files / f"{split}.npy", first, first + 1)
    for folder in (runs, files):
        for split, expected in (("train", [0, 1]), ("valid", [2, 3]), ("test", [4, 5]), ("all", [0, 1, 2, 3, 4, 5])):
            data = load_dataset(folder, split, axes="batch time x", dt=0.1, lengths=(1.0,))
            assert (data.name, numbers_of(data)) == (folder.name, expected)


@pytest.mark.parametrize("where", ["run_1.npz", "train/run_1.npz", "data/train/run_1.npz", "solution_0.nc"])
def test_files_of_a_folder_are_regular_files_inside_it(tmp_path, where) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    file = folder / where
    outside.mkdir()
    np.savez(outside / file.name.replace(".nc", ".npz"), u=np.zeros((2, 3, 4)))
    file.parent.mkdir(parents=True)
    read = {"axes": "batch time x", "dt": 0.1}
    for make, message in (
        (
            lambda: file.symlink_to(outside / file.name.replace(".nc", ".npz")),
            "is a link out of .*folder, which is not",
        ),
        (lambda: file.symlink_to("nowhere"), "is a link that leads nowhere"),
        (lambda: os.mkfifo(file), "is not a regular file"),
    ):
        make()
        with pytest.raises(DataError, match=message):
            load_dataset(folder, "train", **read)
        file.unlink()
    if file.parent != folder:
        file.parent.rmdir()
        file.parent.symlink_to(outside)
        with pytest.raises(DataError, match=r"run_1.npz is a link out of .*folder, which is not followed"):
            load_dataset(folder, "train", **read)


def test_links_within_a_folder_and_to_a_folder_are_followed(tmp_path) -> None:
    (tmp_path / "folder" / "runs").mkdir(parents=True)
    np.savez(tmp_path / "folder" / "runs" / "a.npz", u=np.zeros((2, 3, 4)))
    (tmp_path / "folder" / "train_1.npz").symlink_to("runs/a.npz")
    (tmp_path / "link").symlink_to("folder")
    assert len(load_dataset(tmp_path / "link", "all", axes="batch time x", dt=0.1)) == 2


def test_a_shard_that_leads_out_of_its_folder_is_not_loaded(generated, tmp_path) -> None:
    copy = shutil.copytree(generated[0] / "heat-tiny", tmp_path / "copy")
    shard = next(iter(sorted(copy.glob("train/*.h5"))))
    shard.rename(tmp_path / "away.h5")
    shard.symlink_to(tmp_path / "away.h5")
    with pytest.raises(DataError, match=r"is a link out of .*\. Check the folder with `ssno data verify"):
        load_dataset(copy, "train")


def test_two_folders_for_validation_are_refused_and_values_are_no_validation(tmp_path) -> None:
    for name in ("train", "val", "valid"):
        numbered(tmp_path / "both" / name / "run.npy", 1)
    with pytest.raises(DataError, match="valid and .*val both have the name of the split 'valid'. Keep one of them"):
        load_dataset(tmp_path / "both", axes="batch time x")
    for number in range(2):
        numbered(tmp_path / "values" / f"max_val_{number}.npy", number)
    assert numbers_of(load_dataset(tmp_path / "values", "all", axes="batch time x")) == [0, 1]


def test_public_burgers_uses_the_published_split_and_frames(tmp_path, public_files) -> None:
    path = tmp_path / "1D_Burgers_Sols_Nu0.001.hdf5"
    values = public_files.pdebench_burgers(path, samples=3048, frames=141, points=4)
    train, test = load_dataset(path), load_dataset(path, "test")
    assert (train.shape, test.shape) == ((1844, 20, 1, 4), (1000, 20, 1, 4))
    np.testing.assert_allclose(train.times, 0.07 * np.arange(20), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(test.read([0]).state[0, :, 0], values[2048, 0:140:7])
    every = load_dataset(path, "valid", time_index=slice(0, 141, 7))
    assert every.shape == (204, 21, 1, 4)
    np.testing.assert_array_equal(every.read([-1]).state[0, :, 0], values[2047, 0:141:7])


def test_a_small_extract_of_the_public_file_must_be_divided_by_the_user(tmp_path, public_files) -> None:
    path = tmp_path / "burgers.h5"
    public_files.pdebench_burgers(path, samples=10)
    with pytest.raises(DataError, match="published split of 'burgers' takes 3048 trajectories, .* has 10"):
        load_dataset(path)
    assert len(load_dataset(path, "train", splits=(6, 2, 2))) == 6
    assert len(load_dataset(path, "all")) == 10


@pytest.mark.parametrize("name", ["burgers", "ce-rm", "torus-vis"])
def test_the_users_own_data_follow_no_conventions_whatever_they_are_called(tmp_path, name) -> None:
    np.save(tmp_path / f"{name}.npy", np.random.default_rng(0).normal(size=(10, 24, 128, 2)))
    options = {"axes": "batch time x y", "dt": 0.1, "lengths": (1.0, 1.0)}
    data = load_dataset(tmp_path / f"{name}.npy", "all", **options)
    train = load_dataset(tmp_path / f"{name}.npy", "train", **options)
    assert (data.shape, train.shape) == ((10, 24, 1, 128, 2), (8, 24, 1, 128, 2))
    convert_data({"train": train}, tmp_path / name, source="mine")
    converted = load_dataset(tmp_path / name, "all")
    assert (converted.name, converted.shape, converted.time_step) == (name, train.shape, pytest.approx(0.1))


def test_a_file_in_the_layout_of_the_well_is_not_known_by_its_files_name(tmp_path, public_files) -> None:
    public_files.the_well(tmp_path / "ce-rm.hdf5", frames=13)
    with h5py.File(tmp_path / "ce-rm.hdf5", "a") as file:
        file.attrs.pop("dataset_name", None)
    assert len(load_dataset(tmp_path / "ce-rm.hdf5", "all").times) == 13


def test_the_users_own_file_is_divided_in_stored_order_without_overlap(tmp_path) -> None:
    values = np.arange(20.0)[:, None, None] + np.zeros((20, 5, 8))
    np.savez(tmp_path / "mine.npz", u=values)
    options = {"axes": "batch time x", "dt": 0.1, "lengths": (1.0,)}
    seen = [load_dataset(tmp_path / "mine.npz", split, **options) for split in ("train", "valid", "test")]
    numbers = [data.read(slice(None)).state[:, 0, 0, 0].tolist() for data in seen]
    assert numbers == [list(range(16)), [16, 17], [18, 19]]
    assert seen[0].select(resolution=4).shape == (16, 5, 1, 4)


def test_the_limit_of_memory_is_an_option(tmp_path) -> None:
    np.save(tmp_path / "mine.npy", np.zeros((20, 5, 8)))
    data = load_dataset(tmp_path / "mine.npy", "all", axes="batch time x", limit=4 * 5 * 8 * 10)
    assert data.read(range(10)).state.shape == (10, 5, 1, 8)
    with pytest.raises(DataError, match="Reading 11 trajectories of 'mine' takes"):
        data.read(range(11))


def test_one_long_run_is_cut_into_pieces_and_tested_on_its_future(tmp_path) -> None:
    np.save(tmp_path / "run.npy", np.arange(100.0)[:, None] + np.zeros((100, 8)))
    with pytest.raises(DataError, match="1 trajectory cannot be divided into train, valid, test. Cut long runs"):
        load_dataset(tmp_path / "run.npy", axes="time x")
    train = load_dataset(tmp_path / "run.npy", axes="time x", segment=10)
    test = load_dataset(tmp_path / "run.npy", "test", axes="time x", segment=10)
    assert (len(train), len(test)) == (8, 1)
    assert test.read([0]).state[0, :, 0, 0].tolist() == list(range(90, 100))


def test_default_reductions_apply_to_larger_grids_only(tmp_path) -> None:
    for points, used in ((128, 64), (32, 32)):
        path = tmp_path / f"{points}.h5"
        with h5py.File(path, "w") as file:
            file.attrs["dataset_name"] = "torus-vis"
            file.create_group("dimensions").attrs["spatial_dims"] = ["x", "y"]
            file["dimensions/time"] = 0.1 * np.arange(1, 31)
            for axis in "xy":
                file[f"dimensions/{axis}"] = np.arange(points) / points
            file["t0_fields/w"] = np.zeros((2, 30, points, points), "f4")
        data = load_dataset(path, "all")
        assert data.shape == (2, 3, 1, used, used)
        np.testing.assert_allclose(data.times, [0.1, 1.1, 2.1])


@pytest.mark.parametrize(
    ("total", "sizes", "counts"),
    [
        (10, (0.8, 0.1, 0.1), (8, 1, 1)),
        (3, (0.8, 0.1, 0.1), (1, 1, 1)),
        (4, (0.8, 0.1, 0.1), (2, 1, 1)),
        (3, (0.05, 0.9, 0.05), (1, 1, 1)),
        (10, (0.0, 0.25, 0.25), (0, 2, 2)),
        (7, (0.5, 0.25, 0.25), (5, 1, 1)),
        (100, (0.7, 0.0, 0.2), (70, 0, 20)),
        (100, (50, 20, 10), (50, 20, 10)),
        (9, (1, 0, 0), (9, 0, 0)),
    ],
)
def test_division_by_fractions_or_counts(total, sizes, counts) -> None:
    parts = split_trajectories(total, sizes)
    assert tuple(len(part) for part in parts.values()) == counts
    flat = [n for part in parts.values() for n in part]
    assert len(set(flat)) == len(flat)
    assert all(0 <= n < total for n in flat)


@pytest.mark.parametrize(
    ("total", "sizes", "message"),
    [
        (10, (0.8, 0.3, 0.1), "fractions that add up to 1.2, expected at most 1"),
        (10, (8, 2, 2), r"asks for \[8, 2, 2\] = 12 trajectories, there are 10"),
        (10, (0.8, 0.2), "must be three fractions or three counts for train, valid, test"),
        (10, (1.0, -0.5, 0.5), "must be three fractions or three counts"),
        (10, (0, 0, 0), "must be three fractions or three counts"),
        (2, (0.8, 0.1, 0.1), "2 trajectories cannot be divided"),
    ],
)
def test_impossible_divisions_are_refused(total, sizes, message) -> None:
    with pytest.raises(DataError, match=message):
        split_trajectories(total, sizes)


def test_files_that_do_not_belong_together_are_not_joined() -> None:
    def make(shape=(2, 3, 1, 4), **options) -> Trajectories:
        return Trajectories.from_array(np.zeros(shape), **options)

    with pytest.raises(DataError, match="These files cannot be joined: fields is"):
        concatenate([make(), make(fields=("v",))])
    with pytest.raises(DataError, match="These files cannot be joined: axes is"):
        concatenate([make(), make(shape=(2, 3, 1, 8))])
    with pytest.raises(DataError, match="These files cannot be joined: times differ"):
        concatenate([make(), make(dt=0.5)])
    joined = concatenate([make(parameters={"a": np.zeros(2), "b": np.zeros(2)}), make(parameters={"a": np.ones(2)})])
    assert {key: values.tolist() for key, values in joined.parameters.items()} == {"a": [0, 0, 1, 1]}


def test_the_table_of_defaults_matches_the_conventions_of_the_literature() -> None:
    frames = {"burgers": (201, 20), "torus-vis": (200, 20), "torus-vis-force": (200, 20), "ce-rm": (21, 11)}
    for name, (stored, used) in frames.items():
        assert len(range(stored)[CONVENTIONS[name].time_index]) == used
    assert dataset_conventions("burgers").noise == 5e-3
    assert dataset_conventions("torus-vis-force").context_time == "target"
    assert dataset_conventions("ce-rm").context_time == "input"
    assert dataset_conventions("burgers").published == 3048
    mine = dataset_conventions("mine")
    assert (mine.time_index, mine.published, mine.noise) == (slice(None), 0, 1e-3)


def test_slices_are_written_as_in_python() -> None:
    assert parse_index("0:140:7") == slice(0, 140, 7)
    assert parse_index("::10") == slice(None, None, 10)
    for wrong in ("7", "a:b", "1:2:3:4"):
        with pytest.raises(ValueError, match="`time_index` must be START:STOP:STEP"):
            parse_index(wrong)
