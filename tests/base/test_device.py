"""One place decides which device computes."""

import ast
from pathlib import Path

import pytest
import torch

from ssno.base.device import available_devices, choose_device, device_name, float64

SOURCE = Path(__file__).parents[2] / "src" / "ssno"


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


def machine(monkeypatch: pytest.MonkeyPatch, *, gpus: int = 0, mps: bool = False) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("gpus", "mps", "expected"), [(2, True, "cuda:0"), (0, True, "mps"), (1, False, "cuda:0"), (0, False, "cpu")]
)
def test_auto_takes_cuda_then_mps_then_the_cpu(monkeypatch, gpus, mps, expected) -> None:
    machine(monkeypatch, gpus=gpus, mps=mps)
    assert choose_device() == choose_device("auto") == torch.device(expected)


def test_a_device_may_be_named(monkeypatch) -> None:
    machine(monkeypatch, gpus=2, mps=True)
    for wanted, expected in {"cpu": "cpu", "mps": "mps", "cuda": "cuda:0", "cuda:1": "cuda:1"}.items():
        assert choose_device(wanted) == torch.device(expected)
    assert choose_device(torch.device("xpu:1")) == torch.device("xpu:1")


def test_every_process_of_torchrun_takes_its_own_gpu(monkeypatch) -> None:
    machine(monkeypatch, gpus=2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda:1")
    with pytest.raises(ValueError, match="names one device for several processes; say 'cuda', 'cpu' or 'auto'"):
        choose_device("cuda:0")
    machine(monkeypatch, mps=True)
    assert choose_device("auto") == torch.device("cpu")
    machine(monkeypatch, gpus=1)
    with pytest.raises(ValueError, match=r"there is no cuda:1; available: cuda:0, cpu"):
        choose_device("auto")


def test_a_missing_device_is_an_error_that_names_what_there_is(monkeypatch) -> None:
    machine(monkeypatch)
    with pytest.raises(ValueError, match="`device` is 'cuda', but there is no cuda:0; available: cpu"):
        choose_device("cuda")
    machine(monkeypatch, gpus=1)
    with pytest.raises(ValueError, match="`device` is 'cuda:3', but there is no cuda:3; available: cuda:0, cpu"):
        choose_device("cuda:3")
    with pytest.raises(ValueError, match="there is no mps"):
        choose_device("mps")


@pytest.mark.parametrize("wanted", ["gpu", "cuda:x", "cpu:1", "cuda:-1", ""])
def test_other_words_are_refused(wanted) -> None:
    with pytest.raises(ValueError, match="`device` must be auto, cpu, cuda, cuda:N or mps, got"):
        choose_device(wanted)


def test_this_machine_has_a_cpu_with_a_name() -> None:
    assert available_devices()[-1] == "cpu"
    assert device_name(torch.device("cpu")).startswith("cpu (")


def test_double_precision_stays_where_it_is() -> None:
    assert float64(torch.ones(3)).dtype == torch.float64


def test_nothing_else_asks_for_a_device() -> None:
    """`torch.cuda` and `torch.mps` belong to base.device alone."""
    asked = {"is_available", "device_count", "current_device", "get_device_name"}
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).as_posix() == "base/device.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in asked:
                whose = ast.unparse(node.value)
                assert whose not in ("torch.cuda", "torch.mps", "torch.backends.mps"), f"{path}:{node.lineno}"
