"""Compiling on demand: once, again when the source changes, and never a failure of the program."""

import logging
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ssno.native import build

SOURCE = "int answer(void) { return 42; }\n"


@pytest.fixture
def source(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(build.SWITCH, raising=False)
    path = tmp_path / "answer.c"
    path.write_text(SOURCE)
    return path


def test_a_library_is_built_once_and_again_when_the_source_changes(source) -> None:
    folder = build.cache_folder()
    first = build.build(source, compiler=build.compiler(), folder=folder)
    written = first.stat().st_mtime_ns
    assert build.build(source, compiler=build.compiler(), folder=folder) == first
    assert first.stat().st_mtime_ns == written
    source.write_text(SOURCE.replace("42", "43"))
    assert build.build(source, compiler=build.compiler(), folder=folder) != first
    assert sorted(path.suffix for path in folder.iterdir()) == [".so", ".so"]


def test_a_built_library_can_be_called(source) -> None:
    library = build.library(source)
    assert library is not None
    assert library.answer() == 42


def test_a_switch_turns_compiled_code_off(source, monkeypatch) -> None:
    monkeypatch.setenv(build.SWITCH, "0")
    assert build.library(source) is None
    assert not build.cache_folder().exists()


def test_without_a_compiler_one_line_says_so(source, monkeypatch, caplog) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with caplog.at_level(logging.WARNING, logger="ssno"):
        assert build.library(source) is None
        assert build.library(source) is None
    (record,) = caplog.records
    assert record.getMessage() == (
        "answer.c is not compiled, PyTorch does its work: no C compiler ('no-such-compiler') found"
    )


def test_a_source_that_does_not_compile_leaves_nothing_behind(source, caplog) -> None:
    source.write_text("int answer(void) { return forty-two; }\n")
    with caplog.at_level(logging.WARNING, logger="ssno"):
        assert build.library(source) is None
    assert "answer.c is not compiled" in caplog.text
    assert list(build.cache_folder().iterdir()) == []


def test_the_compiler_is_the_one_that_cc_names(monkeypatch) -> None:
    monkeypatch.setenv("CC", "sh")
    assert build.compiler() == shutil.which("sh")


def test_cpp_sources_take_the_cpp_compiler_and_their_headers_count(source, tmp_path) -> None:
    header, unit = tmp_path / "answer.h", tmp_path / "answer.cpp"
    header.write_text("constexpr int ANSWER = 42;\n")
    unit.write_text('#include "answer.h"\nextern "C" int answer() { return ANSWER; }\n')
    first = build.library(unit, header)
    assert first is not None
    assert first.answer() == 42
    before = build.build(unit, header, compiler=build.compiler(".cpp"), folder=build.cache_folder())
    header.write_text("constexpr int ANSWER = 43;\n")
    assert build.build(unit, header, compiler=build.compiler(".cpp"), folder=build.cache_folder()) != before


def test_libraries_live_in_the_cache_folder(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert build.cache_folder() == tmp_path / ".cache" / "ssno"


def test_flags_that_a_compiler_does_not_know_are_left_out() -> None:
    compiler = build.compiler()
    assert build.first_accepted(compiler, ("-mno-such-flag", "-O2")) == ("-O2",)
    assert build.first_accepted(compiler, ("-mno-such-flag",)) == ()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exit 1", "returned non-zero exit status 1"),
        ("echo >&2; exit 1", "returned non-zero exit status 1"),
        ("printf 'd\\351faut\\n' >&2; exit 1", "d\ufffdfaut"),
        ("sleep 30", "timed out after 0.3 seconds"),
        ("exit 0", "No such file or directory"),
    ],
    ids=["silent", "an empty line", "Latin-1", "hangs", "makes nothing"],
)
def test_whatever_a_compiler_does_one_line_says_so(source, tmp_path, monkeypatch, caplog, script, says) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    if "sleep" in script:
        monkeypatch.setattr(build, "LONGEST_BUILD", 0.3)
    with caplog.at_level(logging.WARNING, logger="ssno"):
        assert build.library(source) is None
    (record,) = caplog.records
    assert says in record.getMessage()
    assert not list(build.cache_folder().glob("*")) if build.cache_folder().exists() else True


def test_a_cache_folder_that_cannot_be_made_is_no_failure(source, tmp_path, monkeypatch, caplog) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING, logger="ssno"):
        assert build.library(source) is None
    assert "PyTorch does its work" in caplog.text


def test_without_a_home_one_line_says_so(source, monkeypatch, caplog) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(build.Path, "home", homeless)
    with caplog.at_level(logging.WARNING, logger="ssno"):
        assert build.library(source) is None
    assert "PyTorch does its work: Could not determine home directory." in caplog.text


def built(source: Path) -> Path:
    return build.build(source, compiler=build.compiler(), folder=build.cache_folder())


@pytest.mark.parametrize("damage", ["empty", "half", "changed", "open to the group", "a link", "another user's"])
def test_a_library_that_is_not_whole_or_not_ours_is_built_again(source, damage, tmp_path, monkeypatch) -> None:
    path = built(source)
    content, inode = path.read_bytes(), path.stat().st_ino
    if damage == "open to the group":
        path.chmod(0o770)
    elif damage == "another user's":
        real = os.lstat(path)
        theirs = os.stat_result((*real[:4], real.st_uid + 1, *real[5:10]))
        monkeypatch.setattr(Path, "lstat", lambda found: theirs if found == path else os.lstat(found))
    elif damage == "a link":
        path.rename(tmp_path / "planted.so")
        path.symlink_to(tmp_path / "planted.so")
    else:
        path.write_bytes({"empty": b"", "half": content[: len(content) // 2], "changed": content[:-1] + b"x"}[damage])
    (tmp_path / "keeps the inode").hardlink_to(path)
    again = built(source)
    monkeypatch.undo()
    assert again == path, "compilers are deterministic"
    assert again.lstat().st_ino != inode
    assert again.read_bytes() == content
    assert stat.S_IMODE(again.lstat().st_mode) == 0o700


def test_a_library_is_kept_whatever_the_umask(source) -> None:
    before = os.umask(0)
    try:
        path = built(source)
    finally:
        os.umask(before)
    written = path.stat().st_mtime_ns
    assert built(source).stat().st_mtime_ns == written


def test_a_cache_folder_open_to_others_is_closed_and_one_of_others_is_not_used(source, monkeypatch, caplog) -> None:
    folder = build.cache_folder()
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    built(source)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with caplog.at_level(logging.WARNING, logger="ssno"):
        assert build.library(source) is None
    assert "cache/ssno belongs to another user, so no library in it is loaded. Set XDG_CACHE_HOME" in caplog.text


def test_two_processes_may_build_at_once(source) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: built(source), range(8)))
    assert len(set(found)) == 1
    assert [path.name for path in build.cache_folder().iterdir()] == [found[0].name]
