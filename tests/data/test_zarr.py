"""Zarr stores, through a stand-in for the optional package; the real one is tried under `make verify`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from ssno.data.errors import DataError
from ssno.data.load import load_dataset
from ssno.data.readers.registry import examine, is_zarr


class FakeArray:
    """As much of a Zarr array as we use."""

    def __init__(self, values: np.ndarray, dims: tuple[str, ...] | None = None):
        self.values, self.shape, self.dtype = values, values.shape, values.dtype
        self.attrs: dict[str, object] = {}
        self.metadata = SimpleNamespace(dimension_names=dims)
        self.chunks = values.shape
        self.fill_value = 0.0

    def __getitem__(self, selection: object) -> np.ndarray:
        return self.values[selection]


class FakeGroup:
    def __init__(self, **arrays: FakeArray):
        self.arrays, self.attrs = arrays, {"dt": 0.5}

    def members(self, max_depth: int | None) -> list[tuple[str, object]]:
        assert max_depth is None
        return [("a group", self), *self.arrays.items()]

    def __getitem__(self, name: str) -> FakeArray:
        return self.arrays[name]


@pytest.fixture
def store(tmp_path, monkeypatch, without_child):
    """A folder that looks like a Zarr store, and the object that the stand-in opens there."""
    folder = tmp_path / "run.zarr"
    folder.mkdir()
    (folder / "zarr.json").write_text("{}")
    package = ModuleType("zarr")
    opened = SimpleNamespace(node=None)

    def open_store(*, store: str, mode: str) -> object:
        assert (store, mode) in ((str(folder), "r"), (str(folder.resolve()), "r"))
        if isinstance(opened.node, Exception):
            raise opened.node
        return opened.node

    package.open = open_store  # type: ignore[attr-defined]
    package.config = SimpleNamespace(set=lambda options: None)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "zarr", package)
    return folder, opened


VALUES = np.random.default_rng(0).normal(size=(4, 6, 8)).astype("<f4")


def test_a_store_with_named_dimensions_needs_no_options(store) -> None:
    folder, opened = store
    text = FakeArray(np.array(["a"]))
    opened.node = FakeGroup(u=FakeArray(VALUES, ("sample", "time", "x")), note=text)
    data = load_dataset(folder, "all", lengths=(2.0,))
    assert (data.fields, data.time_step) == (("u",), 0.5)
    np.testing.assert_array_equal(data.select(resolution=4).read([3, 1]).state[:, :, 0], VALUES[[3, 1]][:, :, ::2])
    assert examine(folder).refused == {"note": "holds <U1, not real numbers"}


def test_version_two_names_dimensions_in_an_attribute(store) -> None:
    folder, opened = store
    array = FakeArray(VALUES)
    array.attrs |= {"_ARRAY_DIMENSIONS": ["sample", "time", "x"], "units": "Pa"}
    opened.node = FakeGroup(u=array)
    data = load_dataset(folder, "all")
    assert (data.shape, data.units.fields) == ((4, 6, 1, 8), {"u": "Pa"})


def test_a_store_may_be_one_array(store) -> None:
    folder, opened = store
    opened.node = FakeArray(VALUES)
    data = load_dataset(folder, "train", axes="batch time x", splits=(2, 1, 1))
    np.testing.assert_array_equal(data.read(slice(None)).state[:, :, 0], VALUES[:2])
    assert data.fields == ("u",)


PICKLE = {"id": "pickle", "protocol": 5}
HOSTILE = {
    ".zarray": {"zarr_format": 2, "compressor": PICKLE, "filters": None, "attributes": {"codecs": "anything"}},
    "a/.zarray": {"compressor": {"id": "blosc"}, "filters": [{"id": "delta"}, PICKLE]},
    ".zmetadata": {"metadata": {"u/.zattrs": {"filters": ["x"]}, "u/.zarray": {"compressor": PICKLE}}},
    "zarr.json": {"codecs": [{"name": "bytes"}, {"name": "numcodecs.pickle", "configuration": {}}]},
    "deep/zarr.json": {
        "consolidated_metadata": {
            "metadata": {"u": {"codecs": [{"name": "sharding_indexed", "configuration": {"codecs": ["pickle"]}}]}}
        }
    },
    "an array called attributes/zarr.json": {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": {"codecs": "anything"},
        "consolidated_metadata": {
            "metadata": {
                "attributes": {"zarr_format": 2, "compressor": PICKLE, "attributes": {}},
                "zarr_format": {"zarr_format": 3, "codecs": ["bytes"]},
                "node_type": {"zarr_format": 3, "codecs": ["bytes"]},
            }
        },
    },
    "an array called zattrs/zarr.json": {
        "zarr_format": 3,
        "consolidated_metadata": {"metadata": {"u/.zattrs": {"zarr_format": 2, "compressor": PICKLE}}},
    },
    "two names/zarr.json": {"zarr_format": 3, "codecs": [{"id": "zlib", "name": "numcodecs.pickle"}]},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_codecs_that_run_what_they_read_are_refused_before_the_store_is_opened(store, name) -> None:
    folder, opened = store
    opened.node = RuntimeError("the store was opened")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(HOSTILE[name]))
    with pytest.raises(DataError, match="asks for the codec 'pickle', which ssno does not run: it may execute"):
        load_dataset(folder, axes="batch time x")


@pytest.mark.parametrize("inside", ["u", "c/u", "zarr.json", "c/0.0.0"])
def test_links_inside_a_store_are_refused_before_it_is_opened(store, tmp_path, inside) -> None:
    folder, opened = store
    opened.node = RuntimeError("the store was opened")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("{}")
    (folder / "c").mkdir()
    (folder / inside).unlink(missing_ok=True)
    (folder / inside).symlink_to(outside / "file" if "." in inside else outside)
    with pytest.raises(DataError, match=f"{inside} is a symbolic link, which ssno does not follow inside a Zarr store"):
        load_dataset(folder, axes="batch time x")


def test_a_store_itself_may_be_reached_by_a_link(store, tmp_path) -> None:
    folder, opened = store
    opened.node = FakeArray(VALUES)
    real = folder.rename(tmp_path / "elsewhere.zarr")
    folder.symlink_to(real)
    assert examine(folder).arrays["array"].shape == VALUES.shape


def test_attributes_may_hold_anything(store) -> None:
    folder, opened = store
    opened.node = FakeArray(VALUES)
    odd = {"filters": ["coffee"], "codecs": [{"name": "pickle"}]}
    (folder / "zarr.json").write_text(json.dumps({"zarr_format": 3, "codecs": [{"name": "bytes"}], "attributes": odd}))
    (folder / ".zmetadata").write_text(json.dumps({"metadata": {".zattrs": odd, "u/.zattrs": odd}}))
    assert examine(folder).arrays["array"].shape == VALUES.shape


def test_chunks_too_large_to_hold_are_refused(store) -> None:
    folder, opened = store
    opened.node = FakeGroup(u=FakeArray(VALUES))
    opened.node["u"].chunks = (2**10, 2**10, 2**6)
    assert examine(folder).refused["u"].startswith("has chunks of (1024, 1024, 64), larger than")


def test_chunks_that_are_not_stored_are_mentioned(store) -> None:
    folder, opened = store
    opened.node = FakeArray(VALUES, ("sample", "time", "x"))
    opened.node.chunks = (1, 6, 8)
    (folder / "c").mkdir()
    (folder / "c" / "0").write_bytes(b"a chunk")
    notes = load_dataset(folder, "all").notes
    assert "3 of 4 chunks of 'array' are not stored: they are all 0.0, or unwritten." in notes


@pytest.mark.parametrize("inside", [".zattrs", "c/0.0.0", "pipe"])
def test_pipes_inside_a_store_are_refused_before_it_is_opened(store, inside) -> None:
    folder, opened = store
    opened.node = RuntimeError("the store was opened")
    (folder / "c").mkdir()
    os.mkfifo(folder / inside)
    with pytest.raises(DataError, match=f"{inside} is a pipe or a device, which has no place in a Zarr store"):
        load_dataset(folder, axes="batch time x")


def test_a_store_of_a_few_bytes_cannot_make_us_count_its_chunks(store) -> None:
    folder, opened = store
    opened.node = FakeArray(VALUES[:1, :1, :1])
    opened.node.shape, opened.node.chunks = (2**26, 2**26, 8), (1, 1, 1)
    assert f"{2**55} of {2**55} chunks" in examine(folder).arrays["array"].remark


def test_whatever_the_package_trips_over_is_an_error_of_ours(store) -> None:
    folder, opened = store
    opened.node = RuntimeError("bad codec")
    with pytest.raises(DataError, match=r"run.zarr cannot be read as Zarr: RuntimeError: bad codec"):
        load_dataset(folder, axes="batch time x")
    opened.node = FakeArray(VALUES)
    data = load_dataset(folder, "all", axes="batch time x")
    opened.node = FakeArray(VALUES.astype("<f8"))
    with pytest.raises(DataError, match="is no longer <f4 but <f8"):
        data.read([0])
    opened.node = RuntimeError("gone")
    with pytest.raises(DataError, match="Cannot read 'array' in .*: RuntimeError: gone"):
        data.read([0])


def test_without_the_package_the_message_says_what_to_install(tmp_path, monkeypatch, without_child) -> None:
    (tmp_path / ".zgroup").write_text("{}")
    assert is_zarr(tmp_path)
    assert not is_zarr(tmp_path / "none")
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"pip install ssno\[zarr\]"):
        load_dataset(tmp_path)


REAL = """
import json, pickle, sys
from pathlib import Path
sys.path.append(sys.argv[1])  # after our own packages
import numpy as np, zarr
from ssno.data.errors import DataError
from ssno.data.load import load_dataset
values = np.random.default_rng(0).normal(size=(4, 6, 8)).astype("f4")
same = []
for version in (2, 3):
    path = f"{sys.argv[2]}/v{version}.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=version)
    names = {} if version == 2 else {"dimension_names": ("sample", "time", "x")}
    array = group.create_array("run/u", shape=values.shape, dtype="f4", chunks=(1, 6, 8), **names)
    array[:] = values
    if version == 2:
        array.attrs["_ARRAY_DIMENSIONS"] = ["sample", "time", "x"]
    data = load_dataset(path, "all").select(time_index=slice(1, None, 2), points=4)
    evil = f"{sys.argv[2]}/evil"
    if version == 2:
        import os, numcodecs

        class Evil:
            def __reduce__(self):
                return os.mkdir, (evil,)

        chunk = pickle.dumps(Evil())
        zarr.open_group(f"{sys.argv[2]}/bad.zarr", mode="w", zarr_format=2).create_array(
            "u", shape=values.shape, dtype="f4", chunks=values.shape, compressors=numcodecs.Pickle(), fill_value=0
        )
        Path(f"{sys.argv[2]}/bad.zarr/u/0.0.0").write_bytes(chunk)
        try:
            load_dataset(f"{sys.argv[2]}/bad.zarr", "all", axes="batch time x").read([0])
        except DataError as error:
            same.append("pickle" in str(error) and not os.path.exists(evil))
    same.append(bool(np.array_equal(data.read([3, 0]).state[:, :, 0], values[[3, 0], 1::2, ::2])))
print(json.dumps(same))
"""


@pytest.mark.verify
def test_the_real_package_gives_the_same_numbers(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages), "zarr>=3"]
    subprocess.run(install, check=True)
    command = [sys.executable, "-c", REAL, str(packages), str(tmp_path)]
    assert json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout) == [True, True, True]
