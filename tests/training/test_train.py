"""Whole runs in one process: learning, stopping, resuming exactly, refusing."""

import json
import math
import os
import re
import resource
import shutil
import signal
import sys
import types
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest
import torch
from torch import nn

from ssno.data.options import DataOptions
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.forecasting.rollout import rollout
from ssno.forecasting.scores import score
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.checkpoint import Progress, load_checkpoint, save_checkpoint
from ssno.runs.log import Log, read_lines, read_log
from ssno.runs.options import TrainOptions, recipe
from ssno.runs.run import Run
from ssno.runs.saved import load_forecaster
from ssno.runs.unrolling import Rollout
from ssno.training.interruption import TrainingDiverged, TrainingInterrupted
from ssno.training.reporter import Live, Plain, Silent
from ssno.training.train import train


def tiny(**fields) -> SSNO:
    torch.manual_seed(0)
    return SSNO(SSNOConfig.tiny(**fields))


def final_tensors(folder) -> dict[str, torch.Tensor]:
    return load_checkpoint(folder / "last")[0]


def assert_same_run(first, second) -> None:
    left, right = final_tensors(first), final_tensors(second)
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
    assert [{**line, "seconds": 0} for line in read_log(first)] == [{**line, "seconds": 0} for line in read_log(second)]


