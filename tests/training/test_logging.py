"""What a training tells: its log, the terminal, TensorBoard and Weights & Biases."""

import math
import os
import re
import sys
import types
from contextlib import suppress

import pytest
from tests.training.small_runs import tiny

from ssno.runs.checkpoint import Progress
from ssno.runs.log import Live, Log, Plain, Silent, read_lines, read_log
from ssno.training import loop
from ssno.training.processes import TrainingInterrupted
from ssno.training.train import train


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


def test_the_log_is_on_the_disk_before_the_checkpoint_that_knows_of_it(tmp_path, waves, monkeypatch) -> None:
    synced, fsync, save, seen = {}, os.fsync, loop.save_checkpoint, []

    def noted(handle: int) -> None:
        fsync(handle)
        synced[os.fstat(handle).st_ino] = os.fstat(handle).st_size

    def checked(*what: object) -> None:
        log = tmp_path / "run" / "metrics.jsonl"
        if log.exists():
            seen.append(synced.get(log.stat().st_ino) == log.stat().st_size)
        save(*what)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(loop, "save_checkpoint", checked)
    train(tiny(), waves, epochs=2, batch_size=8, save_seconds=0.0, folder=tmp_path / "run", reporter=Silent())
    assert len(seen) >= 2
    assert all(seen)


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
    from ssno.base.terminal import Console

    console = Console(force_terminal=True, width=120, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    train(tiny(), waves, epochs=2, batch_size=8, reporter=Live(console))
    live = console.export_text()
    console.file.close()
    assert "epoch 2 of 2" in live
    assert "rel_l2" in live


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


def test_without_tensorboard_the_error_says_what_to_install(tmp_path, waves, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match=r"pip install 'ssno\[tensorboard\]'"):
        train(tiny(), waves, epochs=1, folder=tmp_path, loggers=["tensorboard"], reporter=Silent())
