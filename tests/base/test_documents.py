"""JSON on disk: what is written comes back, and odd or damaged files end in one clear error."""

import math
import os
from pathlib import Path

import pytest

from ssno.base import (
    DocumentError,
    from_text,
    number,
    read_document,
    read_json,
    read_regular,
    to_text,
    write_document,
    write_json,
)

REMEDY = "Make it again."


def read(path: Path) -> dict[str, object]:
    return read_document(path, format="ssno-test", versions=(1, 2), remedy=REMEDY)


def test_a_document_comes_back_as_it_was(tmp_path: Path) -> None:
    write_document(tmp_path / "a.json", {"values": [1, 2.5, "x", None]}, format="ssno-test", version=2)
    assert read(tmp_path / "a.json") == {"format": "ssno-test", "version": 2, "values": [1, 2.5, "x", None]}


def test_numbers_that_are_not_finite_are_null_on_disk_and_infinite_afterwards(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"a": math.inf, "b": (math.nan, 1.0)})
    assert read_json(tmp_path / "a.json", remedy=REMEDY) == {"a": None, "b": [None, 1.0]}
    assert (number(None), number(2)) == (math.inf, 2.0)
    assert to_text([-math.inf]) == "[null]"
    assert from_text("[NaN, -Infinity, 1e999, -2e3]") == [None, None, None, -2000.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "ssno-test", "vers', r"a\.json is not valid JSON \(.*\)\. Make it again\."),
        ("\udcff", r"a\.json is not valid JSON \(.*\)\. Make it again\."),
        ("[" * 100_000, "nested more than 64 deep"),
        ("[" * 70 + "]" * 70, "nested more than 64 deep"),
        ("9" * 10_000, "is not valid JSON"),
        ("[]", "does not have the format 'ssno-test', it has None. Make it again"),
        ('{"format": "other"}', "does not have the format 'ssno-test', it has 'other'"),
        ('{"format": "ssno-test", "version": 3}', "has format version 3; this ssno reads version 1 and 2. Upgrade"),
    ],
)
def test_what_is_no_such_document_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(DocumentError, match=message):
        read(path)


def test_pipes_devices_folders_and_giants_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for odd in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(DocumentError, match="is not a regular file"):
            read(odd)
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(2**40)
    with pytest.raises(DocumentError, match="has more than the 67108864 bytes"):
        read(tmp_path / "sparse")
    (tmp_path / "small").write_bytes(b"12345")
    assert read_regular(tmp_path / "small", limit=5) == b"12345"
    with pytest.raises(DocumentError, match="has more than the 4 bytes"):
        read_regular(tmp_path / "small", limit=4)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no file .*gone\.json"):
        read(tmp_path / "gone.json")
