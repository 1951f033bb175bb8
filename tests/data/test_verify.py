"""Verification finds every flipped bit and everything that is missing, extra or does not make sense."""

import hashlib
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from ssno.data.datasets import Plan
from ssno.data.generation import generate
from ssno.data.manifest import MANIFEST, read_manifest, seal, verify
from ssno.pde.problems.heat import AdvectionDiffusion

PLAN = Plan(
    AdvectionDiffusion(points=16, frames=4, waves=2, lmax=3, velocity=(1.0, 0.5)),
    {"train": 5, "valid": 2, "test": 2},
    per_shard=3,
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original") / "flow"
    generate(PLAN, folder, jobs=1)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(original, tmp_path / "flow"))


def findings(folder: Path) -> list[tuple[str, str]]:
    return [(finding.file, finding.what) for finding in verify(folder).findings]


def forge(folder: Path, path: str, change: Callable[[h5py.File], None]) -> None:
    """Change a shard, then list its new fingerprint in a manifest with a fitting seal: only the content is wrong."""
    with h5py.File(folder / path, "r+") as file:
        change(file)
    data = (folder / path).read_bytes()
    manifest = read_manifest(folder)
    for shard in manifest["shards"]:
        if shard["path"] == path:
            shard |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / MANIFEST).write_bytes(seal(manifest))


def test_a_fresh_dataset_is_fine(original: Path) -> None:
    heard: list[tuple[int, int]] = []
    verdict = verify(original, report=lambda done, total: heard.append((done, total)))
    assert verdict.fine
    assert (verdict.shards, verdict.trajectories) == (4, {"train": 5, "valid": 2, "test": 2})
    assert heard[-1] == (verdict.bytes, verdict.bytes)


def test_80_of_80_single_flipped_bits_are_found(folder: Path) -> None:
    rng = random.Random(0)
    everything = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    sizes = [path.stat().st_size for path in everything]
    for _ in range(80):
        path = rng.choices(everything, weights=sizes)[0]
        bit = rng.randrange(8 * path.stat().st_size)
        intact = path.read_bytes()
        damaged = bytearray(intact)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        found = findings(folder)
        assert [file for file, _ in found] == [path.relative_to(folder).as_posix()], (path, bit)
        path.write_bytes(intact)
    assert verify(folder).fine


def test_a_flipped_bit_in_every_attribute_is_found(folder: Path) -> None:
    path = folder / "train/shard-000.h5"
    intact = path.read_bytes()
    for text in (b"advection-diffusion", b"cartesian", b"periodic", b"git_commit", b"sample_varying", b"float64"):
        place = intact.index(text)
        path.write_bytes(intact[:place] + bytes([intact[place] ^ 4]) + intact[place + 1 :])
        assert [file for file, _ in findings(folder)] == ["train/shard-000.h5"], text


def test_missing_extra_partial_and_truncated_files_are_named(folder: Path) -> None:
    (folder / "valid/shard-000.h5").unlink()
    (folder / "valid/notes.txt").write_text("mine")
    (folder / "test/shard-000.h5.0badcafe.partial").write_bytes(b"half")
    short = (folder / "train/shard-001.h5").read_bytes()[:-1]
    (folder / "train/shard-001.h5").write_bytes(short)
    found = dict(findings(folder))
    assert found.keys() == {
        "valid/shard-000.h5",
        "valid/notes.txt",
        "test/shard-000.h5.0badcafe.partial",
        "train/shard-001.h5",
    }
    assert "missing; run the generate command again" in found["valid/shard-000.h5"]
    assert found["valid/notes.txt"] == "extra file, not in the manifest"
    assert found["test/shard-000.h5.0badcafe.partial"] == "extra file, left behind by an interrupted writer"
    assert f"has {len(short)} bytes instead of {len(short) + 1}" in found["train/shard-001.h5"]


@pytest.mark.parametrize(
    ("replace", "message"),
    [
        (lambda path: path.symlink_to("nowhere.h5"), "is a link that leads nowhere; delete it and run"),
        (lambda path: path.symlink_to("/dev/null"), "is a link out of .*flow, which is not followed"),
        (lambda path: path.symlink_to(path.parents[2] / "copy.h5"), "is a link out of .*flow, which is not followed"),
        (lambda path: os.mkfifo(path), "is not a regular file"),
        (lambda path: path.mkdir(), "missing"),
    ],
)
def test_a_shard_that_is_no_regular_file_of_the_folder_is_found(
    folder: Path, replace: Callable[[Path], None], message: str
) -> None:
    shard = folder / "train/shard-000.h5"
    shutil.copy(shard, folder.parent / "copy.h5")
    shard.unlink()
    replace(shard)
    ((file, what),) = findings(folder)
    assert file == "train/shard-000.h5"
    assert re.search(message, what), what


def test_a_link_to_a_folder_is_extra_and_one_instead_of_a_folder_is_not_followed(folder: Path) -> None:
    (folder / "elsewhere").symlink_to("/")
    (folder / "valid").rename(folder.parent / "valid")
    (folder / "valid").symlink_to(folder.parent / "valid")
    assert {file for file, _ in findings(folder)} == {"elsewhere", "valid", "valid/shard-000.h5"}


def test_what_verification_advises_repairs_the_folder(folder: Path) -> None:
    damaged = bytearray((folder / "train/shard-001.h5").read_bytes())
    damaged[100] ^= 1
    (folder / "train/shard-001.h5").write_bytes(damaged)
    assert "delete it and run the generate command again" in findings(folder)[0][1]
    (folder / "train/shard-001.h5").unlink()
    generate(PLAN, folder, jobs=1)
    assert verify(folder).fine


