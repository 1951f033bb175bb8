"""Modules of the user's own on disk: given to be filled, or registered by name."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import ssno
from ssno.cli.main import main
from ssno.data.trajectories import Trajectories
from ssno.models import registry
from ssno.models.config import OperatorConfig
from ssno.models.wrapped import WrappedModule
from ssno.runs.run import Run, read_run


class Tied(nn.Module):
    """Two names for one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight

    def forward(self, frames: Tensor) -> Tensor:
        return self.second(torch.tanh(self.first(frames)))


@dataclass(frozen=True, kw_only=True)
class TiedConfig(OperatorConfig):
    """For tests."""

    def build(self) -> nn.Module:
        return Tied()


@pytest.fixture
def data() -> Trajectories:
    array = np.random.default_rng(0).standard_normal((6, 5, 1, 4)).astype(np.float32)
    return Trajectories.from_array(array, lengths=[1.0], dt=0.1)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "REGISTERED", {})


def test_a_trained_module_comes_back_from_its_run_and_its_checkpoints(data: Trajectories, tmp_path: Path) -> None:
    forecaster = ssno.train(Tied(), data, epochs=1, folder=tmp_path)
    given = data.read([0]).state[:, :2]
    wanted = ssno.rollout(forecaster, given, 3)
    for folder in (tmp_path, tmp_path / "best"):
        assert torch.equal(ssno.rollout(ssno.load_forecaster(folder, model=Tied()), given, 3), wanted)
    found = ssno.evaluate(forecaster, data)
    assert (found.name, found.seed, found.trajectories) == ("Tied", None, 6)
    assert not list(tmp_path.glob("evaluation*"))
    with pytest.raises(ValueError, match="does not fit the model of its config.json"):
        ssno.load_forecaster(tmp_path, model=nn.Linear(4, 4))


def test_a_registered_model_needs_no_module(data: Trajectories, tmp_path: Path) -> None:
    ssno.register_model("tied", TiedConfig)
    ssno.register_model("tied", TiedConfig)  # as a notebook does
    forecaster = ssno.train(TiedConfig(), data, epochs=1, folder=tmp_path)
    assert isinstance(ssno.load_forecaster(tmp_path).model, Tied)
    assert Run.from_json(Run(model=TiedConfig()).to_json()).model == TiedConfig()
    forecaster.save(tmp_path / "saved", note={"by": "hand"})
    assert isinstance(ssno.load_forecaster(tmp_path / "saved").model, Tied)


def test_commands_take_a_registered_model_from_training_to_the_page(
    data: Trajectories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("mine.npy", np.tile(data.read(slice(None)).state.numpy()[:, :, 0], (4, 1, 1)))
    ssno.register_model("tied", TiedConfig)
    main(["models"])
    assert "tied" in capsys.readouterr().out
    described = ["--data.axes", "batch time x", "--data.dt", "0.1"]
    main(["train", "mine.npy", "--model", "tied", "--train.epochs", "1", "--name", "own", *described])
    main(["report", "runs/own"])
    page = (tmp_path / "runs" / "own" / "report.html").read_text()
    assert "own: tied on mine, 4 points" in page
    assert "persistence" in page
    assert "is not a model of ssno: register it first" in page
    main(["predict", "runs/own", "--input", "mine.npy", "--output", "next.h5", "--steps", "2"])
    monkeypatch.setattr(registry, "REGISTERED", {})
    with pytest.raises(SystemExit):
        main(["report", "runs/own"])
    assert "must be registered first, by your own code" in capsys.readouterr().err


def test_a_model_of_ours_keeps_its_name() -> None:
    with pytest.raises(ValueError, match="'ssno' is a model of ssno"):
        ssno.register_model("ssno", TiedConfig)
    with pytest.raises(TypeError, match="`config` must be a frozen dataclass derived from `OperatorConfig`"):
        ssno.register_model("tied", Tied)


def test_a_network_from_elsewhere_is_given_bare_or_wrapped(data: Trajectories, tmp_path: Path) -> None:
    wrapped = WrappedModule(nn.Conv1d(1, 1, 1))
    forecaster = ssno.train(wrapped, data, epochs=1, folder=tmp_path)
    given = data.read([0]).state[:, :1]
    for network in (nn.Conv1d(1, 1, 1), WrappedModule(nn.Conv1d(1, 1, 1))):
        again = ssno.load_forecaster(tmp_path, model=network)
        assert torch.equal(ssno.rollout(again, given, 2), ssno.rollout(forecaster, given, 2))
    with pytest.raises(ValueError, match=r"network from elsewhere \(Conv1d\): build it yourself"):
        ssno.load_forecaster(tmp_path)


def test_a_run_of_a_model_that_is_not_registered_says_so(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"model": {"model": "tied"}}')
    with pytest.raises(ValueError, match=r"Unknown name `tied`.*ssno.register_model\('tied', ItsConfig\)"):
        read_run(tmp_path / "run.json")
