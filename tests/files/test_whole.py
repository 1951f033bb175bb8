"""A file is whole or absent."""

import os
from pathlib import Path

import pytest

from ssno.files.whole import write_whole


def test_a_file_replaces_the_old_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    for content in (b"first", b"second and longer"):
        write_whole(tmp_path / "shard.h5", content)
        assert (tmp_path / "shard.h5").read_bytes() == content
    assert os.listdir(tmp_path) == ["shard.h5"]


def test_other_errors_of_the_system_are_passed_on(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_whole(tmp_path / "nowhere" / "shard.h5", b"")
