"""Points without data: held in forecasts, absent from loss and errors, static or moving."""

import numpy as np
import pytest
import torch
from torch import nn

from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.metrics import mean_drift, nrmse, pearson, vrmse
from ssno.forecasting.rollout import rollout
from ssno.forecasting.scores import forecast_errors, score, score_forecasts
from ssno.layers.memory import MemoryOptions
from ssno.models.ssno import SSNOConfig
from ssno.runs.load import load_forecaster
from ssno.runs.log import Silent
from ssno.runs.options import Unrolling
from ssno.training.batches import prepare
from ssno.training.objective import Objective
from ssno.training.task import task_for
from ssno.training.train import train

POINTS, FRAMES = 16, 8


def obstacle(*, moving: bool) -> Trajectories:
    """Waves about 3 in a channel with four cells missing; if moving, the gap goes one cell further with every frame."""
    rng = np.random.default_rng(0)
    x, t = np.arange(POINTS) / POINTS, np.arange(FRAMES)[:, None] / 10
    waves = 3 + np.sin(2 * np.pi * (x - t + rng.random((10, 1, 1))))
    first = 5 + (np.arange(FRAMES)[:, None] if moving else 0)
    mask = np.broadcast_to((np.arange(POINTS) >= first) & (np.arange(POINTS) < first + 4), waves.shape)
    array = np.stack([waves, mask], axis=2).astype(np.float32)
    return Trajectories.from_array(array, fields=["u", "solid"], context_fields=["solid"], lengths=[1.0]).masked(
        "solid"
    )


class Shifted(nn.Module):
    """A model whose answers have something added at masked points."""

    def __init__(self, model: nn.Module, by: float):
        super().__init__()
        self.model, self.by = model, by

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.model(frames) + self.by * (frames[:, :, 1:] > 0.5)


def losses(task, by: float, stage) -> torch.Tensor:
    task.forecaster.model.by = by
    prepared = prepare(task.forecaster, task.data.read(range(4)), range(4), stage=stage, noise=1e-3)
    return Objective(task.forecaster, compile=False)(prepared)[0].detach()


@pytest.mark.parametrize("forcing", [1.0, 0.0])
def test_answers_inside_obstacles_change_neither_loss_nor_errors(forcing: float) -> None:
    model = Shifted(SSNOConfig.tiny(in_channels=2, memory=MemoryOptions(0, d_state=8)).build(), 0.0)
    task = task_for(model, obstacle(moving=False), epochs=1, window=Window(size=1))
    stage = Unrolling(teacher_forcing=(forcing,)).stage(0, 1)
    assert torch.equal(losses(task, 0.0, stage), losses(task, 100.0, stage))
    scores = []
    for model.by in (0.0, 100.0):
        scores.append(score(task.forecaster, task.valid).means)
    assert scores[0] == scores[1]


def test_norms_leave_obstacles_out() -> None:
    task = task_for(SSNOConfig.tiny(memory=MemoryOptions(0, d_state=8)), obstacle(moving=False), epochs=1)
    prepared = prepare(task.forecaster, task.data.read(range(4)), range(4), stage=Unrolling().stage(0, 1), noise=1e-3)
    assert not prepared.targets[..., 5:9].any()
    assert not prepared.inputs[..., 5:9].any()
    assert prepared.targets[..., :5].abs().min() > 0
    free = task.data.read(range(4)).state[..., [*range(5), *range(9, POINTS)]]
    encoded = (free - task.forecaster.normalisers.state.shift[0]) / task.forecaster.normalisers.state.scale[0]
    norms = [torch.linalg.vector_norm(fields.flatten(2), dim=2) for fields in (prepared.targets, encoded[:, 1:])]
    torch.testing.assert_close(*norms, rtol=1e-4, atol=1e-4)