VARIANTS = {
    "teacher forcing": {},
    "free running": {"rollout": Rollout(forcing=(0.0,))},
    "scheduled forcing and length": {"rollout": Rollout(forcing=(1.0, 0.5, 0.0), frames=(1, 2, 4))},
    "truncated": {"rollout": Rollout(forcing=(0.0,), cut=3)},
    "recomputed": {"rollout": Rollout(forcing=(0.5,), recompute=True)},
    "pushforward": {"rollout": Rollout(pushforward=(0, 1, 2), frames=(3,))},
    "average, cosine, no increment": {"ema": 0.9, "schedule": "cosine", "increment": False, "clip": 0.0},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_stopped_and_resumed_run_is_bitwise_the_uninterrupted_one(tmp_path, waves, valid_waves, variant) -> None:
    settings = {"valid": valid_waves, "epochs": 3, "batch_size": 8, "noise": 0.01, "reporter": Silent()}
    settings |= VARIANTS[variant]
    train(tiny(), waves, folder=tmp_path / "whole", **settings)
    # In the middle, at the end of an epoch, after resuming twice; starting workers and unrolling take seconds.
    for stop in (2,) if variant == "workers" else (2, 5) if "rollout" in VARIANTS[variant] else (2, 3, 7):
        with pytest.raises(TrainingInterrupted, match=f"Stopped after step {stop} of 9; saved in .*--resume"):
            train(tiny(), waves, folder=tmp_path / "cut", stop_after=stop, resume=stop > 2, **settings)
    train(tiny(), waves, folder=tmp_path / "cut", resume=True, **settings)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


def test_workers_do_not_change_the_run(tmp_path, waves, valid_waves) -> None:
    settings = {"valid": valid_waves, "epochs": 2, "batch_size": 8, "noise": 0.01, "reporter": Silent()}
    train(tiny(), waves, folder=tmp_path / "none", workers=0, **settings)
    train(tiny(), waves, folder=tmp_path / "two", workers=2, **settings)
    assert_same_run(tmp_path / "none", tmp_path / "two")


def test_training_leaves_the_users_random_state_alone(waves) -> None:
    model = tiny()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(model, waves, epochs=1, reporter=Silent())
    assert torch.equal(torch.rand(3), expected)


def test_dropout_follows_the_seed(tmp_path, waves, valid_waves) -> None:
    class Dropping(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.map = nn.Linear(1, 1)

        def forward(self, frames):
            return self.map(nn.functional.dropout(frames.movedim(2, -1), 0.5, self.training)).movedim(-1, 2)

    settings = {"valid": valid_waves, "epochs": 2, "batch_size": 8, "reporter": Silent()}
    train(Dropping(), waves, folder=tmp_path / "whole", **settings)
    with pytest.raises(TrainingInterrupted):
        train(Dropping(), waves, folder=tmp_path / "cut", stop_after=2, **settings)
    torch.rand(17)
    train(Dropping(), waves, folder=tmp_path / "cut", resume=True, **settings)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


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
    for alignment in ("same", "target"):
        forecaster = train(tiny(in_channels=2), data, epochs=1, alignment=alignment, reporter=Silent())
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

    settings = {"epochs": 30, "batch_size": 4, "noise": 0.0, "learning_rate": 3e-2, "reporter": Silent()}
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
    train(model, waves, valid=valid_waves, rollout=Rollout(pushforward=(0, 1, 2)), **settings)
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
    settings = {"epochs": 6, "learning_rate": 0.3, "schedule": "constant", "noise": 0.0, "reporter": Silent()}
    forecaster = train(tiny(), waves, valid=valid_waves, folder=tmp_path, **settings)
    lines = [line for line in read_log(tmp_path) if line["kind"] == "epoch"]
    assert score(forecaster, valid_waves).means["rel_l2"] == min(line["rel_l2"] for line in lines)


def test_a_signal_saves_within_one_batch(tmp_path, waves, valid_waves) -> None:
    class SignalAtThree(Silent):
        def step(self, *, step, epoch, loss, rate):
            if step == 3:
                os.kill(os.getpid(), signal.SIGTERM)

    settings = {"valid": valid_waves, "epochs": 3, "batch_size": 8}
    with pytest.raises(TrainingInterrupted, match="Stopped after step 4"):
        train(tiny(), waves, folder=tmp_path / "cut", reporter=SignalAtThree(), **settings)
    train(tiny(), waves, folder=tmp_path / "cut", resume=True, reporter=Silent(), **settings)
    train(tiny(), waves, folder=tmp_path / "whole", reporter=Silent(), **settings)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


def test_a_second_signal_interrupts_at_once_unless_it_is_an_echo(waves, monkeypatch) -> None:
    class Impatient(Silent):
        def step(self, *, step, epoch, loss, rate):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(TrainingInterrupted):
        train(tiny(), waves, epochs=1, reporter=Impatient())
    monkeypatch.setattr("ssno.training.interruption.ECHO_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        train(tiny(), waves, epochs=1, reporter=Impatient())


def test_divergence_names_step_and_samples_and_keeps_the_checkpoint(tmp_path, waves, valid_waves) -> None:
    class Exploding(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))
            self.calls = 0

        def forward(self, frames):
            self.calls += self.training
            return frames * self.scale * (math.nan if self.calls == 5 else 1)

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


def test_an_existing_folder_is_never_overwritten_silently(tmp_path, waves) -> None:
    train(tiny(), waves, folder=tmp_path / "run", epochs=1, reporter=Silent())
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    with pytest.raises(FileExistsError, match=r"is not empty. Go on with that run \(--resume\), delete it"):
        train(tiny(), waves, folder=tmp_path / "run", epochs=1, reporter=Silent())
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    train(tiny(), waves, folder=tmp_path / "run", epochs=1, overwrite=True, reporter=Silent())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="is not a run of ssno, so it is not overwritten"):
        train(tiny(), waves, folder=tmp_path / "mine", epochs=1, overwrite=True, reporter=Silent())


def test_resuming_needs_something_to_resume(tmp_path, waves) -> None:
    with pytest.raises(FileNotFoundError, match="There is nothing to resume in"):
        train(tiny(), waves, folder=tmp_path, resume=True, reporter=Silent())
    with pytest.raises(ValueError, match="`resume` needs the `folder`"):
        train(tiny(), waves, resume=True, reporter=Silent())
    with pytest.raises(ValueError, match="exclude each other"):
        train(tiny(), waves, folder=tmp_path, resume=True, overwrite=True, reporter=Silent())


def test_a_run_killed_before_its_first_step_starts_again(tmp_path, waves, valid_waves) -> None:
    settings = {"valid": valid_waves, "epochs": 1, "reporter": Silent()}
    train(tiny(), waves, folder=tmp_path / "whole", **settings)
    (tmp_path / "cut").mkdir()
    shutil.copy(tmp_path / "whole" / "config.json", tmp_path / "cut")
    train(tiny(), waves, folder=tmp_path / "cut", resume=True, **settings)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    shutil.rmtree(tmp_path / "cut" / "last")
    with pytest.raises(FileNotFoundError, match="it has no `last` checkpoint"):
        train(tiny(), waves, folder=tmp_path / "cut", resume=True, **settings)


def test_there_is_something_to_resume_before_the_first_step(tmp_path, waves) -> None:
    class Killed(Silent):
        def begin(self, *, step, total):
            assert load_checkpoint(tmp_path / "last")[1].step == 0
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tiny(), waves, folder=tmp_path, epochs=1, reporter=Killed())


