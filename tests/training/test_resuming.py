"""Runs that stop and go on: exactly the uninterrupted ones, or refused; folders that are taken, full or locked."""

import json
import os
import shutil
import signal
from datetime import datetime, timedelta

import pytest
import torch
from tests.training.small_runs import outcome, tiny
from torch import nn

from ssno.forecasting.rollout import rollout
from ssno.runs.checkpoint import load_checkpoint, save_checkpoint
from ssno.runs.log import Silent, read_log
from ssno.runs.options import Unrolling
from ssno.training.processes import TrainingInterrupted
from ssno.training.train import train

VARIANTS = {
    "teacher forcing": {},
    "free running": {"unroll": Unrolling(teacher_forcing=(0.0,))},
    "scheduled forcing and length": {"unroll": Unrolling(teacher_forcing=(1.0, 0.5, 0.0), frames=(1, 2, 4))},
    "truncated": {"unroll": Unrolling(teacher_forcing=(0.0,), truncate=3)},
    "recomputed": {"unroll": Unrolling(teacher_forcing=(0.5,), gradient_checkpointing=True)},
    "pushforward": {"unroll": Unrolling(pushforward=(0, 1, 2), frames=(3,))},
    "average, cosine, no increment": {"ema": 0.9, "schedule": "cosine", "predict_increment": False, "grad_clip": 0.0},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_stopped_and_resumed_run_is_bitwise_the_uninterrupted_one(tmp_path, waves, valid_waves, variant) -> None:
    settings = {"valid": valid_waves, "epochs": 3, "batch_size": 8, "noise_std": 0.01, "reporter": Silent()}
    settings |= VARIANTS[variant]
    train(tiny(), waves, folder=tmp_path / "whole", **settings)
    # In the middle, at the end of an epoch, after resuming twice; unrolling takes seconds.
    for stop in (2, 5) if "rollout" in VARIANTS[variant] else (2, 3, 7):
        with pytest.raises(TrainingInterrupted, match=f"Stopped after step {stop} of 9; saved in .*--resume always"):
            train(tiny(), waves, folder=tmp_path / "cut", stop_after=stop, resume=stop > 2, **settings)
    train(tiny(), waves, folder=tmp_path / "cut", resume=True, **settings)
    assert outcome(tmp_path / "whole") == outcome(tmp_path / "cut")


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
    assert outcome(tmp_path / "whole") == outcome(tmp_path / "cut")


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
    assert outcome(tmp_path / "whole") == outcome(tmp_path / "cut")


def test_a_second_signal_interrupts_at_once_unless_it_is_an_echo(waves, monkeypatch) -> None:
    class Impatient(Silent):
        def step(self, *, step, epoch, loss, rate):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(TrainingInterrupted):
        train(tiny(), waves, epochs=1, reporter=Impatient())
    monkeypatch.setattr("ssno.training.processes.ECHO_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        train(tiny(), waves, epochs=1, reporter=Impatient())


def test_a_time_to_stop_that_has_come_saves_and_stops(tmp_path, waves) -> None:
    with pytest.raises(TrainingInterrupted, match="Stopped after step 1 of"):
        train(tiny(), waves, epochs=1, folder=tmp_path, stop_at=datetime.now(), reporter=Silent())
    later = datetime.now() + timedelta(hours=1)
    train(tiny(), waves, epochs=1, folder=tmp_path, stop_at=later, resume=True, reporter=Silent())
    assert load_checkpoint(tmp_path / "last")[1].finished


def test_a_run_killed_before_its_first_step_starts_again(tmp_path, waves, valid_waves) -> None:
    settings = {"valid": valid_waves, "epochs": 1, "reporter": Silent()}
    train(tiny(), waves, folder=tmp_path / "whole", **settings)
    (tmp_path / "cut").mkdir()
    shutil.copy(tmp_path / "whole" / "config.json", tmp_path / "cut")
    train(tiny(), waves, folder=tmp_path / "cut", resume=True, **settings)
    assert outcome(tmp_path / "whole") == outcome(tmp_path / "cut")
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


def test_a_finished_run_resumes_to_itself(tmp_path, waves, valid_waves) -> None:
    settings = {"valid": valid_waves, "folder": tmp_path, "epochs": 1, "reporter": Silent()}
    first = train(tiny(), waves, **settings)
    again = train(tiny(), waves, resume=True, **settings)
    frames = valid_waves.read([0]).state[:, :4]
    assert torch.equal(rollout(first, frames, 3), rollout(again, frames, 3))


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


def test_resuming_with_other_options_is_refused_and_names_them(tmp_path, waves, valid_waves) -> None:
    settings = {"valid": valid_waves, "folder": tmp_path, "epochs": 2, "batch_size": 8, "reporter": Silent()}
    with pytest.raises(TrainingInterrupted):
        train(tiny(), waves, stop_after=4, **settings)
    before = (tmp_path / "config.json").read_bytes()
    with pytest.raises(ValueError, match=r"cannot change these: train.noise_std \(was 0.001, now 0.5\)\. Leave them"):
        train(tiny(), waves, resume=True, **settings, noise_std=0.5)
    with pytest.raises(ValueError, match=r"cannot change these: data.shape \(was \[20, 8, 1, 16\], now"):
        train(tiny(), waves.select(indices=range(10)), resume=True, **settings)
    with pytest.raises(ValueError, match=r"`train.epochs` is 1, but the run in .* is already in epoch 2"):
        train(tiny(), waves, resume=True, **(settings | {"epochs": 1}))
    assert (tmp_path / "config.json").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {k: v for k, v in t.items() if "model/head" not in k}, r"(?s)does not fit this run: .*Missing key"),
        (lambda t: t | {"optimiser/surprise/step": torch.tensor(1.0)}, "optimiser state surprise/step belongs to no"),
        (lambda t: {k: v for k, v in t.items() if "average/head" not in k}, "averaged weights are not those"),
        (lambda t: {k: v for k, v in t.items() if "optimiser/" not in k}, "it has no optimiser state after 5 steps"),
        (lambda t: {k: v for k, v in t.items() if not k.endswith("/exp_avg")}, "state lacks lift.weight/exp_avg"),
        (lambda t: t | {"optimiser/lift.weight/more": torch.tensor(1.0)}, "optimiser state lift.weight/more belongs"),
        (lambda t: t | {"optimiser/lift.bias/exp_avg": torch.tensor(1.0)}, "optimiser state lift.bias/exp_avg belongs"),
        (
            lambda t: {k: v.half() if "optimiser/" in k else v for k, v in t.items()},
            "optimiser state .* has another type, torch.float16",
        ),
        (lambda t: {k: v for k, v in t.items() if "best/head" not in k}, "best weights are not those of the model"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, waves, change, message) -> None:
    settings = {"folder": tmp_path, "epochs": 1, "ema": 0.9, "reporter": Silent()}
    train(tiny(), waves, **settings)
    tensors, progress = load_checkpoint(tmp_path / "last")
    save_checkpoint(tmp_path / "last", change(tensors), progress)
    with pytest.raises(ValueError, match=message):
        train(tiny(), waves, resume=True, **settings)


def test_resuming_needs_something_to_resume(tmp_path, waves) -> None:
    with pytest.raises(FileNotFoundError, match="There is nothing to resume in"):
        train(tiny(), waves, folder=tmp_path, resume=True, reporter=Silent())
    with pytest.raises(ValueError, match="`resume` needs the `folder`"):
        train(tiny(), waves, resume=True, reporter=Silent())
    with pytest.raises(ValueError, match="exclude each other"):
        train(tiny(), waves, folder=tmp_path, resume=True, overwrite=True, reporter=Silent())
