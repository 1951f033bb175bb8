"""Every registered model trains, resumes exactly, rolls out, saves and loads in the same loop."""

import numpy as np
import pytest
import torch
from tests.families import supported
from tests.training.small_runs import outcome

from ssno.data.trajectories import Trajectories
from ssno.forecasting.rollout import rollout
from ssno.models.registry import MODELS, model_config
from ssno.runs.load import load_forecaster
from ssno.runs.log import Silent
from ssno.training.processes import TrainingInterrupted
from ssno.training.train import train

LEARNED = [name for name in MODELS if name not in ("persistence", "linear")]


def smooth_fields(n_dims: int) -> Trajectories:
    """Waves that travel along every axis, on the smallest grid that all models take."""
    rng = np.random.default_rng(0)
    angle = 2 * np.pi * np.arange(16) / 16
    grid = sum(np.meshgrid(*[angle] * n_dims, indexing="ij"))
    shift = rng.uniform(0, 6, 6)[:, None] + 0.2 * np.arange(7)
    array = np.sin(grid - shift[..., *(None,) * n_dims])
    return Trajectories.from_array(array[:, :, None].astype(np.float32), name="smooth", lengths=[1.0] * n_dims)


CASES = [(name, n_dims) for name in LEARNED for n_dims in (1, 2) if supported(name, n_dims)]


def test_no_model_is_left_out() -> None:
    assert {name for name, _ in CASES} == set(LEARNED)
    assert len(CASES) >= 17


@pytest.mark.parametrize(("name", "n_dims"), CASES)
def test_training_resumes_bitwise_and_comes_back_from_disk(name, n_dims, tmp_path) -> None:
    data = smooth_fields(n_dims)
    settings = {"valid": data.select(indices=range(4, 6)), "epochs": 2, "batch_size": 2, "reporter": Silent()}

    def model() -> torch.nn.Module:
        torch.manual_seed(0)
        return model_config(f"{name}:tiny", n_dims=n_dims).build()

    forecaster = train(model(), data.select(indices=range(4)), folder=tmp_path / "whole", **settings)
    with pytest.raises(TrainingInterrupted):
        train(model(), data.select(indices=range(4)), folder=tmp_path / "cut", stop_after=3, **settings)
    train(model(), data.select(indices=range(4)), folder=tmp_path / "cut", resume=True, **settings)
    assert outcome(tmp_path / "whole") == outcome(tmp_path / "cut")

    first = data.read([5]).state[:, :4]
    forecast = rollout(forecaster, first, 2)
    assert forecast.isfinite().all()
    assert torch.equal(rollout(load_forecaster(tmp_path / "whole"), first, 2), forecast)