def test_two_trainings_never_share_a_folder(tmp_path, waves) -> None:
    class Second(Silent):
        def begin(self, *, step, total):
            for more in ({}, {"overwrite": True}, {"resume": True}):
                with pytest.raises(FileExistsError, match=rf"Another training \(process {os.getpid()}\) is writing to"):
                    train(tiny(), waves, folder=tmp_path, epochs=1, reporter=Silent(), **more)

    train(tiny(), waves, folder=tmp_path, epochs=1, reporter=Second())
    assert not (tmp_path / ".lock").exists()


def test_the_lock_of_a_killed_training_is_taken_over(tmp_path, waves) -> None:
    train(tiny(), waves, folder=tmp_path, epochs=1, reporter=Silent())
    (tmp_path / ".lock").write_text("99999999")
    (tmp_path / "metrics.jsonl.0a1b2c3d.partial").write_text("")
    train(tiny(), waves, folder=tmp_path, epochs=1, resume=True, reporter=Silent())
    assert not list(tmp_path.glob("*.partial"))


def test_resuming_with_other_options_is_refused_and_names_them(tmp_path, waves, valid_waves) -> None:
    settings = {"valid": valid_waves, "folder": tmp_path, "epochs": 2, "batch_size": 8, "reporter": Silent()}
    with pytest.raises(TrainingInterrupted):
        train(tiny(), waves, stop_after=4, **settings)
    before = (tmp_path / "config.json").read_bytes()
    with pytest.raises(ValueError, match=r"cannot change these: train.noise \(was 0.001, now 0.5\)\. Leave them"):
        train(tiny(), waves, resume=True, **settings, noise=0.5)
    with pytest.raises(ValueError, match=r"cannot change these: data.shape \(was \[20, 8, 1, 16\], now"):
        train(tiny(), waves.select(indices=range(10)), resume=True, **settings)
    with pytest.raises(ValueError, match=r"`train.epochs` is 1, but the run in .* is already in epoch 2"):
        train(tiny(), waves, resume=True, **(settings | {"epochs": 1}))
    assert (tmp_path / "config.json").read_bytes() == before


def test_a_finished_run_can_be_made_longer_and_says_so(tmp_path, waves, valid_waves) -> None:
    settings = {"valid": valid_waves, "folder": tmp_path, "batch_size": 8}
    train(tiny(), waves, epochs=1, reporter=Silent(), **settings)

    class Told(Silent):
        def __init__(self):
            self.lines = []

        def say(self, line):
            self.lines.append(line)

    told = Told()
    train(tiny(), waves, epochs=3, keep_every=3, resume=True, reporter=told, **settings)
    assert told.lines == [
        "train.epochs was 1 and is now 3: the learning rate follows the new length",
        "train.keep_every was 0 and is now 3",
    ]
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["run"]["train"]["epochs"] == 3
    assert config["resumed"] == [{"step": 3, "changed": {"train.epochs": [1, 3], "train.keep_every": [0, 3]}}]
    assert [line["epoch"] for line in read_log(tmp_path) if line["kind"] == "epoch"] == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {k: v for k, v in t.items() if "model/head" not in k}, r"(?s)does not fit this run: .*Missing key"),
        (lambda t: t | {"optimiser/surprise/step": torch.tensor(1.0)}, "optimiser state surprise/step belongs to no"),
        (lambda t: {k: v for k, v in t.items() if "average/head" not in k}, "averaged weights are not those"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, waves, change, message) -> None:
    settings = {"folder": tmp_path, "epochs": 1, "ema": 0.9, "reporter": Silent()}
    train(tiny(), waves, **settings)
    tensors, progress = load_checkpoint(tmp_path / "last")
    save_checkpoint(tmp_path / "last", change(tensors), progress)
    with pytest.raises(ValueError, match=message):
        train(tiny(), waves, resume=True, **settings)


