"""`ssno doctor --check`: agrees with itself on the CPU, and notices a machine that computes nonsense."""

import json

import pytest
import torch

from ssno.cli.main import main
from ssno.training import checks as machine_check
from ssno.training.checks import ALLOWED, MachineCheck, check_machine, difference


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(machine_check, "seconds_per_step", lambda device, engine: 0.5 if engine == "auto" else 1.0)


def test_this_machine_can_be_trusted(quick, capsys) -> None:
    main(["doctor", "--check", "--device", "cpu"])
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("cpu (")
    assert "stopped and resumed: bitwise equal" in lines[2]
    assert "500 ms, 2.0 times as fast" in lines[3]
    assert lines[4] == "It can be trusted."


def test_wrong_answers_are_not_trusted(quick, monkeypatch, capsys) -> None:
    right = machine_check.step_loss
    losses = iter([1.0, 1.01])
    monkeypatch.setattr(machine_check, "step_loss", lambda model, frames: next(losses) * right(model, frames))
    with pytest.raises(SystemExit) as left:
        main(["doctor", "--check", "--device", "cpu", "--json"])
    assert left.value.code == 1
    found = json.loads(capsys.readouterr().out)
    assert found["trusted"] is False
    assert found["differences"]["gradients"] == pytest.approx(0.01, rel=0.01)
    assert found["differences"]["losses"] < ALLOWED["losses"]


def test_what_is_not_a_number_is_not_trusted() -> None:
    found = MachineCheck("gpu", "cpu", {**dict.fromkeys(ALLOWED, 0.0), "losses": float("nan")}, 1.0, 1.0)
    assert found.wrong == ["losses"]
    assert found.lines()[-1] == "Do not trust this device: losses differ."


def test_a_step_is_timed() -> None:
    assert 0 < machine_check.seconds_per_step(torch.device("cpu"), "auto", rounds=1) < 60


def test_differences_are_relative() -> None:
    assert difference([torch.tensor([1.1])], [torch.tensor([1.0])]) == pytest.approx(0.1)


def test_a_device_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="there is no cuda:9; available"):
        check_machine("cuda:9")
