"""Trainings that start from a trained model: on another grid, on other data."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ssno.data.options import DataOptions
from ssno.forecasting.rollout import rollout
from ssno.models.ssno import SSNOConfig
from ssno.runs.options import TrainOptions
from ssno.runs.run import Run
from ssno.runs.saved import load_forecaster
from ssno.training.reporter import Silent
from ssno.training.train import train


@pytest.fixture
def two_grids(tmp_path):
    """A run on 16 points, and files of the same waves on 16 points and on 32, and of others on a longer axis."""
    x, t = np.arange(32) / 32, 0.05 * np.arange(8)[:, None]
    phase = np.random.default_rng(0).uniform(0, 1, (12, 1, 1))
    np.save(tmp_path / "waves.npy", np.sin(2 * np.pi * (x - t + phase)).astype(np.float32))
    np.save(tmp_path / "others.npy", np.sin(4 * np.pi * (x - t + phase)).astype(np.float32))
    options = TrainOptions(epochs=1, batch_size=4)
    data = DataOptions(name=str(tmp_path / "waves.npy"), axes="batch time x", lengths=(1.0,), dt=0.05, points=16)
    run = Run(data=data, model=SSNOConfig.tiny(boundary="wrapped"), train=options)
    train(run, folder=tmp_path / "first", reporter=Silent())
    frozen = replace(options, learning_rate=1e-30)
    return tmp_path, replace(run, train=frozen, start_from=str(tmp_path / "first"))


def test_fine_tuning_on_another_grid_keeps_the_kernels_lengths(two_grids) -> None:
    folder, run = two_grids
    source = load_forecaster(folder / "first")
    tuned = train(replace(run, data=replace(run.data, points=32)), folder=folder / "tuned", reporter=Silent())
    assert tuned.spacing == source.spacing == (1 / 16,)
    fine = replace(run.data, points=32).load("valid")
    frames = fine.read([0]).state[:, :4]
    for forecaster in (tuned, load_forecaster(folder / "tuned")):
        forecast = rollout(forecaster, frames, 3, spacing=fine.spacing)
        torch.testing.assert_close(forecast, rollout(source, frames, 3, spacing=fine.spacing), rtol=1e-4, atol=1e-4)
    again = replace(run, data=replace(run.data, points=32), train=replace(run.train, epochs=2))
    assert train(again, folder=folder / "tuned", resume=True, reporter=Silent()).spacing == (1 / 16,)


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
