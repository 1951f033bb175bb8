"""One model on several grids: each batch on one of them, drawn from seed and epoch alone."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from ssno.data.trajectories import Trajectories
from ssno.forecasting.rollout import rollout
from ssno.models.baselines.fno import FNOConfig
from ssno.models.ssno import SSNOConfig
from ssno.pde.geometry import SPHERE
from ssno.runs.load import load_forecaster
from ssno.runs.options import TrainOptions
from ssno.training.batches import BatchSource, drawn_grid, on_grids
from ssno.training.estimate import estimate
from ssno.training.processes import TrainingInterrupted
from ssno.training.task import task_for
from ssno.training.train import train

TINY = SSNOConfig.tiny().recommended(periodic=True)
GRIDS = (4, 8, 12, 16)


def test_every_grid_comes_once_in_every_round_and_the_order_follows_seed_and_epoch() -> None:
    drawn = [drawn_grid(3, seed=1, epoch=2, batch=batch) for batch in range(30)]
    assert all(sorted(drawn[first : first + 3]) == [0, 1, 2] for first in range(0, 30, 3))
    assert drawn == [drawn_grid(3, seed=1, epoch=2, batch=batch) for batch in range(30)]
    assert drawn != [drawn_grid(3, seed=1, epoch=3, batch=batch) for batch in range(30)]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_batch_has_the_points_of_its_grid(waves, workers) -> None:
    source = BatchSource(waves, batch_size=3, seed=0, grids=(4, 8, 16), workers=workers)
    batches = list(source.epoch(1))
    assert Counter(batch.grid for batch in batches[:6]) == {0: 2, 1: 2, 2: 2}
    for batch in batches:
        truth = waves.read(list(batch.samples)).state
        assert torch.equal(batch.frames.state, truth[..., :: (4, 2, 1)[batch.grid]])
    later = list(source.epoch(1, first=2))
    assert [batch.grid for batch in later] == [batch.grid for batch in batches[2:]]


def test_processes_draw_the_same_grid_for_their_shares(waves) -> None:
    shares = [BatchSource(waves, batch_size=4, seed=0, grids=(8, 16), rank=rank, world=2) for rank in range(2)]
    first, second = ([batch.grid for batch in source.epoch(0)] for source in shares)
    assert first == second


def test_grids_that_do_not_divide_take_the_waves_of_periodic_fields(waves) -> None:
    (coarse,) = on_grids(waves, (12,))
    assert coarse.shape[-1] == 12
    x = 2 * math.pi * np.arange(16) / 16
    phases = np.linspace(0, 1, 3)[:, None, None, None]
    smooth = Trajectories.from_array(np.sin(2 * x + phases), name="sine", lengths=[2 * math.pi])
    expected = np.sin(2 * 2 * math.pi * np.arange(12) / 12 + phases).astype(np.float32)
    np.testing.assert_allclose(on_grids(smooth, (12,))[0].read([0, 1, 2]).state, expected, atol=1e-6)


def test_two_axes_are_coarsened_in_proportion_and_trained() -> None:
    fields = np.random.default_rng(0).standard_normal((4, 5, 1, 16, 8)).astype(np.float32)
    data = Trajectories.from_array(fields, name="noise", lengths=[2.0, 1.0])
    assert [view.shape[3:] for view in on_grids(data, (8, 12))] == [(8, 4), (12, 6)]
    model = SSNOConfig.tiny(n_dims=2)
    trained = train(model, data, valid=data, epochs=1, batch_size=1, grids=(8, 12, 16), compile=False)
    answer = rollout(trained, data.select(resolution=8).read([0]).state[:, :4], 2, spacing=(0.25, 0.25))
    assert answer.shape == (1, 2, 1, 8, 4)


def test_stopped_and_resumed_is_bitwise_the_same(waves, valid_waves, tmp_path) -> None:
    settings = {"valid": valid_waves, "epochs": 2, "batch_size": 3, "grids": GRIDS, "compile": False}
    whole = train(TINY, waves, **settings)
    with pytest.raises(TrainingInterrupted):
        train(TINY, waves, folder=tmp_path / "run", stop_after=5, **settings)
    resumed = train(TINY, waves, folder=tmp_path / "run", resume=True, **settings)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name


def test_a_model_works_as_it_is_on_the_grids_it_was_trained_on_also_from_disk(waves, valid_waves, tmp_path) -> None:
    trained = train(
        TINY, waves, valid=valid_waves, epochs=1, grids=(8, 16), folder=tmp_path / "run", compile=False, batch_size=4
    )
    loaded = load_forecaster(tmp_path / "run")
    for forecaster in (trained, loaded):
        assert forecaster.working_grid((8,), spacing=(2 * math.pi / 8,)) == (8,)
        assert forecaster.working_grid((12,), spacing=(2 * math.pi / 12,)) == (32,)
    alone = train(TINY, waves, valid=valid_waves, epochs=1, compile=False, batch_size=4)
    assert alone.working_grid((8,), spacing=(2 * math.pi / 8,)) == (32,)


def test_a_single_grid_that_is_the_data_s_changes_nothing(waves, valid_waves) -> None:
    settings = {"valid": valid_waves, "epochs": 1, "batch_size": 4, "compile": False}
    plain, named = train(TINY, waves, **settings), train(TINY, waves, grids=(16,), **settings)
    for name, value in plain.model.state_dict().items():
        assert torch.equal(value, named.model.state_dict()[name]), name


@pytest.mark.parametrize("model", [TINY, FNOConfig(hidden_channels=8, n_layers=1)], ids=["ssno", "fno"])
def test_the_forecast_of_the_cost_names_every_grid(waves, valid_waves, model) -> None:
    task = task_for(model, waves, valid=valid_waves, epochs=3, batch_size=4, grids=(8, 16), compile=False)
    cost = estimate(task)
    assert cost.seconds_on is not None
    assert set(cost.seconds_on) == {8, 16}
    assert cost.seconds_per_step == pytest.approx(sum(cost.seconds_on.values()) / 2)


def test_grids_that_make_no_sense_are_refused(waves) -> None:
    with pytest.raises(ValueError, match="`grids` must be different numbers of points"):
        TrainOptions(grids=(8, 8))
    with pytest.raises(ValueError, match="`grids` must be different numbers of points, at least 2"):
        TrainOptions(grids=(1, 8))
    with pytest.raises(ValueError, match="names 32 points along x, but the data have 16: there is nothing to learn"):
        train(TINY, waves, grids=(8, 32))
    square = Trajectories.from_array(np.zeros((2, 5, 1, 16, 6), np.float32), name="flat")
    with pytest.raises(ValueError, match="names 4 points along x, which does not divide 16 x 6 evenly"):
        on_grids(square, (4,))
    walled = replace(waves, axes=tuple(replace(axis, periodic=False) for axis in waves.axes))
    assert on_grids(walled, (8,))[0].shape[-1] == 8
    with pytest.raises(ValueError, match="12 does not divide the 16 points of x"):
        on_grids(walled, (12,))
    with pytest.raises(
        ValueError, match="needs data on a regular grid of a box, but 'waves' has the geometry 'sphere'"
    ):
        on_grids(replace(waves, geometry=SPHERE), (8,))
