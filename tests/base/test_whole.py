"""A file is whole or absent."""

import os
from pathlib import Path

import pytest

from ssno.base.atomic_write import whole_file, write_whole


def test_a_file_replaces_the_old_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    for content in (b"first", b"second and longer"):
        write_whole(tmp_path / "shard.h5", content)
        assert (tmp_path / "shard.h5").read_bytes() == content
    assert os.listdir(tmp_path) == ["shard.h5"]


def test_what_a_killed_writer_left_is_deleted_by_the_next_one(tmp_path: Path) -> None:
    def killed() -> None:
        with whole_file(tmp_path / "a[1].h5") as partial:
            partial.write_bytes(b"half")
            os._exit(9)

    child = os.fork()
    if child == 0:
        killed()
    os.waitpid(child, 0)
    (left,) = tmp_path.iterdir()
    machine, process, number = left.name.removeprefix("a[1].h5.").removesuffix(".partial").split("-")
    others = [f"a[1].h5.{machine}-{os.getppid()}-{number}", f"a[1].h5.{'0' * 8}-{process}-{number}", "a[1].h5.mine"]
    others.append(f"b.h5.{machine}-{process}-{number}")
    for name in others:  # of a process that runs, of another machine, of a person, of another file
        (tmp_path / f"{name}.partial").touch()
    write_whole(tmp_path / "a[1].h5", b"whole")
    assert {path.name for path in tmp_path.iterdir()} == {"a[1].h5", *(f"{name}.partial" for name in others)}


def test_other_errors_of_the_system_are_passed_on(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_whole(tmp_path / "nowhere" / "shard.h5", b"")


def test_a_file_written_bit_by_bit_appears_when_it_is_whole(tmp_path) -> None:
    target = tmp_path / "grown.bin"
    with whole_file(target) as partial:
        partial.write_bytes(b"half")
        assert not target.exists()
        assert partial.name.endswith(".partial")
    assert [path.name for path in tmp_path.iterdir()] == ["grown.bin"]

    def fails() -> None:
        with whole_file(target) as partial:
            partial.write_bytes(b"other")
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        fails()
    assert target.read_bytes() == b"half"
    assert [path.name for path in tmp_path.iterdir()] == ["grown.bin"]


def test_a_folder_is_no_file_to_write(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (Path(), tmp_path):
        with pytest.raises(IsADirectoryError, match="is a folder. Name the file to write"):
            write_whole(folder, b"")
        with pytest.raises(IsADirectoryError, match="is a folder. Name the file to write"), whole_file(folder):
            pass
    assert os.listdir(tmp_path) == []