def test_a_finished_run_resumes_to_itself(tmp_path, waves, valid_waves) -> None:
    settings = {"valid": valid_waves, "folder": tmp_path, "epochs": 1, "reporter": Silent()}
    first = train(tiny(), waves, **settings)
    again = train(tiny(), waves, resume=True, **settings)
    frames = valid_waves.read([0]).state[:, :4]
    assert torch.equal(rollout(first, frames, 3), rollout(again, frames, 3))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_dims": 2}, "n_dims = 2, but the grid of 'waves' has the axes x. Build it with `n_dims=1`"),
        ({"in_channels": 3}, "in_channels = 3, but 'waves' has the fields u. Build it with `in_channels=1`"),
        ({"out_channels": 2}, "out_channels = 2, but 'waves' predicts u"),
    ],
)
def test_models_that_do_not_fit_the_data_are_refused(tmp_path, waves, fields, message) -> None:
    with pytest.raises(ValueError, match=message):
        train(tiny(**fields), waves, folder=tmp_path / "run", reporter=Silent())
    assert not (tmp_path / "run").exists()


def test_trajectories_that_are_too_short_are_refused(tmp_path, waves) -> None:
    with pytest.raises(ValueError, match="needs trajectories of at least 5 frames, these have 3"):
        train(tiny(), waves.select(time_index=range(3)), folder=tmp_path / "run", reporter=Silent())
    assert not (tmp_path / "run").exists()


