"""A file of somebody else's is never replaced."""

import os
import re

import pytest

from ssno.base.atomic_write import ENDS, Kind, check_replaceable

PAGE = Kind("a page", re.compile(rb"written by us"))


@pytest.mark.parametrize("content", [b"", b"written by us", bytes(3 * ENDS) + b"written by us"])
def test_new_empty_and_earlier_files_may_be_replaced(tmp_path, content) -> None:
    check_replaceable(tmp_path / "new", PAGE, option="--out")
    (tmp_path / "old").write_bytes(content)
    check_replaceable(tmp_path / "old", PAGE, option="--out")


@pytest.mark.parametrize("content", [b"data", bytes(ENDS) + b"written by us" + bytes(ENDS)])
def test_other_files_stay(tmp_path, content) -> None:
    (tmp_path / "data.npz").write_bytes(content)
    with pytest.raises(FileExistsError, match=r"data.npz exists and is not a page that ssno wrote, so `--out`"):
        check_replaceable(tmp_path / "data.npz", PAGE, option="--out")


def test_folders_and_pipes_are_no_files_to_write(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(FileExistsError, match="`--out` must name a file to write, but .* is a folder, a pipe or"):
            check_replaceable(path, PAGE, option="--out")