def test_a_hundred_steps_keep_obstacle_cells_exact(tmp_path) -> None:
    data = obstacle(moving=False)
    forecasters = [
        train(SSNOConfig.tiny(), data, epochs=1, seed=seed, folder=tmp_path / str(seed), reporter=Silent())
        for seed in (0, 1)
    ]
    frames = data.read(range(2))
    known = frames.context[:, :1].expand(-1, 104, -1, -1)
    again = load_forecaster(tmp_path / "0")
    assert again.mask == "solid"
    for forecaster in (*forecasters, again, Ensemble(forecasters)):
        forecast = rollout(forecaster, frames.state[:, :4], 100, context=known)
        assert (forecast[..., 5:9] == 0).all()
        assert forecast[..., :5].abs().min() > 0


def test_a_moving_obstacle_is_where_it_will_be() -> None:
    data = obstacle(moving=True)
    forecaster = train(SSNOConfig.tiny(), data, epochs=1, reporter=Silent())
    frames = data.read(range(2))
    forecast = rollout(forecaster, frames.state[:, :4], 4, context=frames.context)
    outside = frames.context[:, 4:] > 0
    assert (forecast[outside] == 0).all()
    assert (forecast[~outside] != 0).all()


def test_a_mask_that_is_no_known_field_is_refused() -> None:
    task = task_for(SSNOConfig.tiny(), obstacle(moving=False), epochs=1)
    from ssno.forecasting.forecaster import Forecaster

    with pytest.raises(ValueError, match="`mask` must be one of the context fields"):
        Forecaster(task.forecaster.model, normalisers=task.forecaster.normalisers, mask="land")


def bent(*, moving: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A forecast, the truth and the mask: two fields with a large mean, four of sixteen cells missing."""
    state, context = obstacle(moving=moving).read(range(3))
    truth = torch.cat([state, state.square()], dim=2).double()
    mask = context[:, :, :1] > 0.5
    return (truth + 0.3 * torch.randn_like(truth)) * ~mask, truth * ~mask, mask


@pytest.mark.parametrize("name", ["rel_l2", "nrmse", "vrmse", "correlation_time", "mean_drift", "energy_drift"])
def test_a_metric_is_that_of_the_points_with_data_alone(name: str) -> None:
    forecast, truth, mask = bent(moving=False)
    settings = {"fields": ("u", "v"), "elapsed": [0.1 * frame for frame in range(FRAMES)], "spacing": (1 / POINTS,)}
    found = forecast_errors(forecast, truth, mask=mask, **settings)
    there = ~mask[0, 0, 0]
    alone = forecast_errors(forecast[..., there], truth[..., there], **settings)
    torch.testing.assert_close(found[name], alone[name])
    assert not [key for key in found if key.startswith("spectral")]


@pytest.mark.parametrize("metric", [nrmse, vrmse, pearson, mean_drift])
def test_points_without_data_may_move(metric) -> None:
    forecast, truth, mask = bent(moving=True)
    found = metric(forecast, truth, mask=mask)
    for frame in range(FRAMES):
        there = ~mask[0, frame, 0]
        pair = [field[:, frame : frame + 1, :, there] for field in (forecast, truth)]
        if metric is mean_drift:  # its scale runs over all frames
            expected = (pair[0] - pair[1]).mean(-1)[:, 0].abs()
            scale = (truth.square().sum(-1) / (~mask).sum(-1)).mean(1).sqrt()
            torch.testing.assert_close(found[:, frame] * scale, expected)
        else:
            torch.testing.assert_close(found[:, frame], metric(*pair)[:, 0])


def test_scores_of_masked_data_hold_what_is_not_data_at_nothing() -> None:
    data = obstacle(moving=True)

    def predict(frames, _):
        truth = frames.state[:, 1:]
        return truth + 100.0 * (frames.context[:, 1:, :1] > 0.5)

    scores = score_forecasts(predict, data, Window(size=1))
    wrong = {name: value for name, value in scores.means.items() if value and not name.endswith("_time")}
    assert not wrong
    assert not [name for name in scores.means if name.startswith("spectral")]