def test_one_trajectory_cannot_be_held_out(waves) -> None:
    with pytest.raises(ValueError, match="has 1 trajectories, too few to hold one out. Give `valid`"):
        train(tiny(), waves.select(indices=[0]), reporter=Silent())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "`epochs` must be at least 1, got 0"),
        ({"epochs": 10**12}, "`epochs` must be at most 10000000, got 1000000000000"),
        ({"workers": 10**6}, "`workers` must be at most 256, got 1000000"),
        ({"noise": -1.0}, "`noise` must not be negative, got -1.0"),
        ({"learning_rate": 0.0}, "`learning_rate` must be positive, got 0.0"),
        ({"ema": 1.0}, r"`ema` must lie in \[0, 1\), got 1.0"),
        ({"warmup": 1.5}, r"`warmup` is a fraction .* got 1.5"),
        ({"schedule": "linear"}, "`schedule` must be one of 'cosine', 'one-cycle', 'constant', got 'linear'"),
        ({"normalisation": "max"}, "`normalisation` must be one of .* got 'max'"),
        ({"monitor": "loss"}, "`monitor` must be one of .* got 'loss'"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_wrong_options_are_refused(change, message) -> None:
    with pytest.raises(ValueError, match=message):
        TrainOptions(**change)


def test_recipes_are_what_the_contracts_say() -> None:
    paper = recipe("paper", n_dims=1, dataset="ks")
    assert (paper.epochs, paper.batch_size, paper.learning_rate, paper.weight_decay) == (500, 32, 1e-3, 1e-4)
    assert (paper.schedule, paper.normalisation, paper.noise, paper.increment) == ("cosine", "minmax", 1e-3, False)
    assert recipe("paper", n_dims=2).batch_size == 8
    assert recipe("paper", dataset="burgers").noise == 5e-3
    assert recipe("fast", epochs=3).epochs == 3


@pytest.mark.usefixtures("as_users_call_it")
def test_unknown_recipes_are_refused() -> None:
    with pytest.raises(ValueError, match="`recipe` must be 'fast' or 'paper', got 'slow'"):
        recipe("slow")


def test_a_log_cut_short_by_a_kill_is_read_up_to_there(tmp_path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = Log(tmp_path, progress=Progress())
    log.write("step", step=1, epoch=0, loss=0.5)
    log.write("step", step=2, epoch=0, loss=math.inf)
    log.write("epoch", step=2, epoch=0, rel_l2=0.1)
    path.write_text(path.read_text() + '{"kind": "st')
    assert [line.get("loss") for line in read_lines(path)] == [0.5, math.inf, None]
    Log(tmp_path, progress=Progress(step=2))  # saved after the last batch, before the end of the epoch
    assert [line["step"] for line in read_log(tmp_path)] == [1, 2]
    Log(tmp_path, progress=Progress(step=1))
    assert [line["step"] for line in read_log(tmp_path)] == [1]


def test_damage_inside_a_log_is_named(tmp_path) -> None:
    path = tmp_path / "metrics.jsonl"
    good = '{"kind": "step", "step": 1, "epoch": 0}\n'
    path.write_text(good + '{"kind": "step"}\n' + good)
    with pytest.raises(ValueError, match=r"Line 2 of .*metrics.jsonl is damaged. Delete that line"):
        read_log(tmp_path)


def test_plain_and_live_reports_show_the_numbers(waves, capsys) -> None:
    train(tiny(), waves, epochs=2, batch_size=8, reporter=Plain(seconds=0.0))
    plain = capsys.readouterr().err
    assert re.search(r"epoch 1 of 2  .* \d+\.\d s  left 00:00:0\d", plain)
    assert re.search(r"epoch 2 of 2  .* \d+\.\d s(  best)?\n", plain), "nothing is left after the last epoch"
    assert "left 00:00:0" in plain
    assert re.search(r"\d (M|G)iB", plain)
    from rich.console import Console

    console = Console(force_terminal=True, width=120, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    train(tiny(), waves, epochs=2, batch_size=8, reporter=Live(console))
    live = console.export_text()
    console.file.close()
    assert "epoch 2 of 2" in live
    assert "rel_l2" in live


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
        increment=False,
        noise=0.0,
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


def test_tensorboard_gets_the_same_numbers(tmp_path, waves) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(tiny(), waves, epochs=2, folder=tmp_path, loggers=["tensorboard"], reporter=Silent())
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    logged = [line["rel_l2"] for line in read_log(tmp_path) if "rel_l2" in line]
    assert [event.value for event in events.Scalars("epoch/rel_l2")] == pytest.approx(logged, rel=1e-6)


class FakeWandb(types.ModuleType):
    """What is used of wandb: `init` gives a run, which logs and finishes."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.opened: list[dict] = []
        self.lines: list[tuple[int, dict]] = []
        self.finished = 0

    def init(self, **options) -> "FakeWandb":
        self.opened.append(options)
        return self

    def log(self, numbers: dict, *, step: int) -> None:
        self.lines.append((step, numbers))

    def finish(self) -> None:
        self.finished += 1


def test_wandb_gets_the_same_numbers_and_a_resumed_run_continues_its_own(tmp_path, waves, monkeypatch) -> None:
    wandb = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    for stop, resume in ((3, False), (None, True)):
        with suppress(TrainingInterrupted):
            train(
                tiny(),
                waves,
                epochs=2,
                folder=tmp_path,
                loggers=["wandb"],
                reporter=Silent(),
                stop_after=stop,
                resume=resume,
            )
    logged = {(step, name): value for step, numbers in wandb.lines for name, value in numbers.items()}
    for line in read_log(tmp_path):
        for name, value in line.items():
            if isinstance(value, float):
                assert logged[line["step"], f"{line['kind']}/{name}"] == value
    first, second = wandb.opened
    assert first["id"] == second["id"]
    assert second["resume"] == "allow"
    assert first["config"]["train"]["epochs"] == 2
    assert wandb.finished == 2


def test_without_wandb_the_error_says_what_to_install(tmp_path, waves, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"pip install 'ssno\[wandb\]'"):
        train(tiny(), waves, epochs=1, folder=tmp_path, loggers=["wandb"], reporter=Silent())


def test_a_time_to_stop_that_has_come_saves_and_stops(tmp_path, waves) -> None:
    with pytest.raises(TrainingInterrupted, match="Stopped after step 1 of"):
        train(tiny(), waves, epochs=1, folder=tmp_path, stop_at=datetime.now(), reporter=Silent())
    later = datetime.now() + timedelta(hours=1)
    train(tiny(), waves, epochs=1, folder=tmp_path, stop_at=later, resume=True, reporter=Silent())
    assert load_checkpoint(tmp_path / "last")[1].finished


def test_without_tensorboard_the_error_says_what_to_install(tmp_path, waves, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match=r"pip install 'ssno\[tensorboard\]'"):
        train(tiny(), waves, epochs=1, folder=tmp_path, loggers=["tensorboard"], reporter=Silent())


def test_a_full_disk_ends_the_run_and_keeps_the_checkpoint(tmp_path, waves, valid_waves) -> None:
    settings = {"valid": valid_waves, "epochs": 3, "batch_size": 8, "folder": tmp_path}
    with pytest.raises(TrainingInterrupted):
        train(tiny(), waves, stop_after=2, reporter=Silent(), **settings)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))  # the system's limit on file sizes plays the disk
    try:
        with pytest.raises(OSError, match="No room to write"):
            train(tiny(), waves, resume=True, reporter=Silent(), save_seconds=0.0, **settings)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert load_checkpoint(tmp_path / "last")[1].step == 2


def test_a_folder_that_cannot_be_written_is_named_before_training(tmp_path, waves) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotADirectoryError, match="file"):
        train(tiny(), waves, folder=tmp_path / "file" / "run", reporter=Silent())


def test_every_engine_trains_to_the_same_weights(waves) -> None:
    weights = {}
    for engine in ("torch", "fused", "plain"):
        trained = train(tiny(), waves, epochs=2, engine=engine, reporter=Silent())
        weights[engine] = torch.cat([p.detach().flatten() for p in trained.model.parameters()])
    for engine in ("torch", "fused"):
        assert (weights[engine] - weights["plain"]).norm() < 1e-3 * weights["plain"].norm()
    assert not torch.equal(weights["torch"], weights["fused"])  # or the option does nothing


def test_a_description_is_completed_by_the_recipe_as_on_the_command_line(tmp_path, waves, valid_waves) -> None:
    settings = {"valid": valid_waves, "epochs": 1, "reporter": Silent()}
    ours = train(SSNOConfig.tiny(memory_window=2), waves, **settings).model.config
    assert (ours.boundary, ours.coordinates, ours.modes.initialisation) == ("wrapped", False, "grid")
    assert ours.hidden_channels == SSNOConfig.tiny().hidden_channels
    paper = train(SSNOConfig.tiny(memory_window=2), waves, recipe="paper", **settings).model.config
    assert (paper.boundary, paper.coordinates) == ("zero", True)
    kept = train(SSNOConfig.tiny(boundary="one-period"), waves, **settings).model.config
    assert kept.boundary == "one-period"
    again = train(SSNOConfig.tiny(), waves, **settings), train(SSNOConfig.tiny(), waves, **settings)
    frames = valid_waves.read([0]).state[:, :4]
    assert torch.equal(*(rollout(forecaster, frames, 2) for forecaster in again))  # weights follow from the seed


def test_known_fields_are_aligned_as_is_usual_for_the_dataset(waves_with_context) -> None:
    forced = replace(waves_with_context, name="torus-vis")
    settings = {"epochs": 1, "reporter": Silent()}
    assert train(SSNOConfig.tiny(), forced, **settings).alignment == "target"
    assert train(SSNOConfig.tiny(), waves_with_context, **settings).alignment == "same"
    assert train(SSNOConfig.tiny(), forced, alignment="same", **settings).alignment == "same"


def test_a_run_says_everything_and_data_are_needed_otherwise(waves) -> None:
    with pytest.raises(ValueError, match="A `Run` says everything about a training"):
        train(Run(), waves)
    with pytest.raises(ValueError, match="`data` is missing"):
        train(tiny())


def test_training_never_rewrites_the_users_description(waves, valid_waves) -> None:
    model = tiny()
    config = model.config
    forecaster = train(model, waves, valid=valid_waves, epochs=1, reporter=Silent())
    assert model.config is config
    assert forecaster.spacing == waves.spacing


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
