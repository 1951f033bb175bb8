"""Forecasts that learn no dynamics, and skill against the best of them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from ssno.data.envelope import Climatology
from ssno.data.load import DataOptions
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.evaluation.evaluate import evaluate
from ssno.evaluation.record import read_evaluation, write_evaluation
from ssno.evaluation.trivial import TRIVIAL, climatology_of_run, skill, trivial_forecasters, with_skill
from ssno.forecasting.scores import Scores, score
from ssno.models.baselines.fno import FFNOConfig
from ssno.runs.checkpoint import CLIMATOLOGY
from ssno.runs.open import open_run
from ssno.training.train import train


@pytest.fixture(scope="module")
def similar() -> Trajectories:
    """Trajectories that differ little from a common course, so that climatology is strong."""
    rng = np.random.default_rng(0)
    course = rng.normal(size=(1, 8, 2, 12))
    return Trajectories.from_array((course + 0.1 * rng.normal(size=(9, 8, 2, 12))).astype(np.float32))


@pytest.mark.parametrize("window", [Window(size=3), Window("ffno", size=2, horizon=3), Window("memno", size=4)])
def test_climatology_and_mean_forecast_what_they_say_from_any_input_frame(similar, window) -> None:
    train, test = similar.select(indices=range(6)), similar.select(indices=range(6, 9))
    climatology = Climatology.of(train)
    found = trivial_forecasters(test, window, climatology=climatology)
    assert tuple(found) == TRIVIAL
    predicted = window.plan(8).predicted
    truth = test.read(slice(None)).state[:, predicted.start :]
    for name, frames in (("climatology", climatology.frames), ("mean", climatology.mean_of(test))):
        difference = (frames[predicted.start :] - truth).flatten(1).norm(dim=1) / truth.flatten(1).norm(dim=1)
        means = score(found[name], test).means
        assert means["rel_l2"] == pytest.approx(difference.mean().item(), rel=1e-5)
        assert means["rel_l2_onestep"] == pytest.approx(means["rel_l2"], rel=1e-5)


def test_skill_is_the_distance_below_the_best_trivial_forecast() -> None:
    def scores(error: float) -> Scores:
        return Scores({"rel_l2": error}, (error,), (error,))

    baselines = {"persistence": scores(0.4), "climatology": scores(0.2), "solver, same grid": scores(0.01)}
    assert with_skill(scores(0.05), baselines).means == {"rel_l2": 0.05, "skill": pytest.approx(0.75)}
    assert with_skill(scores(0.3), baselines).means["skill"] == pytest.approx(-0.5)
    assert with_skill(scores(0.3), {}).means == {"rel_l2": 0.3}
    assert skill(math.inf, 0.2) == -math.inf
    assert (skill(0.0, 0.0), skill(0.1, 0.0)) == (0.0, -math.inf)


def test_anomalies_are_relative_to_the_deviation_from_climatology(make_run) -> None:
    folder = make_run()
    found = evaluate(folder)
    run = open_run(folder)
    assert not found.no_climatology
    assert found.baselines["climatology"].means["rel_l2_anomaly"] == pytest.approx(1.0)
    test, frames = run.load("test"), Climatology.of(run.load("train")).frames[2:]
    truth = test.read(slice(None)).state[:, 2:]
    still = test.read(slice(None)).state[:, 1:2]
    ratio = (truth - still).flatten(1).norm(dim=1) / (truth - frames).flatten(1).norm(dim=1)
    assert found.baselines["persistence"].means["rel_l2_anomaly"] == pytest.approx(ratio.mean().item(), rel=1e-5)
    best = min(found.baselines[name].means["rel_l2"] for name in TRIVIAL)
    assert found.scores.means["skill"] == pytest.approx(1 - found.scores.means["rel_l2"] / best)


def test_a_run_stores_the_climatology_of_its_training_data_and_evaluation_takes_it(similar, tmp_path) -> None:
    train_data, test = similar.select(indices=range(6)), similar.select(indices=range(6, 9))
    train(FFNOConfig.tiny(n_modes=3), train_data, valid=test, epochs=1, folder=tmp_path / "run", device="cpu")
    stored = Climatology.read(tmp_path / "run" / CLIMATOLOGY)
    torch.testing.assert_close(stored.frames, Climatology.of(train_data).frames)
    found = evaluate(tmp_path / "run", test)
    assert set(TRIVIAL) <= set(found.baselines)
    other = evaluate(tmp_path / "run", test.select(time_index=range(7)).select(resolution=6))
    assert set(other.baselines) == {"persistence", "linear"}
    assert other.no_climatology.startswith("the run stored none on this grid, and was started from Python")
    (tmp_path / "run" / CLIMATOLOGY).write_bytes(b"")
    with pytest.raises(ValueError, match="climatology.safetensors is damaged"):
        evaluate(tmp_path / "run", test)


def test_a_forecaster_takes_the_climatology_that_it_is_given(make_run) -> None:
    run = open_run(make_run())
    data, usual = run.load("test"), Climatology.of(run.load("train"))
    assert "climatology" in evaluate(run.forecaster, data, climatology=usual).baselines
    bare = evaluate(run.forecaster, data)
    assert bare.no_climatology
    assert "climatology" not in bare.baselines


def test_why_there_is_no_climatology_is_said(make_run, tmp_path) -> None:
    run = open_run(make_run())
    data = run.load("test")
    gone = replace(run, data=DataOptions(name=str(tmp_path / "gone")))
    assert "its training data cannot be read (There is no file or folder" in str(climatology_of_run(gone, data))
    later = evaluate(run, replace(data, times=data.times + 0.01), write=False)
    assert later.no_climatology.startswith("the training trajectories have no frame at t = 0.01")
    assert set(later.baselines) == {"persistence", "linear", "mean"}


def test_the_skill_of_a_diverged_forecast_survives_the_file(make_run, tmp_path) -> None:
    found = evaluate(make_run(), write=False)
    means = {**found.scores.means, "rel_l2": math.inf, "skill": -math.inf}
    found = replace(found, scores=replace(found.scores, means=means))
    assert read_evaluation(write_evaluation(found, tmp_path / "evaluation.json")).scores.means == means
