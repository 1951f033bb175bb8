"""Folders of runs that are taken, locked, full or no folders at all."""

import os
import resource
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.training.small_runs import outcome, tiny
from torch import nn

from ssno.data.trajectories import Trajectories
from ssno.models.baselines.unet import UNetConfig
from ssno.plots.style import Figure, save
from ssno.runs.checkpoint import Progress, claimed, load_checkpoint, save_checkpoint
from ssno.runs.log import Log, Silent
from ssno.training.loop import Loop
from ssno.training.processes import TrainingInterrupted
from ssno.training.train import train


def test_an_existing_folder_is_never_overwritten_silently(tmp_path, waves) -> None:
    train(tiny(), waves, folder=tmp_path / "run", epochs=1, reporter=Silent())
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    with pytest.raises(FileExistsError, match=r"is not empty. Go on with that run \(--resume always\), delete it"):
        train(tiny(), waves, folder=tmp_path / "run", epochs=1, reporter=Silent())
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    train(tiny(), waves, folder=tmp_path / "run", epochs=1, overwrite=True, reporter=Silent())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="is not a run of ssno, so it is not overwritten"):
        train(tiny(), waves, folder=tmp_path / "mine", epochs=1, overwrite=True, reporter=Silent())


def test_a_training_that_is_refused_costs_no_earlier_run(tmp_path, waves, valid_waves, monkeypatch) -> None:
    train(tiny(), waves, folder=tmp_path, epochs=1, reporter=Silent())
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    frames = valid_waves.read(slice(None)).state.numpy()
    frames[2, 3] = np.nan
    broken = Trajectories.from_array(frames, fields=["u"], lengths=[2 * np.pi])
    monkeypatch.setitem(sys.modules, "wandb", None)
    for change, error, message in (
        ({"valid": broken}, ValueError, "'u' is not finite in trajectory 2, frame 3"),
        ({"loggers": ["wandb"]}, ImportError, "wandb is not installed"),
    ):
        with pytest.raises(error, match=message):
            train(tiny(), waves, folder=tmp_path, epochs=1, overwrite=True, reporter=Silent(), **change)
        assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}


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


def test_what_a_killed_training_left_is_removed_and_what_others_write_is_not(tmp_path, waves) -> None:
    train(tiny(), waves, folder=tmp_path, epochs=1, reporter=Silent())
    left = ["last/checkpoint.json.0a1b2c3d.partial", "best/tensors-00000002-0a.safetensors.0a1b2c3d.partial"]
    living = "evaluation.json.0a1b2c3d.partial"
    for name in (*left, living):
        (tmp_path / name).write_text("")
    train(tiny(), waves, folder=tmp_path, epochs=1, resume=True, reporter=Silent())
    assert [path.name for path in tmp_path.rglob("*.partial")] == [living]


@pytest.mark.parametrize("name", ["last", "best", "tensorboard", "metrics.jsonl", ".lock", "last/checkpoint.json"])
@pytest.mark.parametrize("again", ["resume", "overwrite"])
def test_links_out_of_a_run_folder_are_refused(name, again, tmp_path, waves) -> None:
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (elsewhere / "tensors-mine.safetensors").write_text("years of work")
    (folder / "config.json").write_text("{}")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(elsewhere)
    with (
        pytest.raises(ValueError, match=rf"{name} is a link out of its run folder, to .*elsewhere"),
        claimed(folder, resume=again == "resume", overwrite=again == "overwrite"),
    ):
        pass
    assert (folder / name).is_symlink()
    assert [path.name for path in elsewhere.iterdir()] == ["tensors-mine.safetensors"]


def test_a_run_folder_may_be_a_link_and_have_links_inside(tmp_path, waves) -> None:
    (tmp_path / "scratch").mkdir()
    folder = tmp_path / "run"
    folder.symlink_to(tmp_path / "scratch")
    train(tiny(), waves, folder=folder, epochs=1, reporter=Silent())
    (folder / "latest").symlink_to("last")
    train(tiny(), waves, folder=folder, epochs=1, resume=True, reporter=Silent())
    train(tiny(), waves, folder=folder, epochs=1, overwrite=True, reporter=Silent())
    assert folder.is_symlink()
    assert (tmp_path / "scratch" / "model.safetensors").is_file()


