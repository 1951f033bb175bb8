"""Whole trainings on the pretended GPU: losses, validation, checkpoints, resuming, forecasts, as on the CPU."""

import pytest
import torch
from tests.waves import travelling_waves
from torch import nn

from ssno.data.trajectories import Trajectories
from ssno.evaluation.evaluate import calibrate_ensemble
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.predict import predict
from ssno.forecasting.rollout import rollout, stream
from ssno.forecasting.scores import EVERY, score
from ssno.models.registry import model_config
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.load import load_forecaster
from ssno.runs.log import Silent
from ssno.runs.options import Unrolling
from ssno.training.processes import TrainingInterrupted
from ssno.training.train import train


def waves(*, context: bool = False) -> Trajectories:
    return travelling_waves(4, seed=0, frames=6, context=context)


def trained(device, *, data=None, name: str = "ssno", **more):
    data = waves() if data is None else data
    torch.manual_seed(0)
    channels = len(data.fields) + len(data.context_fields)
    model = model_config(f"{name}:tiny", in_channels=channels).build()
    settings = {"valid": data.select(indices=[0]), "batch_size": 2, "epochs": 1, "engine": "torch"}
    settings |= {"optimizer": "adamw", "learning_rate": 3e-3}  # SOAP makes more of the last bits
    return train(model, data, device=device, reporter=Silent(), **{**settings, **more})


def not_near(away: nn.Module, here: nn.Module) -> list[str]:
    """Weights that are not on the device, or not those of the CPU to rounding."""
    expected = here.state_dict()
    return [
        name
        for name, weight in away.state_dict().items()
        if weight.device.type != "gpu" or not torch.allclose(weight.cpu(), expected[name], rtol=1e-3, atol=1e-5)
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"ema": 0.9},
        {"unroll": Unrolling(teacher_forcing=(0.5,), truncate=2)},
        {"unroll": Unrolling(teacher_forcing=(0.0,), gradient_checkpointing=True)},
        {"unroll": Unrolling(pushforward=(1,))},
        {"data": waves(context=True)},
        {"name": "gkt", "normalisation": "per_sample_minmax"},
    ],
    ids=["averaged", "cut", "recomputed", "pushforward", "context", "frames-as-channels"],
)
def test_a_run_on_the_device_is_the_run_on_the_cpu(gpu, more) -> None:
    assert not_near(trained(gpu, **more).model, trained("cpu", **more).model) == []


def test_soap_stays_on_the_device(gpu) -> None:
    weights = trained(gpu, optimizer="soap", epochs=2).model.state_dict()
    assert {weight.device.type for weight in weights.values()} == {"gpu"}
    assert all(weight.cpu().isfinite().all() for weight in weights.values())


def test_a_run_goes_on_where_it_stopped_on_either_device(gpu, tmp_path) -> None:
    whole = trained(gpu, ema=0.9, folder=tmp_path / "whole")
    with pytest.raises(TrainingInterrupted):
        trained(gpu, ema=0.9, folder=tmp_path / "cut", stop_after=1)
    cut = trained(gpu, ema=0.9, folder=tmp_path / "cut", resume=True)
    assert all(torch.equal(cut.model.state_dict()[n].cpu(), v.cpu()) for n, v in whole.model.state_dict().items())
    with pytest.raises(TrainingInterrupted):
        trained("cpu", ema=0.9, folder=tmp_path / "moved", stop_after=1)
    moved = trained(gpu, ema=0.9, folder=tmp_path / "moved", resume=True)
    assert not_near(moved.model, whole.model.cpu()) == []


@pytest.fixture
def forecaster(gpu, tmp_path):
    trained("cpu", folder=tmp_path / "run")
    return load_forecaster(tmp_path / "run")


def test_a_forecast_comes_back_to_the_device_of_the_given_frames(gpu, forecaster) -> None:
    first = waves().read(slice(None)).state[:, :4]
    here = rollout(forecaster, first, 3)
    away = rollout(forecaster, first, 3, device=gpu)
    assert forecaster.device == gpu
    assert away.device.type == "cpu"
    assert rollout(forecaster, first.to(gpu), 3).device == next(stream(forecaster, first)).device == gpu
    torch.testing.assert_close(away, here, rtol=1e-4, atol=1e-5)


def test_known_fields_follow_the_forecaster(gpu) -> None:
    data = waves(context=True)
    forecaster = trained("cpu", data=data)
    frames = data.read(slice(None))
    here = rollout(forecaster, frames.state[:, :4], 3, context=frames.context)
    forecaster.to(gpu)
    for context in (frames.context, lambda number: frames.context[:, number]):
        away = rollout(forecaster, frames.state[:, :4], 3, context=context)
        torch.testing.assert_close(away, here, rtol=1e-4, atol=1e-5)


def test_scores_are_those_of_the_cpu(gpu, forecaster) -> None:
    here = score(forecaster, waves(), metrics=EVERY)
    away = score(forecaster.to(gpu), waves(), metrics=EVERY)
    assert here.means.keys() == away.means.keys()
    assert away.means == pytest.approx(here.means, rel=1e-3)
    assert away.step_errors == pytest.approx(here.step_errors, rel=1e-3)


def test_an_ensemble_is_scored_and_calibrated_on_the_device(gpu, forecaster) -> None:
    torch.manual_seed(1)
    other = train(SSNO(SSNOConfig.tiny()), waves(), valid=waves(), epochs=1, device="cpu", reporter=Silent())
    ensemble = Ensemble([forecaster, other])
    here = score(ensemble, waves()).means, calibrate_ensemble(ensemble, waves())
    ensemble.to(gpu)
    assert ensemble.device == gpu
    assert score(ensemble, waves()).means == pytest.approx(here[0], rel=1e-3)
    assert calibrate_ensemble(ensemble, waves()).ratio == pytest.approx(here[1].ratio, rel=1e-3)


def test_forecasts_are_written_from_the_device(gpu, forecaster, tmp_path) -> None:
    made = predict(forecaster.to(gpu), waves(), tmp_path / "next.h5", steps=4)
    assert made.path.is_file()
    assert not made.divergences
