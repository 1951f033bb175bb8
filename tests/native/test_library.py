"""The native library: built once, found again, and never in the way when it cannot be had."""

import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ssno.native import library


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library.load.cache_clear()
    yield tmp_path / "ssno"
    library.load.cache_clear()


def test_the_library_is_built_once_and_found_again(fresh_cache: Path) -> None:
    path = library.build()
    assert path.parent == fresh_cache
    assert stat.S_IMODE(fresh_cache.stat().st_mode) == 0o700
    built = path.stat().st_mtime_ns
    assert library.build() == path
    assert path.stat().st_mtime_ns == built
    assert os.listdir(fresh_cache) == [path.name]


def test_another_source_gets_another_name(tmp_path: Path) -> None:
    folder = Path(library.__file__).parent
    for name in (*library.SOURCES, *library.HEADERS):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    same = library.fingerprint(tmp_path, "c++")
    assert same == library.fingerprint(folder, "c++")
    (tmp_path / "scan.cpp").write_text("// changed")
    assert library.fingerprint(tmp_path, "c++") != same


def test_without_a_compiler_one_line_says_so_and_pytorch_takes_over(fresh_cache, monkeypatch, caplog) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    with caplog.at_level(logging.WARNING, logger="ssno"):
        assert library.load() is None
        assert library.load() is None
    assert [record.getMessage() for record in caplog.records] == [
        "ssno: the fused engine is off, plain PyTorch takes over: no C++ compiler (install g++, or set CXX)"
    ]


def test_a_compiler_that_fails_is_named(fresh_cache, monkeypatch) -> None:
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(library.Unavailable, match="false failed"):
        library.build()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(library.Unavailable, match="no-such-compiler could not be run"):
        library.build()


@pytest.mark.usefixtures("as_users_call_it")
def test_a_pytorch_without_the_matrix_product_is_named(monkeypatch) -> None:
    class Bare:
        def __init__(self, path: str):
            del path

    monkeypatch.setattr(library.ctypes, "CDLL", Bare)
    with pytest.raises(library.Unavailable, match="does not export the matrix product it needs .*sgemm_"):
        library.bind(Bare(""))


def test_a_model_runs_where_nothing_can_be_built(tmp_path: Path) -> None:
    program = (
        "import torch\n"
        "from ssno.models.ssno import SSNO, SSNOConfig\n"
        "model = SSNO(SSNOConfig.tiny())\n"
        "model(torch.randn(1, 4, 1, 16)).sum().backward()\n"
        "print(all(p.grad is not None for p in model.parameters()))\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "CXX": "false"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert run.stdout == "True\n", run.stderr
    assert run.stderr.count("the fused engine is off") == 1
