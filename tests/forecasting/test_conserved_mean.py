"""`conserve_mean`: forecasts keep the mean of each field, in training, streams, exports, files and pieces."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ssno.data import Trajectories, Window, fit
from ssno.export.step import ForecastStep
from ssno.forecasting import Forecaster, rollout
from ssno.models import model_config
from ssno.runs.load import load_forecaster
from ssno.runs.options import TrainOptions, recipe
from ssno.training import train

FIRST = torch.rand(2, 5, 2, 16, 16, generator=torch.Generator().manual_seed(0)) + torch.tensor([3.0, -1.0]).view(
    2, 1, 1
)


def made(*, predict_increment: bool = True, conserve_mean: bool = True) -> Forecaster:
    """A forecaster whose bias makes the mean drift unless it is kept."""
    torch.manual_seed(0)
    data = Trajectories.from_array(torch.rand(4, 6, 2, 16, 16).numpy(), lengths=[1.0, 1.0])
    model = model_config("ssno-warp:tiny", n_dims=2, in_channels=2, out_channels=2).recommended(periodic=True).build()
    with torch.no_grad():
        model.head.narrow.bias.add_(torch.tensor([0.5, -0.5]))
    options = {"predict_increment": predict_increment, "conserve_mean": conserve_mean}
    return Forecaster(model, normalisers=fit(data), window=Window(size=4), **options).eval()


def drift(frames: torch.Tensor) -> float:
    before = FIRST[:, -1:].mean((-2, -1))
    return float((frames.mean((-2, -1)) - before).abs().max())


@pytest.mark.parametrize("predict_increment", [True, False])
def test_forecasts_keep_the_mean_of_every_field(predict_increment: bool) -> None:
    assert drift(rollout(made(predict_increment=predict_increment, conserve_mean=False), FIRST, 10)) > 0.1
    assert drift(rollout(made(predict_increment=predict_increment), FIRST, 10)) < 1e-5


def test_training_and_streaming_compute_the_same() -> None:
    forecaster = made()
    units = forecaster.units(FIRST)
    state, context = units.encode(FIRST), torch.zeros(2, 5, 0, 16, 16)
    with torch.no_grad():
        following = forecaster(state, context)
        stream = forecaster.start(state[:, :1], context[:, :1])
        for t in range(5):
            frame, stream = forecaster.step(state[:, t], context[:, t], stream)
            torch.testing.assert_close(frame, following[:, t], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(following.mean((-2, -1)), state.mean((-2, -1)), atol=1e-6)


@pytest.mark.parametrize("predict_increment", [True, False])
def test_an_exported_step_keeps_it_too(predict_increment: bool) -> None:
    forecaster = made(predict_increment=predict_increment)
    step = ForecastStep(forecaster, grid=(16, 16), spacing=None)
    buffer = step.empty_buffer(2)
    with torch.no_grad():
        for t in range(5):
            frame, buffer = step(FIRST[:, t], buffer)
    assert drift(frame[:, None]) < 1e-5
    torch.testing.assert_close(frame, rollout(forecaster, FIRST, 1)[:, 0], rtol=1e-4, atol=1e-4)


def test_files_remember_it_and_older_ones_are_without(tmp_path) -> None:
    forecaster = made()
    forecaster.save(tmp_path)
    expected = rollout(forecaster, FIRST, 2)
    torch.testing.assert_close(rollout(load_forecaster(tmp_path), FIRST, 2), expected)
    document = json.loads((tmp_path / "config.json").read_text())
    assert document["forecaster"].pop("conserve_mean") is True
    (tmp_path / "config.json").write_text(json.dumps(document))
    assert not load_forecaster(tmp_path).conserve_mean


def test_the_recipe_keeps_it_on_the_tori_for_every_model() -> None:
    assert [recipe("fast", n_dims=2, dataset=name).conserve_mean for name in ("torus-li", "torus-vis", "ce-rm")] == [
        1,
        1,
        0,
    ]
    assert not recipe("paper", n_dims=2, dataset="torus-li").conserve_mean
    assert not TrainOptions().conserve_mean


def test_a_training_learns_with_it(tmp_path) -> None:
    rng = np.random.default_rng(0)
    waves = np.cumsum(rng.standard_normal((8, 6, 1, 16)).astype(np.float32) * 0.1, axis=1)
    data = Trajectories.from_array(waves - waves.mean(-1, keepdims=True), lengths=[1.0])
    config = model_config("ssno:tiny").recommended(periodic=True)
    forecaster = train(config, data, epochs=2, conserve_mean=True, seed=0)
    assert forecaster.conserve_mean
    frames = rollout(forecaster, torch.as_tensor(waves[:1, :4]), 3)
    np.testing.assert_allclose(frames.mean(-1), np.broadcast_to(waves[:1, 3:4].mean(-1), (1, 3, 1)), atol=1e-5)


def test_points_without_data_are_refused() -> None:
    fields = {"fields": ["u", "mask"], "context_fields": ["mask"]}
    data = Trajectories.from_array(torch.rand(4, 6, 2, 16).numpy(), lengths=[1.0], **fields)
    with pytest.raises(ValueError, match="`conserve_mean` needs data on the whole grid"):
        Forecaster(model_config("ssno:tiny").build(), normalisers=fit(data), conserve_mean=True, mask="mask")


def test_a_piece_of_a_field_keeps_the_mean_of_the_whole() -> None:
    data = Trajectories.from_array(torch.rand(4, 6, 2, 16).numpy(), lengths=[1.0])
    model = model_config("ssno:tiny", in_channels=2, out_channels=2).build()
    forecaster = Forecaster(model, normalisers=fit(data), predict_increment=True, conserve_mean=True)
    whole, answer = torch.rand(1, 1, 2, 16), torch.rand(1, 1, 2, 16)
    expected = forecaster._next(whole, answer)
    change = forecaster.increment_scale[:, None] * answer
    parts = slice(8), slice(8, 16)
    for number, part in enumerate(parts):
        other = change[..., parts[1 - number]].mean(-1)
        model.space = SimpleNamespace(mean=lambda own, other=other: (own + other) / 2)
        torch.testing.assert_close(forecaster._next(whole[..., part], answer[..., part]), expected[..., part])
