"""Manifests: sealed lists of shards, in which every changed bit shows."""

import os
from pathlib import Path
from typing import Any

import pytest

from ssno.base.json_io import DocumentError
from ssno.data.errors import DataError
from ssno.data.manifest import (
    MANIFEST,
    Entry,
    Shard,
    entries_of,
    finished_shards,
    note_path,
    read_manifest,
    seal,
    unseal,
    write_manifest,
    write_note,
)

SHARD = Shard("train", 0, 0, 4)
ORIGIN = {"ssno": "1.0", "commit": "abc"}


def entry(shard: Shard = SHARD, data: bytes = b"content", origin: dict[str, str] = ORIGIN) -> Entry:
    return Entry.of(shard, data, origin)


def put(folder: Path, shard: Shard, data: bytes) -> None:
    (folder / shard.path).parent.mkdir(exist_ok=True)
    (folder / shard.path).write_bytes(data)
    (folder / ".progress").mkdir(exist_ok=True)


def test_a_manifest_comes_back_with_entries_and_where_they_were_made(tmp_path: Path) -> None:
    entries = [
        entry(),
        entry(Shard("train", 1, 4, 2), b"more", {"ssno": "1.0", "commit": "def"}),
        entry(Shard("test", 0, 0, 1)),
    ]
    write_manifest(tmp_path, description={"dataset": "ks"}, entries=entries)
    manifest = read_manifest(tmp_path)
    assert entries_of(manifest) == entries
    assert manifest["provenance"] == [{"ssno": "1.0", "commit": "abc"}, {"ssno": "1.0", "commit": "def"}]
    assert (manifest["recipe"], manifest["name"]) == ({"dataset": "ks"}, tmp_path.name)


def test_a_flipped_bit_in_any_byte_of_a_manifest_shows(tmp_path: Path) -> None:
    write_manifest(tmp_path, description={"dataset": "ks", "times": [0.0, 0.1]}, entries=[entry()])
    path = tmp_path / MANIFEST
    original = path.read_bytes()
    for place in range(len(original)):
        changed = bytearray(original)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        with pytest.raises(DataError, match="changed or damaged"):
            unseal(path)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"null", b"{" * 100_000, b'{"manifest_sha256": NaN}', b"\xff"])
def test_what_is_no_sealed_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(DataError, match="changed or damaged"):
        read_manifest(tmp_path)


def test_a_huge_manifest_is_not_read(tmp_path: Path) -> None:
    with open(tmp_path / MANIFEST, "wb") as file:
        file.truncate(2**40)
    with pytest.raises(DocumentError, match="has more than the 67108864 bytes that are read"):
        read_manifest(tmp_path)


def test_a_note_that_is_a_pipe_or_malformed_is_refused(tmp_path: Path) -> None:
    shard = Shard("train", 0, 0, 2)
    note_path(tmp_path, shard).parent.mkdir()
    os.mkfifo(note_path(tmp_path, shard))
    with pytest.raises(DocumentError, match="is not a regular file"):
        finished_shards(tmp_path, [shard])
    note_path(tmp_path, shard).unlink()
    note_path(tmp_path, shard).write_bytes(seal({"path": 3}))
    with pytest.raises(DataError, match="list of shards is malformed"):
        finished_shards(tmp_path, [shard])


def test_other_formats_versions_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="has no manifest.json: it is not a finished dataset"):
        read_manifest(tmp_path)
    content = write_manifest(tmp_path, description={}, entries=[])
    (tmp_path / MANIFEST).write_bytes(seal({**content, "format_version": 99}))
    with pytest.raises(DataError, match="version 99; this ssno reads 'ssno-dataset' version 1"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_bytes(seal({**content, "recipe": []}))
    with pytest.raises(DataError, match="does not describe its data"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"path": "../../outside/shard-000.h5"},
        {"path": "train/shard-000.h5/../../x"},
        {"path": 3},
        {"split": "test"},
        {"count": -1},
        {"size": 1.5},
        {"sha256": None},
        {"provenance": 7},
        {"surprise": 1},
    ],
)
def test_lists_that_no_generation_wrote_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    manifest = write_manifest(tmp_path, description={}, entries=[entry()])
    forged = {**manifest, "shards": [{**manifest["shards"][0], **change}]}
    with pytest.raises(DataError, match="list of shards is malformed"):
        entries_of(forged)


def test_a_shard_listed_twice_is_refused(tmp_path: Path) -> None:
    manifest = write_manifest(tmp_path, description={}, entries=[entry(), entry()])
    with pytest.raises(DataError, match="list of shards is malformed"):
        entries_of(manifest)


def test_a_shard_is_finished_if_its_note_and_its_size_say_so(tmp_path: Path) -> None:
    put(tmp_path, SHARD, b"content")
    assert finished_shards(tmp_path, [SHARD]) == {}
    write_note(tmp_path, SHARD, entry())
    assert finished_shards(tmp_path, [SHARD]) == {SHARD.path: entry()}
    (tmp_path / SHARD.path).write_bytes(b"conte")
    assert finished_shards(tmp_path, [SHARD]) == {}


def test_notes_of_two_shards_are_two_files(tmp_path: Path) -> None:
    shards = [SHARD, Shard("train", 1, 4, 4), Shard("test", 0, 0, 4)]
    assert len({note_path(tmp_path, shard) for shard in shards}) == 3


def test_a_newer_note_overrules_the_manifest(tmp_path: Path) -> None:
    put(tmp_path, SHARD, b"content")
    write_manifest(tmp_path, description={}, entries=[entry(origin={"commit": "old"})])
    assert finished_shards(tmp_path, [SHARD])[SHARD.path].provenance == {"commit": "old"}
    write_note(tmp_path, SHARD, entry(origin={"commit": "new"}))
    assert finished_shards(tmp_path, [SHARD])[SHARD.path].provenance == {"commit": "new"}
