"""Runs in bf16 and float64: what they compute in, what they store, and that they resume exactly."""

import json

import pytest
import torch
from tests.training.small_runs import outcome, tiny

from ssno.evaluation.evaluate import evaluate
from ssno.forecasting.rollout import rollout
from ssno.models.registry import model_config
from ssno.native.engine import check_precision, computing
from ssno.runs.checkpoint import load_checkpoint
from ssno.runs.load import load_forecaster
from ssno.runs.log import Silent
from ssno.runs.open import open_run
from ssno.runs.options import Unrolling
from ssno.training.processes import TrainingInterrupted
from ssno.training.train import train

ROUNDING_STAYS = {"optimizer": "adamw", "learning_rate": 3e-3}
"""SOAP's eigenbases make more of a rounding: two precisions part after a few steps."""
SETTINGS = {"epochs": 2, "batch_size": 8, "noise_std": 0.01, "reporter": Silent(), **ROUNDING_STAYS}


@pytest.mark.parametrize(
    ("precision", "engine", "way"),
    [
        ("bf16", "auto", Unrolling()),
        ("bf16", "torch", Unrolling()),
        ("bf16", "auto", Unrolling(teacher_forcing=(0.5,), gradient_checkpointing=True, frames=(2,))),
        ("float64", "auto", Unrolling()),
    ],
)
def test_a_stopped_and_resumed_run_is_bitwise_the_whole_one(tmp_path, waves, precision, engine, way) -> None:
    settings = SETTINGS | {"precision": precision, "engine": engine, "unroll": way, "valid": waves}
    train(tiny(), waves, folder=tmp_path / "whole", **settings)
    with pytest.raises(TrainingInterrupted):
        train(tiny(), waves, folder=tmp_path / "cut", stop_after=4, **settings)
    train(tiny(), waves, folder=tmp_path / "cut", resume=True, **settings)
    assert outcome(tmp_path / "whole") == outcome(tmp_path / "cut")
    whole = load_checkpoint(tmp_path / "whole" / "last")[0]
    kept = torch.float64 if precision == "float64" else torch.float32
    assert {value.dtype for name, value in whole.items() if not name.endswith("/step")} == {kept}


def test_the_precision_of_a_run_is_saved_and_changes_what_it_learns(tmp_path, waves) -> None:
    learned = {}
    for precision in ("float32", "bf16", "float64"):
        folder = tmp_path / precision
        train(tiny(), waves, folder=folder, precision=precision, **SETTINGS)
        assert json.loads((folder / "config.json").read_text())["run"]["train"]["precision"] == precision
        forecaster = load_forecaster(folder)
        assert forecaster.dtype == load_forecaster(folder / "last").dtype
        assert forecaster.precision == ("float64" if precision == "float64" else "float32")
        learned[precision] = torch.cat([p.detach().double().flatten() for p in forecaster.model.parameters()])
    size = learned["float64"].norm()
    assert 1e-6 * size < (learned["bf16"] - learned["float64"]).norm() < 0.05 * size
    assert 0 < (learned["float32"] - learned["float64"]).norm() < 1e-3 * size
    with pytest.raises(ValueError, match=r"resuming cannot change these: train.precision \(was bf16, now float32\)"):
        train(tiny(), waves, folder=tmp_path / "bf16", resume=True, **SETTINGS)


def test_forecasts_take_the_precision_that_is_asked_for(tmp_path, waves) -> None:
    train(tiny(), waves, folder=tmp_path, **SETTINGS)
    first = waves.read([0, 1]).state[:, :4]
    found = {p: rollout(load_forecaster(tmp_path, precision=p), first, 3) for p in ("float32", "bf16", "float64")}
    assert {frames.dtype for frames in found.values()} == {torch.float32}
    assert torch.equal(rollout(load_forecaster(tmp_path), first, 3), found["float32"])
    wrong = {name: ((frames - found["float64"]).norm() / frames.norm()).item() for name, frames in found.items()}
    assert 0 < wrong["float32"] < 1e-5
    assert 1e-5 < wrong["bf16"] < 0.02
    doubled = rollout(load_forecaster(tmp_path, precision="float64"), first.double(), 3)
    assert doubled.dtype == torch.float64
    evaluate(tmp_path, waves, precision="bf16")
    stored = json.loads((tmp_path / "evaluation-bf16.json").read_text())
    assert stored["config"]["evaluated_in"] == "bf16"
    assert open_run(tmp_path).precision == "float32"


@pytest.mark.parametrize("name", ["ssno-vm", "ffno", "fno", "gkt"])
def test_other_models_learn_under_autocast(waves, name) -> None:
    torch.manual_seed(0)
    forecaster = train(
        model_config(f"{name}:tiny").build(),
        waves.select(indices=range(8)),
        epochs=1,
        precision="bf16",
        reporter=Silent(),
    )
    assert {p.dtype for p in forecaster.model.parameters() if p.is_floating_point()} == {torch.float32}
    model, frames = forecaster.model, torch.randn(1, 4, 1, 16)
    with torch.no_grad():
        exact = model(frames)
        with computing(model, "bf16"):
            coarse = model(frames).float()
    assert 0 < (coarse - exact).norm() < 0.1 * exact.norm()


def test_unknown_precisions_are_refused() -> None:
    with pytest.raises(ValueError, match="`precision` must be one of 'float32', 'bf16', 'float64', got 'half'"):
        check_precision("half")
