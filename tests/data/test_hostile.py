"""Small files that would eat the machine: what they cost stays within the limits, in the child and in this process."""

import json
import os
import pickle
import resource
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from ssno.data.errors import DataError
from ssno.data.load import load_dataset
from ssno.data.readers.airfrans import read_piece
from ssno.data.sandbox import parent as probe
from ssno.data.sandbox import parent as sandbox

CASE = "airFoil2D_SST_43.597_5.932_3.551_3.1_1.0_18.252"
LIMIT = 2**30 + 2**28  # of a child process: what it may take, and the libraries in it


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Iterator[sandbox.Child]:
    """A child of this test alone."""
    own = sandbox.Child()
    monkeypatch.setattr(sandbox, "_child", lambda: own)
    yield own
    own.stop()


def largest(child: sandbox.Child) -> int:
    """The most memory that a child took so far, in bytes; none if the system ended it."""
    if child.process is None:
        return 0
    status = Path(f"/proc/{child.process.pid}/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def cost(action: Callable[[], object]) -> tuple[str, float, int]:
    """The message of the error that an action ends in, its processor seconds here, and the memory it added here."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    with pytest.raises(DataError) as caught:
        action()
    after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return str(caught.value), seconds, 1024 * (after.ru_maxrss - before.ru_maxrss)


class Swollen:
    def __reduce__(self) -> tuple[object, ...]:
        return bytearray, (12 * 2**30,)


def pickled(path: Path, data: bytes, how: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a/data.pkl", data, compress_type=how)
    return path


@pytest.mark.parametrize("kind", ["bytearray", "deflated", "lists"])
def test_lists_of_tensors_that_swell(child: sandbox.Child, tmp_path: Path, kind: str) -> None:
    data, how = {
        "bytearray": (pickle.dumps([Swollen()], 2), zipfile.ZIP_STORED),
        "deflated": (b"\x80\x02" + b"]0" * 2**24 + b".", zipfile.ZIP_DEFLATED),
        "lists": (b"\x80\x02" + b"\x8a\x00" * 2**18 + b".", zipfile.ZIP_STORED),
    }[kind]
    message, seconds, memory = cost(lambda: load_dataset(pickled(tmp_path / "a.pt", data, how), "all"))
    assert "PyTorch" in message
    assert (seconds < 1, memory < 2**27, largest(child) < LIMIT) == (True, True, True)


def vtk(arrays: int, numbers: int, block: bytes) -> bytes:
    """A file of one compressed block of zeros, to which any number of arrays point."""
    array = '<DataArray type="Float32" Name="{}" format="appended" offset="0"/>'
    fields = "".join(map(array.format, range(arrays)))
    head = '<VTKFile header_type="UInt32" compressor="vtkZLibDataCompressor"><UnstructuredGrid>'
    body = f'<Piece NumberOfPoints="{numbers}"><PointData>{fields}</PointData><Points>{array}</Points></Piece>'
    sizes = np.array([1, 4 * numbers, 0, len(block)], "<u4").tobytes()
    text = f'{head}{body}</UnstructuredGrid><AppendedData encoding="raw">_'.encode()
    return text + sizes + block + b"</AppendedData></VTKFile>"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            vtk(9, 2**25, zlib.compress(bytes(2**27))),
            "134217728 bytes, more than a file of this size can hold",
        ),
        (vtk(2, 10**9, b""), "more than a file of this size can hold"),
        (b"<AppendedData " * 50_000, "is not a complete VTK file"),
        (b"<a>" * 200_000, "is not a complete VTK file"),
    ],
    ids=["shared", "declared", "tags", "deep"],
)
def test_vtk_files_that_swell(child: sandbox.Child, tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "a.vtu").write_bytes(content)
    message, seconds, memory = cost(lambda: read_piece(tmp_path / "a.vtu", tmp_path))
    assert expected in message
    assert (seconds < 1, memory < 2**27, largest(child) < LIMIT) == (True, True, True)


PACKAGE = """
import time, types, zlib
from pathlib import Path
import numpy as np
config = types.SimpleNamespace(set=lambda options: None)

class Array:
    shape, chunks, dtype, attrs, fill_value = (2, 4, 8), (1, 4, 8), np.dtype("<f4"), {}, 0.0
    metadata = types.SimpleNamespace(dimension_names=("sample", "time", "x"))

    def __init__(self, store):
        self.store = Path(store)
        assert not (self.store / "listing").exists() or self.loop()

    def loop(self):
        while True: pass

    def __getitem__(self, selection):
        chunk = (self.store / "c" / "0").read_bytes()
        assert chunk != b"loop" or self.loop()
        return np.frombuffer(zlib.decompress(chunk), "<f4").reshape(self.shape)[selection]

def open(store, mode):
    return Array(store)
"""


@pytest.fixture
def store(child: sandbox.Child, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Zarr store, and a package for the child that decodes a chunk as Zarr's does, without a limit."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "zarr.py").write_text(PACKAGE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    (tmp_path / "a.zarr" / "c").mkdir(parents=True)
    (tmp_path / "a.zarr" / "zarr.json").write_text("{}")
    (tmp_path / "a.zarr" / "c" / "0").write_bytes(zlib.compress(np.arange(64, dtype="<f4").tobytes()))
    return tmp_path / "a.zarr"


def test_chunks_are_decoded_by_the_child(store: Path) -> None:
    data = load_dataset(store, "all")
    np.testing.assert_array_equal(data.read([1]).state[0, :, 0], np.arange(64).reshape(2, 4, 8)[1])
    assert "zarr" not in sys.modules


def test_chunks_that_swell(store: Path, child: sandbox.Child) -> None:
    data = load_dataset(store, "all")
    tool = zlib.compressobj(1)
    first, again = (tool.compress(bytes(2**24)) + tool.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    (store / "c" / "0").write_bytes(first + 127 * again + tool.flush())  # 9 MB become 2 GiB
    message, seconds, memory = cost(lambda: data.read([0]))
    assert "asks for more memory than a file of its size may take" in message
    assert (seconds < 1, memory < 2**27, largest(child) < LIMIT) == (True, True, True)


@pytest.mark.parametrize("when", ["listing", "reading"])
def test_stores_that_keep_their_package_busy(store: Path, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = load_dataset(store, "all")
    monkeypatch.setattr(sandbox, "COMPUTING", 0)
    (store / "c" / "0").write_bytes(b"loop")
    if when == "listing":
        (store / "c" / "0").rename(store / "listing")
    message, seconds, _ = cost(lambda: load_dataset(store, "all") if when == "listing" else data.read([0]))
    assert "kept the library that reads it busy for more than 0 s" in message
    assert seconds < 1


def test_a_child_that_sends_more_than_was_asked_for_is_ended(store: Path, child: sandbox.Child) -> None:
    data = load_dataset(store, "all")
    stamp = data.parts[0].state[0].array.stamp
    request = {"read": "zarr", "key": "array", "selection": [[0, 2, 1], [0, 4, 1], [0, 8, 1]]}
    with pytest.raises(DataError, match="becomes 256 bytes, more than the 255 that are expected of it"):
        sandbox.read_by_child(stamp, request, work=0, size=0, most=255)
    assert child.process is None
    assert data.read([1]).state[0, 3, 0, 7] == 63


def test_files_that_describe_themselves_at_any_length(child: sandbox.Child, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        kind = h5py.string_dtype()
        for number in range(3):  # 2 MB that are shared by 16 lines of text, each time
            file.create_dataset(f"u{number}", data=np.zeros(2)).attrs.create("text", ["x" * 2**21] * 16, dtype=kind)
    message, seconds, _ = cost(lambda: probe.contents_of(tmp_path / "a.h5"))
    assert "describes itself in more than" in message
    assert seconds < 1


def test_a_case_that_is_a_pipe_or_leads_out_of_its_folder_is_not_opened(tmp_path: Path) -> None:
    folder, secret = tmp_path / "data", tmp_path / "secret.vtu"
    (folder / CASE).mkdir(parents=True)
    secret.write_text("secret")
    (folder / "manifest.json").write_text(json.dumps({"full_train": [CASE], "full_test": []}))
    file = folder / CASE / f"{CASE}_internal.vtu"
    for make, message in (
        (lambda: None, "is missing"),
        (lambda: os.mkfifo(file), "is not a regular file"),
        (lambda: file.symlink_to(secret), "is a link out of .*data, which is not followed"),
        (lambda: file.symlink_to("nowhere"), "is a link that leads nowhere"),
    ):
        file.unlink(missing_ok=True)
        make()
        with pytest.raises(DataError, match=message):
            load_dataset(folder, "valid").read([0])
