"""Whole runs in one process: what they learn, keep, count and give back."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.training.small_runs import outcome, tiny
from torch import nn

from ssno.data.trajectories import Trajectories, trajectory_bytes
from ssno.data.windows import Window
from ssno.forecasting.rollout import rollout
from ssno.forecasting.scores import score
from ssno.models.ssno import SSNO
from ssno.runs.checkpoint import load_checkpoint
from ssno.runs.load import load_forecaster
from ssno.runs.log import Silent, read_log
from ssno.runs.options import Unrolling
from ssno.training.estimate import forecast_memory
from ssno.training.processes import TrainingDiverged
from ssno.training.task import task_for
from ssno.training.train import train


def test_workers_do_not_change_the_run(tmp_path, waves, valid_waves) -> None:
    settings = {"valid": valid_waves, "epochs": 2, "batch_size": 8, "noise_std": 0.01, "reporter": Silent()}
    train(tiny(), waves, folder=tmp_path / "none", num_workers=0, **settings)
    train(tiny(), waves, folder=tmp_path / "two", num_workers=2, **settings)
    assert outcome(tmp_path / "none") == outcome(tmp_path / "two")


def test_training_leaves_the_users_random_state_alone(waves) -> None:
    model = tiny()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(model, waves, epochs=1, reporter=Silent())
    assert torch.equal(torch.rand(3), expected)


def test_training_learns_and_the_saved_forecaster_is_the_returned_one(tmp_path, waves, valid_waves) -> None:
    before = score(
        train(tiny(), waves, valid=valid_waves, epochs=1, learning_rate=1e-9, reporter=Silent()), valid_waves
    )
    settings = {"epochs": 24, "batch_size": 4, "learning_rate": 2e-2, "evaluate_every": 6, "reporter": Silent()}
    forecaster = train(tiny(), waves, valid=valid_waves, folder=tmp_path, **settings)
    after = score(forecaster, valid_waves)
    assert after.means["rel_l2_onestep"] < 0.4 * before.means["rel_l2_onestep"]
    frames = valid_waves.read(range(4)).state
    assert torch.equal(rollout(load_forecaster(tmp_path), frames[:, :4], 4), rollout(forecaster, frames[:, :4], 4))
    assert isinstance(SSNO.from_pretrained(tmp_path), SSNO)
    lines = read_log(tmp_path)
    assert [line["epoch"] for line in lines if "rel_l2" in line] == [5, 11, 17, 23]
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["run"]["train"]["epochs"] == 24
    assert {"torch", "commit", "processor"} <= config["provenance"].keys()


def test_context_is_used_and_only_the_state_predicted(waves_with_context) -> None:
    data = waves_with_context
    for context_time in ("input", "target"):
        forecaster = train(tiny(in_channels=2), data, epochs=1, context_time=context_time, reporter=Silent())
        frames = data.read(range(2))
        forecast = rollout(forecaster, frames.state[:, :4], 4, context=frames.context)
        assert forecast.shape == (2, 4, 1, 16)
        changed = rollout(forecaster, frames.state[:, :4], 4, context=frames.context + 1)
        assert (forecast - changed).abs().max() > 1e-6


def test_any_module_with_our_calling_convention_trains(tmp_path, waves, valid_waves) -> None:
    class OwnModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.filter = nn.Conv1d(1, 1, 3, padding=1, padding_mode="circular")

        def forward(self, frames):
            return self.filter(frames.flatten(0, 1)).unflatten(0, frames.shape[:2])

    settings = {"epochs": 30, "batch_size": 4, "noise_std": 0.0, "learning_rate": 3e-2, "reporter": Silent()}
    forecaster = train(OwnModel(), waves, valid=valid_waves, folder=tmp_path, window=Window(size=1), **settings)
    assert score(forecaster, valid_waves).means["rel_l2_onestep"] < 0.2


def test_the_loop_pushes_forward_as_often_as_its_stage_says(waves, valid_waves) -> None:
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))
            self.calls = []

        def forward(self, frames):
            if self.training:
                self.calls.append(torch.is_grad_enabled())
            return self.scale * frames

    model = Counting()
    settings = {"epochs": 3, "batch_size": 20, "window": Window(size=1), "reporter": Silent()}
    train(model, waves, valid=valid_waves, unroll=Unrolling(pushforward=(0, 1, 2)), **settings)
    assert model.calls == [True, False, True, False, False, True]


def test_early_stopping_ends_a_run_that_no_longer_improves(tmp_path, waves, valid_waves) -> None:
    settings = {"epochs": 30, "learning_rate": 1e-12, "patience": 2, "reporter": Silent()}
    train(tiny(), waves, valid=valid_waves, folder=tmp_path, **settings)
    progress = load_checkpoint(tmp_path / "last")[1]
    assert progress.finished
    assert progress.epoch < 30


def test_checkpoints_are_kept_every_so_often(tmp_path, waves, valid_waves) -> None:
    train(tiny(), waves, valid=valid_waves, folder=tmp_path, epochs=4, keep_every=2, reporter=Silent())
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"last", "best", "epoch-0002", "epoch-0004"}


def test_the_best_weights_win_over_the_last(tmp_path, waves, valid_waves) -> None:
    settings = {"epochs": 6, "learning_rate": 0.3, "schedule": "constant", "noise_std": 0.0, "reporter": Silent()}
    forecaster = train(tiny(), waves, valid=valid_waves, folder=tmp_path, **settings)
    lines = [line for line in read_log(tmp_path) if line["kind"] == "epoch"]
    assert score(forecaster, valid_waves).means["rel_l2"] == min(line["rel_l2"] for line in lines)


def test_divergence_names_step_and_samples_and_keeps_the_checkpoint(tmp_path, waves, valid_waves) -> None:
    class Exploding(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))
            self.calls = 0

        def forward(self, frames):
            self.calls += self.training
            return frames * self.scale * (math.nan if self.calls == 6 else 1)  # the first is a rehearsal

    with pytest.raises(TrainingDiverged, match=r"step 5 \(epoch 2\): loss nan.*trajectories \[.*last good checkpoint"):
        train(
            Exploding(),
            waves,
            valid=valid_waves,
            folder=tmp_path,
            epochs=3,
            batch_size=8,
            save_seconds=0.0,
            reporter=Silent(),
        )
    tensors, progress = load_checkpoint(tmp_path / "last")
    assert progress.step == 4
    assert all(value.isfinite().all() for value in tensors.values())


def test_one_step_error_counts_predicted_frames_only() -> None:
    array = np.zeros((2, 6, 1, 4), np.float32)
    array[:, :] = np.arange(1, 7)[None, :, None, None]
    data = Trajectories.from_array(array)
    forecaster = train(
        Persistence(),
        data,
        valid=data,
        epochs=1,
        normalisation="none",
        predict_increment=False,
        noise_std=0.0,
        learning_rate=1e-12,
        window=Window(size=3),
        reporter=Silent(),
    )
    errors = score(forecaster, data).means
    truth = np.array([4.0, 5.0, 6.0])
    assert errors["rel_l2_onestep"] == pytest.approx(np.sqrt(3) / np.linalg.norm(truth), rel=1e-6)
    assert errors["rel_l2"] == pytest.approx(np.linalg.norm(truth - 3) / np.linalg.norm(truth), rel=1e-6)


class Persistence(nn.Module):
    """Persistence with one parameter for the optimiser to hold."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(()))

    def forward(self, frames):
        return frames + 0 * self.unused


