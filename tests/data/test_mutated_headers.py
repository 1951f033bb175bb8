"""Descriptions of data (manifests, headers, metadata, directories) with anything in them end in data or in our errors.

`is_mistake` is what decides between exit code 2, a message about the file, and 70, a bug of ours.
"""

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat
from tests.data.airfrans_files import Encoding, Writer, write_airfrans
from verify.mutations import mutated, reworded

from ssno.cli.main import is_mistake
from ssno.data.load import is_airfrans, load_dataset, open_folder
from ssno.data.readers.airfrans import case_fields, open_airfrans
from ssno.data.readers.registry import ReadOptions
from ssno.data.sandbox.parent import _examined


def outcomes(change: Callable[[random.Random], object], read: Callable[[], object], count: int) -> Counter[str]:
    """Change a description again and again, and count what reading ends in."""
    seen: Counter[str] = Counter()
    for number in range(count):
        changed = change(random.Random(number))
        try:
            read()
        except Exception as error:
            if isinstance(error, MemoryError) or not is_mistake(error):
                raise AssertionError(f"{number}: {error!r} at {changed}") from error
            seen["error"] += 1
        else:
            seen["data"] += 1
    return seen


@pytest.mark.usefixtures("without_child")
def test_manifests_of_airfrans(tmp_path: Path) -> None:
    write_airfrans(tmp_path)
    manifest = tmp_path / "manifest.json"
    original = json.loads(manifest.read_text())

    def change(rng: random.Random) -> str:
        text = json.dumps(mutated(original, rng)).encode()
        if rng.random() < 0.2:
            text = rng.choice([text[: rng.randrange(len(text))], text.decode().encode("utf-16"), b"\xff" + text])
        manifest.write_bytes(text)
        return repr(text)

    def read() -> None:
        found = open_airfrans(tmp_path, points=300) if is_airfrans(tmp_path) else open_folder(tmp_path, ReadOptions())
        for data in found.values():
            data.read(slice(None))

    seen = outcomes(change, read, 300)
    assert min(seen["data"], seen["error"]) > 10


@pytest.mark.usefixtures("without_child")
@pytest.mark.parametrize("encoding", [Encoding(), Encoding("raw", ""), Encoding("ascii", "")], ids=str)
def test_headers_of_vtk_files(tmp_path: Path, encoding: Encoding) -> None:
    name = write_airfrans(tmp_path)[2]
    files = [tmp_path / name / f"{name}_internal.vtu", tmp_path / name / f"{name}_aerofoil.vtp"]
    place = np.random.default_rng(0).normal(size=(9, 3))
    numbers = place[:, 0].copy()
    fields = {"U": place, "p": numbers, "nut": numbers, "implicit_distance": numbers, "Normals": place}
    lines = np.stack([np.arange(9), (np.arange(9) + 1) % 9], axis=1)
    for file, kind in zip(files, ("UnstructuredGrid", "PolyData"), strict=True):
        Writer(encoding).write(file, kind, place, fields, lines=lines)
    originals = [file.read_bytes() for file in files]

    def change(rng: random.Random) -> str:
        for file, content in zip(files, originals, strict=True):
            file.write_bytes(content)
        chosen = rng.randrange(2)
        content = reworded(originals[chosen], rng)
        files[chosen].write_bytes(content)
        return repr(content)

    def read() -> None:
        case_fields.cache_clear()
        case_fields(tmp_path, name, 9)

    seen = outcomes(change, read, 200)
    assert min(seen["data"], seen["error"]) > 10


METADATA = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [2, 4, 8],
    "data_type": "<f4",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 4, 8]}},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip"}],
    "attributes": {"dt": 0.5, "_FillValue": 9.0, "scale_factor": 2.0},
    "dimension_names": ["sample", "time", "x"],
    "fill_value": 0.0,
}


class Described:
    """An array as its metadata say, without the checks that Zarr makes."""

    def __init__(self, metadata: dict[str, Any]):
        self.shape, self.chunks = tuple(metadata["shape"]), metadata["chunk_grid"]["configuration"]["chunk_shape"]
        self.dtype, self.attrs = np.dtype(metadata["data_type"]), metadata["attributes"]
        self.metadata, self.fill_value = SimpleNamespace(dimension_names=metadata["dimension_names"]), 0.0

    def __getitem__(self, selection: Any) -> np.ndarray:
        return np.broadcast_to(np.float32(1), self.shape)[selection]


@pytest.mark.usefixtures("without_child")
def test_metadata_of_zarr_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a.zarr"
    folder.mkdir()
    package = ModuleType("zarr")
    package.config = SimpleNamespace(set=lambda options: None)  # type: ignore[attr-defined]
    package.open = lambda store, mode: Described(json.loads((folder / "zarr.json").read_text()))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "zarr", package)

    def change(rng: random.Random) -> str:
        text = json.dumps(mutated(METADATA, rng))
        (folder / "zarr.json").write_text(text[: rng.randrange(len(text))] if rng.random() < 0.1 else text)
        return text

    seen = outcomes(change, lambda: load_dataset(folder, "all").read([0]), 300)
    assert min(seen["data"], seen["error"]) > 10


def test_directories_of_matlab_files(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(3, 4, 8))
    savemat(tmp_path / "part.mat", {"u": values, "v": values, "t": np.arange(4.0)})
    original = (tmp_path / "part.mat").read_bytes()
    tags = [match.start() for match in re.finditer(rb"\x0e\x00\x00\x00", original)]  # where a variable begins

    def change(rng: random.Random) -> str:
        content = bytearray(original)
        for _ in range(rng.randint(1, 3)):
            at = rng.choice(tags) + rng.randrange(64)
            content[at : at + 4] = rng.choice([bytes(4), b"\xff" * 4, rng.randbytes(4), b"v\0\0\0", original[:4]])
        (tmp_path / "a.mat").write_bytes(content)
        return repr(content[128:])

    def read() -> None:
        _examined.cache_clear()
        load_dataset(tmp_path / "a.mat", "all", arrays="u", axes="batch time x", dt=0.1).read(slice(None))

    seen = outcomes(change, read, 300)
    assert min(seen["data"], seen["error"]) > 10
