"""Samples of sets are cheap to read, however their numbers lie in the file."""

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from ssno.data.readers.inspection import WINDOW, coarseness, inspect_data, open_sets, sampled, spread
from ssno.data.readers.registry import ReadOptions
from ssno.data.trajectories import Trajectories

MIB = 2**20


def sparse(path: Path, shape: tuple[int, ...], *, fortran: bool = False) -> Path:
    """A large NPY file of zeros that takes no room."""
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": fortran, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 4 * int(np.prod(shape)))
    return path


def opened(path: Path, axes: str) -> Trajectories:
    return open_sets(path, ReadOptions(axes=axes))[0]["all"]


@pytest.mark.parametrize(("axes", "fortran"), [("x y time", False), ("batch time x", True), ("time x batch", False)])
def test_eight_gibibytes_in_any_order_are_inspected_within_one_of_memory(tmp_path, axes, fortran) -> None:
    sparse(tmp_path / "large.npy", (1024, 1024, 2048), fortran=fortran)
    program = (
        "import resource; from ssno.cli.main import main;"
        f"main(['data', 'inspect', 'large.npy', '--axes', '{axes}']);"
        "print('held', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    assert "all: looked at" in done.stdout
    assert int(done.stdout.split("held ")[1]) < MIB  # in KiB


def test_frames_that_lie_in_one_piece_are_taken_whole(tmp_path) -> None:
    data = opened(sparse(tmp_path / "large.npy", (64, 64, 1024, 1024)), "batch time x y")
    assert coarseness(data, 128 * MIB) == 1
    view, numbers = sampled(data, 128 * MIB)
    assert view.shape == (4, 8, 1, 1024, 1024)
    assert numbers.tolist() == [0, 16, 32, 48]


def test_spread_counts_the_windows_around_what_is_read(tmp_path) -> None:
    last = opened(sparse(tmp_path / "last.npy", (32, 64, 32768)), "x y time")  # 128 KiB from point to point
    assert spread(last.select(time_index=slice(2))) == 32 * 64 * (WINDOW + 2 * 4)
    assert coarseness(last, 32 * 64 * (WINDOW + 8)) == 1
    assert coarseness(last, 32 * 64 * (WINDOW + 8) - 1) == 2
    first = opened(sparse(tmp_path / "first.npy", (32768, 32, 64)), "time x y")
    assert spread(first.select(time_index=slice(2))) == 2 * 4 * 32 * 64
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["u"] = np.zeros((16, 16, 64), np.float32)
        file.create_dataset("chunked", data=np.zeros((16, 16, 64)), chunks=(16, 16, 1))
    rows = open_sets(tmp_path / "rows.h5", ReadOptions(axes="x y time", arrays=("u",)))[0]["all"]
    assert spread(rows) >= 4 * 16 * 16 * 64
    chunked = open_sets(tmp_path / "rows.h5", ReadOptions(axes="x y time", arrays=("chunked",)))[0]["all"]
    assert spread(chunked) == 0  # chunks are read whole, wherever they are
    assert spread(Trajectories.from_array(np.zeros((2, 3, 8), np.float32), axes="batch time x")) == 0


def test_a_leak_is_found_between_files_in_different_orders(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("ssno.data.readers.inspection.WINDOW", 256)  # as if the files were large
    values = np.random.default_rng(0).normal(size=(1, 64, 30, 200)).astype(np.float32)
    np.save(tmp_path / "last.npy", values)
    np.save(tmp_path / "first.npy", np.asfortranarray(values))
    axes, most = "batch x y time", 64 * 30 * 256 // 4
    steps = [coarseness(opened(tmp_path / name, axes), most) for name in ("last.npy", "first.npy")]
    assert steps == [4, 1]
    options = ReadOptions(axes=axes)
    found, sets = inspect_data(tmp_path / "first.npy", options, against=tmp_path / "last.npy", most=most)
    assert found.sets[0].step == 4  # 30 points are not a multiple
    assert found.leaks[0].frames == found.sets[0].frames > 2
    view = sampled(sets["all"], most, step=4)[0]
    assert np.array_equal(view.read([0]).state[0, 0, 0].numpy(), values[0, ::4, ::4, 0])


def test_scattered_numbers_are_read_as_they_are(tmp_path) -> None:
    values = np.random.default_rng(1).normal(size=(40, 30, 500)).astype(np.float32)
    np.save(tmp_path / "last.npy", values)
    data = opened(tmp_path / "last.npy", "x y time").select(time_index=slice(100, 400, 7))
    assert np.array_equal(data.read([0]).state[0, :, 0].numpy(), np.moveaxis(values[..., 100:400:7], 2, 0))
