"""The library of the fused engine: never in the way when it cannot be had."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ssno.native import build, operations
from ssno.native import build as library


@pytest.fixture(autouse=True)
def nothing_remembered():
    build._built.cache_clear()
    library._loaded.cache_clear()
    yield
    build._built.cache_clear()
    library._loaded.cache_clear()


def test_the_library_is_there_and_the_switch_turns_it_off(monkeypatch) -> None:
    assert library.load() is not None
    monkeypatch.setenv(build.SWITCH, "0")
    assert library.load() is None


def test_without_a_compiler_one_line_says_so(monkeypatch, caplog) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with caplog.at_level(logging.WARNING, logger="ssno"):
        assert library.load() is None
        assert library.load() is None
    (record,) = caplog.records
    assert record.getMessage() == (
        "scan.cpp is not compiled, PyTorch does its work: no C++ compiler ('no-such-compiler') found"
    )


def test_without_pytorchs_matrix_product_the_library_takes_its_own(monkeypatch, caplog) -> None:
    y, weight, bias = torch.randn(6, 2, 700), torch.randn(2, 12, 6), torch.randn(2, 12)
    x, taps = torch.randn(3, 4, 37, 5), torch.randn(2, 3, 37)
    head = [torch.randn(shape) for shape in ((5, 70), (9, 5), (9,), (3, 9))]

    def answers() -> list[torch.Tensor]:
        scan = {"backward": 0b10, "periodic": True}
        found = [operations.gate_forward(y, weight, bias, None, 0), *operations.gate_backward(y, weight, bias, y[:, 0])]
        found += [operations.scan_forward(x, taps, direct=False, **scan)]
        found += [*operations.scan_backward(x, taps, found[-1], **scan)]
        return [*found, operations.head_forward(*head, torch.zeros(3)), *operations.head_backward(*head, head[0][:3])]

    expected = answers()
    library._loaded.cache_clear()
    monkeypatch.setattr(library.torch, "__file__", "/nowhere/torch/__init__.py")
    assert library.matrix_product() == (None, None)
    try:
        for mine, theirs in zip(answers(), expected, strict=True):
            assert (mine - theirs).norm() <= 1e-5 * theirs.norm()
    finally:
        monkeypatch.undo()
        library.bind(library.load(), *library.matrix_product())


@pytest.mark.usefixtures("as_users_call_it")
def test_a_pytorch_without_the_matrix_product_is_named(monkeypatch, caplog) -> None:
    class Bare:
        def __init__(self, path: str):
            del path

    monkeypatch.setattr(library.ctypes, "CDLL", Bare)
    with caplog.at_level(logging.INFO, logger="ssno"):
        assert library.matrix_product() == (None, None)
    assert "uses its own matrix product" in caplog.text
    assert "sgemm_" in caplog.text


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
    assert run.stderr.count("PyTorch does its work") == 1