def test_writers_follow_no_link_that_appears_later(tmp_path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "last").symlink_to("elsewhere")
    with pytest.raises(ValueError, match="last is a link, to elsewhere. Checkpoints are written to real folders only"):
        save_checkpoint(tmp_path / "last", {}, Progress())
    log = Log(tmp_path, progress=Progress())
    (tmp_path / "metrics.jsonl").symlink_to("elsewhere/mine")
    with pytest.raises(OSError, match="symbolic links"):
        log.write("step", step=1)
    picture = tmp_path / "picture.png"
    (tmp_path / "mine.png").write_text("years of work")
    picture.symlink_to("mine.png")
    save(Figure(), picture)
    assert (tmp_path / "mine.png").read_text() == "years of work"
    assert not picture.is_symlink()
    assert not list((tmp_path / "elsewhere").iterdir())


class Forgetful(nn.Module):
    """A module of a user's own that fails in the forward pass, the backward pass, or when it is saved."""

    def __init__(self, when: str):
        super().__init__()
        self.weight, self.when = nn.Parameter(torch.ones(1)), when

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        if self.when == "forward":
            raise ValueError("no forward pass")
        out = frames * self.weight
        if self.when == "backward" and out.requires_grad:
            out.register_hook(self._refuse)
        return out

    def _refuse(self, gradient: torch.Tensor) -> None:
        raise ValueError("no backward pass")


@pytest.mark.parametrize("when", ["forward", "backward", "log"])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_training_refused_at_the_last_moment_leaves_nothing(
    tmp_path, waves, valid_waves, when, earlier, monkeypatch
) -> None:
    """With an earlier run of that name, what the model refuses leaves that run as it was."""
    folder, before = tmp_path / "runs" / "one", {}
    if earlier:
        train(tiny(), waves, valid=valid_waves, epochs=1, folder=folder)
        before = contents(folder)
    if when == "log":

        def full(*_: object, **__: object) -> None:
            raise OSError("the disk is full")

        monkeypatch.setattr("ssno.training.loop.Log", full)
    with pytest.raises((ValueError, OSError), match="no forward pass|no backward pass|the disk is full"):
        train(Forgetful(when), waves, valid=valid_waves, folder=folder, overwrite=True)
    if earlier and when != "log":
        assert contents(folder) == before
    elif earlier:
        assert contents(folder) == {}  # the earlier run is gone, and nothing stands in the way of another
    else:
        assert not (tmp_path / "runs").exists()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_rehearsal_changes_nothing_of_the_run(tmp_path, waves, valid_waves, monkeypatch) -> None:
    """Not even what batch norm has counted."""
    options = {"valid": valid_waves, "epochs": 2, "noise_std": 0.01}
    for name in ("with", "without"):
        torch.manual_seed(0)
        train(UNetConfig.tiny().build(), waves, folder=tmp_path / name, **options)
        monkeypatch.setattr(Loop, "rehearse", lambda self: None)
    assert outcome(tmp_path / "with") == outcome(tmp_path / "without")


@pytest.mark.parametrize("steps", [0, -3])
def test_stopping_before_the_first_step_is_refused(tmp_path, waves, valid_waves, steps) -> None:
    with pytest.raises(ValueError, match=f"`stop_after` must be at least 1, got {steps}"):
        train(tiny(), waves, valid=valid_waves, folder=tmp_path / "one", stop_after=steps)
    assert not (tmp_path / "one").exists()


def test_stopping_at_a_step_that_is_done_is_refused(tmp_path, waves, valid_waves) -> None:
    options = {"valid": valid_waves, "epochs": 2, "folder": tmp_path}
    with pytest.raises(TrainingInterrupted):
        train(tiny(), waves, stop_after=3, **options)
    before = contents(tmp_path)
    for steps in (2, 3):
        with pytest.raises(ValueError, match=f"`stop_after` is {steps}, but the run in .* has done 3 steps already"):
            train(tiny(), waves, stop_after=steps, resume=True, **options)
        assert contents(tmp_path) == before
    with pytest.raises(TrainingInterrupted):
        train(tiny(), waves, stop_after=4, resume=True, **options)
    train(tiny(), waves, resume=True, **options)
    train(tiny(), waves, stop_after=2, resume=True, **options)  # done: there is nothing to stop
    with pytest.raises(ValueError, match="`stop_after` is 2, but the run in .* has done 10 steps already"):
        train(tiny(), waves, stop_after=2, resume=True, **{**options, "epochs": 3})
