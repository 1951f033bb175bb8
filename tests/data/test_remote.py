"""Data at URLs: fetched file by file into a cache of limited size, and read as those on the disk."""

import shutil
import sys
import types
from pathlib import Path

import pytest
import torch
from tests.waves import travelling_waves

from ssno.data import remote
from ssno.data.errors import DataError
from ssno.data.load import load_dataset
from ssno.data.readers.arrays import _open
from ssno.data.remote import fetch, listed
from ssno.data.storage import FrameWriter, Layout


@pytest.fixture
def stored(tmp_path: Path, monkeypatch) -> Path:
    """A folder of three training files and one for tests; the cache is a folder of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    waves = travelling_waves(8, seed=0)
    layout = Layout("waves", waves.fields, waves.axes, waves.times)
    for number, split in enumerate(("train", "train", "train", "test")):
        place = tmp_path / "store" / split
        place.mkdir(parents=True, exist_ok=True)
        with FrameWriter(place / f"part_{number}.h5", layout, count=2) as file:
            file.write(0, 0, waves.read(range(2 * number, 2 * number + 2)).state.numpy())
    return tmp_path / "store"


def cached(stored: Path) -> list[Path]:
    return [file for file in (stored.parent / "cache/ssno/remote").iterdir() if file.suffix != ".lock"]


def test_files_at_a_url_are_those_on_the_disk(stored) -> None:
    far, near = load_dataset(f"file://{stored}", "train"), load_dataset(stored, "train")
    assert torch.equal(far.read(slice(None)).state, near.read(slice(None)).state)
    assert far.name == near.name
    assert len(cached(stored)) == 3, "the test files were not asked for"
    one = load_dataset(f"file://{stored}/test/part_3.h5", "all")
    assert torch.equal(one.read([0]).state, travelling_waves(8, seed=0).read([6]).state)


def test_what_was_not_used_for_longest_leaves_the_cache_and_comes_back(stored, monkeypatch) -> None:
    monkeypatch.setenv("SSNO_CACHE_GB", "1e-5")
    far = load_dataset(f"file://{stored}", "all")
    assert len(cached(stored)) == 4, "what was just used stays, even above the limit"
    monkeypatch.setattr(remote, "IN_USE", 0.0)
    cached(stored)[0].unlink()
    whole = far.read(slice(None)).state
    assert torch.equal(whole, load_dataset(stored, "all").read(slice(None)).state)
    assert len(cached(stored)) < 4
    assert sum(isinstance(stamp, remote.RemoteStamp) for stamp in _open) <= remote.RemoteStamp.most_open


def test_a_damaged_file_at_a_url_is_refused_in_the_sandbox_and_named(stored) -> None:
    (stored / "train" / "part_0.h5").write_bytes(b"no HDF5 at all")
    with pytest.raises(DataError, match=r"file:/.*part_0.h5 is not an HDF5"):
        load_dataset(f"file://{stored}", "train")


@pytest.mark.usefixtures("as_users_call_it")
def test_urls_that_lead_nowhere_are_refused(stored, monkeypatch) -> None:
    with pytest.raises(FileNotFoundError, match="There is nothing at file:///nowhere/at/all"):
        load_dataset("file:///nowhere/at/all")
    with pytest.raises(DataError, match="quux://a/b is no URL that can be read: Protocol not known: quux"):
        load_dataset("quux://a/b")
    (only_training := stored.parent / "only" / "train").mkdir(parents=True)
    shutil.copy(stored / "train" / "part_0.h5", only_training)
    with pytest.raises(DataError, match=r"^file:///.*/only has no data of split 'test'"):
        load_dataset(f"file://{only_training.parent}", "test")
    with pytest.raises(DataError, match=r"part_3.h5 gave more bytes than the 10 that were listed"):
        fetch(f"file://{stored}/test/part_3.h5", stored / "copy", size=10)
    with pytest.raises(DataError, match=r"part_3.h5 gave fewer bytes than the 10000000 that were listed"):
        fetch(f"file://{stored}/test/part_3.h5", stored / "copy", size=10_000_000)
    with pytest.raises(DataError, match=r"gone.h5 cannot be fetched: FileNotFoundError"):
        fetch(f"file://{stored}/gone.h5", stored / "copy", size=1)
    assert not list(stored.glob("copy*"))


def test_the_cache_has_a_limit_that_is_a_number_and_fits_the_disk(stored, monkeypatch) -> None:
    monkeypatch.setenv("SSNO_CACHE_GB", "much")
    with pytest.raises(DataError, match="SSNO_CACHE_GB must be a number of gigabytes, got 'much'"):
        load_dataset(f"file://{stored}", "train")
    monkeypatch.setenv("SSNO_CACHE_GB", "1")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: types.SimpleNamespace(free=10))
    with pytest.raises(DataError, match=r"has room for 10 bytes, .* are needed. Lower SSNO_CACHE_GB"):
        load_dataset(f"file://{stored}", "train")


class Hostile:
    """A store that lists what it likes."""

    def __init__(self, *names: str, size: int = 1):
        self.names, self.size = names, size

    def exists(self, root):
        if not self.names:
            raise RuntimeError("no access")
        return True

    def find(self, root, detail):
        return {f"{root}/{name}": {"size": self.size} for name in self.names}

    def unstrip_protocol(self, path):
        return f"far://{path}"


@pytest.mark.parametrize(
    ("store", "message"),
    [
        (Hostile("../../evil.h5"), "lists 'place/../../evil.h5', which leads out of it"),
        (Hostile("u/zarr.json"), "holds a Zarr store, which is read from a disk only"),
        (Hostile("manifest.json", size=2**40), "manifest.json has 1099511627776 bytes, too many for a description"),
        (Hostile(), "far://place cannot be listed: RuntimeError: no access"),
    ],
)
def test_what_a_store_lists_is_looked_at_first(store, message, monkeypatch) -> None:
    monkeypatch.setattr(remote, "open_system", lambda url: (store, "place"))
    listed.cache_clear()
    with pytest.raises(DataError, match=message):
        listed("far://place")


def test_missing_packages_are_named(monkeypatch) -> None:
    with pytest.raises(ImportError, match=r"gs://bucket/a: .*gcsfs"):
        remote.open_system("gs://bucket/a")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match=r"s3://b/a: URLs need the package fsspec: pip install 'ssno\[remote\]'"):
        remote.open_system("s3://b/a")
