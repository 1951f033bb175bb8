"""`ssno doctor --check`: agrees with itself on the CPU, and notices a machine that computes nonsense."""

import itertools
import json

import pytest
import torch

from ssno.cli.main import main
from ssno.native import engine
from ssno.native.engine import fastest_engine, preferred, remember_fastest
from ssno.training import checks as machine_check
from ssno.training.checks import ALLOWED, MachineCheck, check_machine, difference
from ssno.training.objective import compiles

CPU = torch.device("cpu")


@pytest.fixture
def quick(monkeypatch, tmp_path):
    seconds = {"fused": 0.6, "torch": 0.5, "plain": 1.0}
    monkeypatch.setattr(machine_check, "seconds_per_step", lambda device, engines: {e: seconds[e] for e in engines})
    monkeypatch.setattr(engine, "cache_folder", lambda: tmp_path / "cache")


def test_this_machine_can_be_trusted_and_remembers_its_fastest_engine(quick, capsys) -> None:
    assert preferred("auto", CPU) == "auto"
    main(["doctor", "--check", "--device", "cpu"])
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("cpu (")
    assert "stopped and resumed: bitwise equal" in lines[2]
    assert "batch 8: torch 500 ms, fused 600 ms, plain 1000 ms." in lines[3]
    assert lines[4] == (
        "The fastest is torch, 2.0 times as fast as plain PyTorch on the CPU; --train.engine auto takes it here from "
        "now on."
    )
    assert lines[5] == "It can be trusted."
    assert preferred("auto", CPU) == "torch"
    assert preferred("fused", CPU) == "fused"
    assert not compiles("auto", CPU)


def test_wrong_answers_are_not_trusted_nor_remembered(quick, monkeypatch, capsys) -> None:
    right = machine_check.step_loss
    losses = itertools.chain([1.0], itertools.repeat(1.01))
    monkeypatch.setattr(machine_check, "step_loss", lambda model, frames: next(losses) * right(model, frames))
    with pytest.raises(SystemExit) as left:
        main(["doctor", "--check", "--device", "cpu", "--json"])
    assert left.value.code == 1
    found = json.loads(capsys.readouterr().out)
    assert found["trusted"] is False
    assert found["differences"]["gradients"] == pytest.approx(0.01, rel=0.01)
    assert found["differences"]["losses"] < ALLOWED["losses"]
    assert found["seconds"] == {}
    assert found["disagreeing"]["torch"] == pytest.approx(0.01, rel=0.01)
    assert fastest_engine(CPU) is None


def test_what_is_not_a_number_is_not_trusted() -> None:
    differences = {**dict.fromkeys(ALLOWED, 0.0), "losses": float("nan")}
    found = MachineCheck("gpu", "cpu", differences, 1.0, {"torch": 1.0}, {"compiled": 0.1})
    assert found.wrong == ["losses"]
    assert "compiled is left out: gradients 1.0e-01. Nothing is remembered." in found.lines()[-2]
    assert found.lines()[-1] == "Do not trust this device: losses differ."


def test_engines_are_timed_in_turns() -> None:
    assert 0 < machine_check.seconds_per_step(CPU, ["torch"], rounds=1)["torch"] < 60


def test_a_compiled_model_is_compiled_where_it_is_fastest(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(engine, "cache_folder", lambda: tmp_path)
    assert remember_fastest(CPU, {"torch": 2.0, "compiled": 1.0}) == "compiled"
    assert compiles("auto", CPU)
    assert not compiles(False, CPU)
    assert preferred("auto", CPU) == "auto"


def others_may_write(path) -> None:
    path.chmod(0o666)


def another_engine(path) -> None:
    path.write_text(path.read_text().replace('"torch"', '"warp"'))


def no_json(path) -> None:
    path.write_text("{")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (others_may_write, "may have been written by another user"),
        (another_engine, "`engine` must be one of 'fused', 'torch', 'plain', 'compiled', 'triton', got 'warp'"),
        (no_json, "Run `ssno doctor --check` again"),
    ],
)
def test_a_measurement_that_cannot_be_trusted_is_not_used(monkeypatch, tmp_path, caplog, spoil, says) -> None:
    monkeypatch.setattr(engine, "cache_folder", lambda: tmp_path)
    remember_fastest(CPU, {"torch": 1.0})
    assert fastest_engine(CPU) == "torch"
    spoil(*tmp_path.iterdir())
    assert fastest_engine(CPU) is None
    assert says in caplog.text


def test_differences_are_relative() -> None:
    assert difference([torch.tensor([1.1])], [torch.tensor([1.0])]) == pytest.approx(0.1)


def test_a_device_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="there is no cuda:9; available"):
        check_machine("cuda:9")
