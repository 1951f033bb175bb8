"""Trainings that start from a trained model: on another grid, on other data."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from ssno.data.load import DataOptions
from ssno.data.normalise import Normaliser, Normalisers, reuse_units
from ssno.forecasting.rollout import rollout
from ssno.forecasting.scores import score
from ssno.models.ssno import SSNOConfig
from ssno.runs.load import load_forecaster
from ssno.runs.log import Silent
from ssno.runs.options import TrainOptions
from ssno.runs.run import Run, read_run
from ssno.training.train import train


@pytest.fixture
def two_grids(tmp_path):
    """A run on 16 points, and files of the same waves on 16 points and on 32, and of others on a longer axis."""
    x, t = np.arange(32) / 32, 0.05 * np.arange(8)[:, None]
    phase = np.random.default_rng(0).uniform(0, 1, (12, 1, 1))
    np.save(tmp_path / "waves.npy", np.sin(2 * np.pi * (x - t + phase)).astype(np.float32))
    np.save(tmp_path / "others.npy", np.sin(4 * np.pi * (x - t + phase)).astype(np.float32))
    options = TrainOptions(epochs=1, batch_size=4)
    data = DataOptions(name=str(tmp_path / "waves.npy"), axes="batch time x", lengths=(1.0,), dt=0.05, resolution=16)
    run = Run(data=data, model=SSNOConfig.tiny(boundary="periodic"), train=options)
    train(run, folder=tmp_path / "first", reporter=Silent())
    frozen = replace(options, learning_rate=1e-30)
    return tmp_path, replace(run, train=frozen, start_from=str(tmp_path / "first"))


def test_fine_tuning_on_another_grid_makes_it_the_reference(two_grids) -> None:
    folder, run = two_grids
    source = load_forecaster(folder / "first")
    tuned = train(replace(run, data=replace(run.data, resolution=32)), folder=folder / "tuned", reporter=Silent())
    fine = replace(run.data, resolution=32).load("valid")
    assert source.spacing == (1 / 16,)
    assert tuned.spacing == fine.spacing == (1 / 32,)
    frames = fine.read([0]).state[:, :4]
    apart = rollout(source, frames, 3, spacing=fine.spacing)  # on copies of the trained grid
    assert source.copies((32,), spacing=fine.spacing) == (2,)
    for forecaster in (tuned, load_forecaster(folder / "tuned")):  # long waves start where they were
        assert forecaster.copies((32,), spacing=fine.spacing) == (1,)
        torch.testing.assert_close(rollout(forecaster, frames, 3, spacing=fine.spacing), apart, rtol=0, atol=0.03)
    document = json.loads((folder / "tuned" / "config.json").read_text())
    assert document["config"]["reference_spacing"] == [1 / 32]  # and nowhere else
    assert document["run"]["model"]["reference_spacing"] is None
    assert "spacing" not in document["forecaster"]
    document["run"]["model"]["reference_spacing"] = document["forecaster"]["spacing"] = [1 / 32]  # as it was written
    (folder / "tuned" / "config.json").write_text(json.dumps(document))
    again = replace(run, data=replace(run.data, resolution=32), train=replace(run.train, epochs=2))
    resumed = train(again, folder=folder / "tuned", resume=True, reporter=Silent())
    assert resumed.spacing == (1 / 32,)
    assert resumed.normalisers == tuned.normalisers


def test_the_finest_of_several_grids_is_the_reference(two_grids) -> None:
    folder, run = two_grids
    fresh = replace(
        run, start_from=None, data=replace(run.data, resolution=None), train=replace(run.train, grids=(8, 16))
    )
    trained = train(fresh, folder=folder / "several", reporter=Silent())
    assert trained.spacing == (1 / 16,)
    assert trained.spacings == ((1 / 8,), (1 / 16,))
    assert read_run(folder / "several").data.resolution == 16
    again = replace(read_run(folder / "several"), train=replace(fresh.train, epochs=2))
    assert train(again, folder=folder / "several", resume=True, reporter=Silent()).spacing == (1 / 16,)


def test_fine_tuning_keeps_the_units_of_the_weights_and_gets_better(two_grids) -> None:
    folder, run = two_grids
    waves = np.load(folder / "waves.npy")
    np.save(folder / "shifted.npy", 3 * waves + 2)
    shifted = replace(run.data, name=str(folder / "shifted.npy"))
    options = replace(run.train, learning_rate=1e-3, epochs=3)
    tuned = train(replace(run, data=shifted, train=options), reporter=Silent())
    source = load_forecaster(folder / "first")
    assert tuned.normalisers.state.scale == source.normalisers.state.scale
    errors = [score(one, shifted.load("valid")).means["rel_l2_onestep"] for one in (source, tuned)]
    assert errors[1] < errors[0]
    refitted = replace(options, refit_normalisation=True, learning_rate=1e-30, epochs=1)
    other = train(replace(run, data=shifted, train=refitted), reporter=Silent())
    assert other.normalisers.state.scale[0] == pytest.approx(3 * source.normalisers.state.scale[0], rel=1e-3)


def test_a_field_that_was_constant_takes_the_units_of_the_new_data() -> None:
    def one(shift: float, scale: float) -> Normaliser:
        return Normaliser("zscore", ("nu",), (shift,), (scale,), (0.0,))

    state = Normaliser("zscore", ("u",), (1.0,), (2.0,), (0.1,))
    fitted = Normalisers(Normaliser("minmax", ("v",), (5.0,), (9.0,), (0.3,)), one(0.2, 0.1))
    kept = reuse_units(Normalisers(state, one(0.1, 0.0)), fitted)
    assert kept.state == replace(state, fields=("v",))
    assert kept.context == one(0.2, 0.1)


def test_fine_tuning_on_other_data_makes_their_grid_the_reference(two_grids) -> None:
    folder, run = two_grids
    others = replace(run.data, name=str(folder / "others.npy"), lengths=(64.0,))
    tuned = train(replace(run, data=others), folder=folder / "tuned", reporter=Silent())
    assert tuned.spacing == others.load("train").spacing == (4.0,)
    source, frames = load_forecaster(folder / "first"), torch.randn(1, 4, 1, 16)
    for half in (tuned, load_forecaster(folder / "tuned")):  # half the spacing, whatever its unit
        expected = source.model(frames, spacing=(1 / 32,))
        torch.testing.assert_close(half.model(frames, spacing=half.spacing_for_model((2.0,))), expected)
        assert half.spacing_for_model((4.0,)) is None


def test_data_that_do_not_fit_the_weights_are_refused_with_a_reason(two_grids) -> None:
    folder, run = two_grids
    np.save(folder / "plane.npy", np.zeros((12, 8, 16, 16), np.float32))
    plane = DataOptions(name=str(folder / "plane.npy"), axes="batch time x y")
    with pytest.raises(ValueError, match="The model has n_dims = 1, but the grid of 'plane' has the axes x, y"):
        train(replace(run, data=plane), reporter=Silent())
