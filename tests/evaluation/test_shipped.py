"""The checkpoints that ship with the package do what they say, on data made anew."""

from pathlib import Path

import pytest
import torch

from ssno import SSNO
from ssno.data.datasets import build_plan
from ssno.data.generation import generate
from ssno.data.load import load_dataset
from ssno.evaluation.evaluate import evaluate
from ssno.forecasting.scores import score
from ssno.models.operator import count_parameters
from ssno.models.pretrained import reported_metrics
from ssno.runs.load import load_forecaster
from ssno.runs.open import open_run


@pytest.mark.parametrize("name", ["ks-0.1-64", "burgers-64"])
def test_the_promised_checkpoints_load_by_name(name: str) -> None:
    model = SSNO.from_pretrained(name)
    assert count_parameters(model) == 203_649  # the published 203,713 without the 64 weights of a coordinate


def test_the_stated_error_is_measured_again(tmp_path: Path) -> None:
    plan = build_plan("ks", "paper", counts={"train": 1, "valid": 1, "test": 256}, viscosity=0.1)
    generate(plan, tmp_path / "ks", jobs=1)
    data = load_dataset(tmp_path / "ks", "test", resolution=64)
    measured = evaluate("ks-0.1-64", data=data, write=False).scores.means
    stated = reported_metrics(open_run("ks-0.1-64").config)
    assert stated is not None
    assert measured["rel_l2"] == pytest.approx(stated.rel_l2, rel=1e-3)
    assert measured["rel_l2_onestep"] == pytest.approx(stated.rel_l2_onestep, rel=1e-3)


@pytest.mark.parametrize("name", ["torus-li-64", "torus-vis-force-64", "ce-rm-64"])
def test_flows_are_forecast_on_their_own_grid_and_not_on_copies_of_a_coarser_one(name: str) -> None:
    run = open_run(name, device="cpu")
    forecaster = run.forecaster
    assert forecaster.copies((64, 64), spacing=(1 / 64, 1 / 64)) == (1, 1)
    torch.manual_seed(0)
    frames = torch.randn(1, 4, forecaster.model.config.in_channels, 64, 64)
    moved = frames.clone()
    moved[..., 1, 1] += 1
    with torch.no_grad():
        difference = forecaster.model(frames) - forecaster.model(moved)
    assert difference[..., ::2, ::2].abs().max() > 1e-4  # points between those of the coarser grid are heard


def test_the_stated_lift_is_measured_again(tmp_path: Path) -> None:
    """On 16 of the 128 cases: single forecasts scatter, so within a fifth."""
    plan = build_plan("kt-foil", "small", counts={"train": 1, "valid": 1, "test": 16})
    generate(plan, tmp_path / "kt-foil", jobs=1)
    stated = reported_metrics(open_run("kt-foil").config)
    assert stated is not None
    assert stated.lift_abs is not None
    measured = evaluate("kt-foil", data=load_dataset(tmp_path / "kt-foil", "test"), write=False).scores.means
    assert measured["rel_l2"] == pytest.approx(stated.rel_l2, rel=0.2)
    assert measured["lift_abs"] == pytest.approx(stated.lift_abs, rel=0.5)
    assert measured["lift_rank"] > 0.95


def test_the_stated_error_on_the_sphere_is_measured_again(tmp_path: Path) -> None:
    """On 4 of the test trajectories: they scatter, so within a fifth."""
    plan = build_plan("swe", "small", counts={"train": 1, "valid": 1, "test": 4}, frames=11)
    generate(plan, tmp_path / "swe", jobs=1)
    stated = reported_metrics(open_run("swe-32").config)
    assert stated is not None
    assert stated.rel_l2_normalised is not None
    data = load_dataset(tmp_path / "swe", "test")
    measured = score(load_forecaster("swe-32"), data).means
    assert measured["rel_l2_normalised"] == pytest.approx(stated.rel_l2_normalised, rel=0.2)


@pytest.mark.parametrize(("dataset", "tested"), [("torus-li", 2), ("torus-vis-force", 2), ("ce-rm", 1)])
def test_the_stated_error_of_flows_is_measured_again(dataset: str, tested: int, tmp_path: Path) -> None:
    """On a few of the test trajectories: they scatter, so within a third."""
    plan = build_plan(dataset, "small", counts={"train": 1, "test": tested})
    generate(plan, tmp_path / dataset, jobs=1)
    stated = reported_metrics(open_run(f"{dataset}-64").config)
    assert stated is not None
    assert stated.points == 64
    data = load_dataset(tmp_path / dataset, "test", resolution=64)
    measured = evaluate(f"{dataset}-64", data=data, write=False).scores.means
    assert measured["rel_l2"] == pytest.approx(stated.rel_l2, rel=0.33)
    assert measured["rel_l2_onestep"] == pytest.approx(stated.rel_l2_onestep, rel=0.33)
