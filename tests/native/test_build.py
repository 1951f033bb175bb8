"""Compiling on demand: once, again when the source changes, and never a failure of the program."""

import logging
import shutil
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


def test_without_a_home_one_line_says_so(source, monkeypatch, caplog) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(build.Path, "home", homeless)
    with caplog.at_level(logging.WARNING, logger="ssno"):
        assert build.library(source) is None
    assert "PyTorch does its work: Could not determine home directory." in caplog.text