def test_every_engine_trains_to_the_same_weights(waves) -> None:
    weights = {}
    for engine in ("torch", "fused", "plain"):
        options = {"optimizer": "adamw", "learning_rate": 3e-3}  # SOAP's eigenbases make more of a rounding
        trained = train(tiny(), waves, epochs=2, engine=engine, reporter=Silent(), **options)
        weights[engine] = torch.cat([p.detach().flatten() for p in trained.model.parameters()])
    for engine in ("torch", "fused"):
        assert (weights[engine] - weights["plain"]).norm() < 1e-3 * weights["plain"].norm()
    assert not torch.equal(weights["torch"], weights["fused"])  # or the option does nothing


@pytest.mark.parametrize("scarce", ["limit", "memory"])
def test_validation_data_too_large_to_hold_are_read_in_batches(
    tmp_path, waves, valid_waves, scarce, monkeypatch
) -> None:
    settings = {"epochs": 2, "batch_size": 2, "reporter": Silent()}
    train(tiny(), waves, valid=valid_waves, folder=tmp_path / "held", **settings)
    room = 3 * trajectory_bytes(valid_waves)  # there are four
    if scarce == "limit":
        valid_waves = replace(valid_waves, limit=room)
    else:
        monkeypatch.setattr("ssno.training.task.free_memory", lambda: room)
    train(tiny(), waves, valid=valid_waves, folder=tmp_path / "read", **settings)
    assert outcome(tmp_path / "held") == outcome(tmp_path / "read")
    task = task_for(tiny(), waves, valid=valid_waves, epochs=2, batch_size=2)
    assert task.valid is valid_waves
    assert forecast_memory(task) > 0


@pytest.mark.usefixtures("as_users_call_it")
@pytest.mark.parametrize(
    ("model", "changes", "message"),
    [
        (tiny(), {"lr": 1e-3}, "`train` has no option `lr`. Did you mean `learning_rate`[?] Known: epochs"),
        (
            nn.Conv1d(1, 1, 3),
            {},
            r"a Conv1d: .* \(1, 7, 1, 16\) .* Expected 2D .* `WrappedModule\(module, n_dims=1\)`",
        ),
        (nn.Linear(16, 8), {}, r"must return \(1, 7, 1, 16\), but it returned the shape \(1, 7, 1, 8\)"),
        (SSNO, {}, "`model` must be a description such as .*, got the class SSNO"),
        ("ssno", {}, r"got 'ssno'. `ssno.models.model_config\(name\)`"),
    ],
)
def test_what_is_no_model_or_option_is_refused_with_the_remedy(waves, model, changes, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        train(model, waves, **changes)


@pytest.mark.usefixtures("as_users_call_it")
def test_an_array_in_place_of_trajectories_is_refused_with_the_remedy() -> None:
    with pytest.raises(TypeError, match=r"`data` must be `Trajectories` .*, got ndarray. .*`Trajectories.from_array"):
        train(tiny(), np.zeros((4, 8, 1, 16)))


def test_trying_a_module_leaves_it_as_it_was(waves) -> None:
    model = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm2d(7), nn.Dropout())
    model[1].eval()
    before, drawn = model[1].running_var.clone(), torch.get_rng_state()
    task_for(model, waves)
    assert [part.training for part in model.modules()] == [True, True, False, True]
    assert torch.equal(model[1].running_var, before)
    assert torch.equal(torch.get_rng_state(), drawn)