def test_an_edited_manifest_is_found(folder: Path) -> None:
    text = (folder / MANIFEST).read_text()
    (folder / MANIFEST).write_text(text.replace('"seed": 0', '"seed": 1'))
    assert [file for file, _ in findings(folder)] == [MANIFEST]
    assert "changed or damaged" in findings(folder)[0][1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m["shards"].pop(1), "`train` has 3 trajectories, not as described"),
        (lambda m: m["shards"][1].update(first=4), "train/shard-001.h5 starts at trajectory 4, expected 3"),
        (lambda m: m["shards"][0].update(sha256="0" * 64), "sha256 differs"),
        (lambda m: m["recipe"].update(seed=1), "attribute 'seed' is .*0.*, expected 1"),
        (lambda m: m["recipe"]["times"].append(9.0), "`dimensions/time` differs from the description"),
        (lambda m: m["recipe"]["axes"][0].update(points=10**12), "`dimensions/x` differs from the description"),
        (lambda m: m["recipe"]["axes"].pop(), "axes are .*'x', 'y'.*, expected .*'x'"),
        (lambda m: m["recipe"].update(fields=["w"]), "fields are .*'u'.*, expected .*'w'"),
        (lambda m: m["recipe"].pop("fields"), "the description lacks: fields"),
        (
            lambda m: m["recipe"].update(counts=[5, 2, 2]),
            "`valid` has 2 trajectories, not as described",
        ),
        (lambda m: m["recipe"].update(axes=3), "cannot be read as a shard"),
        (lambda m: m["shards"][0].update(path="../evil.h5"), "list of shards is malformed"),
    ],
)
def test_a_manifest_that_was_edited_and_sealed_again_contradicts_the_files(
    folder: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    manifest = read_manifest(folder)
    change(manifest)
    (folder / MANIFEST).write_bytes(seal(manifest))
    found = "; ".join(what for _, what in findings(folder))
    assert re.search(message, found), found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f["t0_fields/u"].__setitem__((1, 2, 3, 4), np.nan), "`/t0_fields/u` is not finite in trajectory 1"),
        (lambda f: f["scalars/phase"].__setitem__((2, 0), np.inf), "`/scalars/phase` is not finite in trajectory 2"),
        (lambda f: f.attrs.modify("dataset_name", "ks"), "attribute 'dataset_name' is 'ks'"),
        (lambda f: f.attrs.modify("split", "test"), "attribute 'split' is 'test', expected 'train'"),
        (lambda f: f.attrs.__delitem__("n_trajectories"), "attribute 'n_trajectories' is None, expected 3"),
        (lambda f: replace(f, "t0_fields/u", np.zeros((3, 4, 16, 16))), "is float64 .*expected float32"),
        (lambda f: replace(f, "t0_fields/u", np.zeros((3, 4, 16, 8), np.float32)), r"\(3, 4, 16, 8\), expected"),
        (lambda f: f.__delitem__("scalars"), "cannot be read as a shard"),
        (
            lambda f: f["scalars"].create_dataset("bomb", (3, 10**12), "f8", chunks=(1, 10**6)),
            "`scalars/bomb` is incomplete: 0 of 3000000 chunks were written",
        ),
        (lambda f: link_away(f), "`t0_fields/u` is a link to another file, 'elsewhere.h5'"),
        (lambda f: read_elsewhere(f), "`t0_fields/u` takes its numbers from other files"),
        (lambda f: f["dimensions/x"].__setitem__(0, 0.5), "`dimensions/x` differs from the description"),
    ],
)
def test_content_that_does_not_make_sense_is_found_even_if_every_checksum_fits(
    folder: Path, change: Callable[[h5py.File], None], message: str
) -> None:
    forge(folder, "train/shard-000.h5", change)
    found = findings(folder)
    assert [file for file, _ in found] == ["train/shard-000.h5"]
    assert re.search(message, found[0][1]), found


def link_away(file: h5py.File) -> None:
    del file["t0_fields/u"]
    file["t0_fields/u"] = h5py.ExternalLink("elsewhere.h5", "/u")


def read_elsewhere(file: h5py.File) -> None:
    layout = h5py.VirtualLayout(file["t0_fields/u"].shape, "f4")
    layout[:] = h5py.VirtualSource("elsewhere.h5", "u", layout.shape)
    attributes = dict(file["t0_fields/u"].attrs)
    del file["t0_fields/u"]
    file.create_virtual_dataset("t0_fields/u", layout)
    file["t0_fields/u"].attrs.update(attributes)


def replace(file: h5py.File, path: str, values: np.ndarray) -> None:
    attributes = dict(file[path].attrs)
    del file[path]
    file[path] = values
    file[path].attrs.update(attributes)


def test_a_listed_file_that_is_no_hdf5_is_found(folder: Path) -> None:
    (folder / "test/shard-000.h5").write_bytes(b"not HDF5")
    manifest = read_manifest(folder)
    manifest["shards"][-1] |= {"size": 8, "sha256": hashlib.sha256(b"not HDF5").hexdigest()}
    (folder / MANIFEST).write_bytes(seal(manifest))
    ((file, what),) = findings(folder)
    assert (file, "cannot be read as a shard" in what) == ("test/shard-000.h5", True)


def test_what_is_no_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing is not a folder"):
        verify(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=r"has no manifest.json; it was not made by `ssno data generate`"):
        verify(tmp_path)
    generate(PLAN, tmp_path / "half", jobs=1, part=(1, 2))
    with pytest.raises(FileNotFoundError, match="its generation is unfinished: run the same .* command again"):
        verify(tmp_path / "half")
