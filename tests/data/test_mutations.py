"""Damaged files end in data or in a `DataError`: no other exception, no crash, no hang."""

import os
from collections import Counter
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.io import savemat
from tests.data.open_files import close_files
from verify.mutations import mutate

from ssno.data.datasets import build_plan
from ssno.data.errors import DataError
from ssno.data.generation import generate
from ssno.data.readers.registry import ReadOptions, open_contents
from ssno.data.sandbox.parent import _examined, contents_of

PATIENCE = 20.0  # seconds of computing, here and in child processes, each of which may take two
OPTIONS = {".npz": ReadOptions(axes="batch time x"), ".npy": ReadOptions(axes="batch time x")}


@pytest.fixture(scope="module")
def originals(tmp_path_factory, public_files) -> dict[str, bytes]:
    """One small healthy file of every kind."""
    folder = tmp_path_factory.mktemp("originals")
    generate(build_plan("heat", "tiny"), folder / "heat", jobs=1)
    public_files.pdebench_burgers(folder / "burgers.hdf5")
    public_files.lpsda_ks(folder / "KS_train.h5", "train", samples=2, frames=6, points=8)
    public_files.the_well(folder / "wake.hdf5")
    public_files.netcdf4(folder / "four.nc")
    public_files.netcdf3(folder / "three.nc")
    values = np.random.default_rng(0).normal(size=(3, 4, 8))
    np.savez(folder / "stored.npz", u=values, x=np.arange(8.0))
    np.savez_compressed(folder / "packed.npz", u=values)
    np.save(folder / "array.npy", values)
    for name, compressed in (("plain.mat", False), ("packed.mat", True)):
        vorticity = values.repeat(4, axis=1).reshape(3, 4, 4, 8).astype("<f4")
        variables = {"a": vorticity[..., 0], "u": vorticity, "t": np.arange(1.0, 9.0)}
        savemat(folder / name, variables, do_compression=compressed)
    with h5py.File(folder / "solution.nc", "w") as file:  # Poseidon's layout of CE-RM
        file["solution"] = np.random.default_rng(1).normal(size=(2, 21, 5, 4, 4)).astype("<f4")
    (folder / "shard.h5").write_bytes((folder / "heat" / "valid" / "shard-000.h5").read_bytes())
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def outcome(path: Path) -> str:
    """Open a file and read all of it, as training would; "data" or "error"."""
    try:
        for data in open_contents(contents_of(path), OPTIONS.get(path.suffix, ReadOptions())).values():
            data.read(slice(None), finite=False)
    except DataError:
        return "error"
    return "data"


def computed() -> float:
    """Processor seconds of this process and its children so far: a busy or suspended machine does not count."""
    return sum(os.times()[:4])


def campaign(originals: dict[str, bytes], folder: Path, count: int, seed: int) -> Counter[str]:
    """Mutate files in turn and count what becomes of them."""
    seen: Counter[str] = Counter()
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        name = list(originals)[number % len(originals)]
        path = folder / f"{number}{Path(name).suffix}"
        path.write_bytes(mutate(originals[name], rng))
        start = computed()
        try:
            seen[outcome(path)] += 1
        except Exception as error:
            raise AssertionError(f"{name}, seed {seed}, number {number}: {type(error).__name__}: {error}") from error
        assert computed() - start < PATIENCE, f"{name}, seed {seed}, number {number} took too long"
        path.unlink()
        if number % 50 == 0:
            close_files()
            _examined.cache_clear()
    return seen


def test_healthy_files_are_read(originals, tmp_path) -> None:
    assert len(originals) == 12
    for name, data in originals.items():
        (tmp_path / name).write_bytes(data)
        assert outcome(tmp_path / name) == "data", name


def test_hundreds_of_mutated_files_end_in_data_or_in_our_error(originals, tmp_path) -> None:
    seen = campaign(originals, tmp_path, 400, seed=1)
    assert seen["error"] > 150
    assert seen["data"] > 50  # plain numbers have no checksum: a changed number is still a number


def test_every_truncation_of_a_shard_is_refused(originals, tmp_path) -> None:
    data = originals["shard.h5"]
    for cut in np.linspace(0, len(data) - 1, 25).astype(int):
        path = tmp_path / f"{cut}.h5"
        path.write_bytes(data[:cut])
        assert outcome(path) == "error", cut
