"""Long campaigns for `make verify`: kills at random moments. Their results are committed under results/."""

import itertools
import json
import multiprocessing
import random
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ssno.base.provenance import provenance
from ssno.data.load import DataOptions
from ssno.data.trajectories import Trajectories
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.checkpoint import INDEX, Progress, load_checkpoint, save_checkpoint
from ssno.runs.log import Silent, read_log
from ssno.runs.options import TrainOptions, Unrolling
from ssno.runs.run import Run
from ssno.training.checks import check_resume
from ssno.training.train import train

RESULTS = Path(__file__).parents[2] / "results"


def write_result(name: str, **values) -> None:
    RESULTS.mkdir(exist_ok=True)
    content = {**values, "date": time.strftime("%Y-%m-%d"), "provenance": provenance()}
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")


@pytest.mark.verify
def test_no_kill_while_saving_leaves_an_unreadable_checkpoint(tmp_path) -> None:
    kills, unreadable, steps = 200, 0, []
    moment = random.Random(0)
    for number in range(kills):
        folder = tmp_path / str(number)
        saver = multiprocessing.get_context("fork").Process(target=save_without_end, args=(folder,))
        saver.start()
        while not (folder / INDEX).exists():
            assert saver.is_alive()
            time.sleep(0.001)
        time.sleep(moment.uniform(0, 0.1))
        saver.kill()
        saver.join()
        try:
            tensors, progress = load_checkpoint(folder)
            whole = all(bool((value == progress.step).all()) for value in tensors.values())
            steps.append(progress.step)
        except (OSError, ValueError):
            whole = False
        unreadable += not whole
    write_result("kill-while-saving", kills=kills, unreadable=unreadable, steps=[min(steps), max(steps)])
    assert unreadable == 0


def save_without_end(folder: Path) -> None:
    """Replace one checkpoint by the next; every number of each is its own step."""
    torch.set_num_threads(1)
    for step in itertools.count(1):
        tensors = {f"model/{index}": torch.full((200, 300), float(step)) for index in range(4)}
        save_checkpoint(folder, tensors, Progress(step=step))


def waves_run(data: Trajectories, folder: Path, *, resume: bool) -> None:
    """A run with everything that is saved beside the weights: an average, kept checkpoints, stages of unrolling."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train(
        SSNO(SSNOConfig.tiny()),
        data,
        folder=folder,
        resume=resume,
        epochs=6,
        batch_size=2,
        ema=0.9,
        keep_every=2,
        unroll=Unrolling(teacher_forcing=(1.0, 0.5, 0.0), frames=(1, 2, 3)),
        save_seconds=0.0,
        reporter=Silent(),
    )


def killed_until_finished(
    data: Trajectories, folder: Path, *, kills: int, moment: random.Random, longest: float = 0.4
) -> int:
    """Train, killed again and again at random moments, and then to the end; how often it was killed."""
    for number in range(kills):
        worker = multiprocessing.get_context("fork").Process(
            target=waves_run, args=(data, folder), kwargs={"resume": (folder / "config.json").exists()}
        )
        worker.start()
        worker.join(moment.uniform(0.01, longest))
        if worker.exitcode is not None:
            assert worker.exitcode == 0
            return number
        worker.kill()
        worker.join()
    waves_run(data, folder, resume=(folder / "config.json").exists())
    return kills


def assert_nothing_was_lost(cut: Path, whole: Path) -> None:
    assert [{**line, "seconds": 0} for line in read_log(cut)] == [{**line, "seconds": 0} for line in read_log(whole)]
    assert (cut / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    names = sorted(path.name for path in whole.iterdir())
    assert sorted(path.name for path in cut.iterdir()) == names
    for name in ("last", "best", "epoch-0002", "epoch-0004", "epoch-0006"):
        (left, at), (right, there) = load_checkpoint(cut / name), load_checkpoint(whole / name)
        assert replace(at, seconds=0.0) == replace(there, seconds=0.0)
        assert left.keys() == right.keys()
        assert all(torch.equal(left[key], right[key]) for key in left)


def test_a_run_killed_at_random_moments_ends_as_if_it_never_was(tmp_path, valid_waves) -> None:
    waves_run(valid_waves, tmp_path / "whole", resume=False)
    assert killed_until_finished(valid_waves, tmp_path / "cut", kills=6, moment=random.Random(0)) >= 3
    assert_nothing_was_lost(tmp_path / "cut", tmp_path / "whole")


@pytest.mark.verify
def test_two_hundred_kills_lose_nothing(tmp_path, valid_waves) -> None:
    waves_run(valid_waves, tmp_path / "whole", resume=False)
    moment, kills, runs = random.Random(1), 0, 0
    while kills < 200:
        kills += killed_until_finished(valid_waves, tmp_path / str(runs), kills=200 - kills, moment=moment, longest=1.2)
        assert_nothing_was_lost(tmp_path / str(runs), tmp_path / "whole")
        runs += 1
    write_result("kill-while-training", kills=kills, runs=runs, lost=0)


@pytest.mark.verify
@pytest.mark.parametrize("teacher_forcing", [True, False])
@pytest.mark.parametrize("workers", [0, 2])
def test_kills_at_random_batches_end_bitwise_equal(tmp_path, teacher_forcing, workers) -> None:
    rng = np.random.default_rng(0)
    array = rng.standard_normal((24, 8, 16)).astype(np.float32).cumsum(-1)
    np.save(tmp_path / "noise.npy", array)
    run = Run(
        data=DataOptions(name=str(tmp_path / "noise.npy"), axes="batch time x"),
        model=SSNOConfig.tiny(),
        train=TrainOptions(
            epochs=4,
            batch_size=4,
            noise_std=0.01,
            ema=0.9,
            unroll=Unrolling(teacher_forcing=(float(teacher_forcing),)),
            num_workers=workers,
        ),
    )
    checks = [check_resume(run, steps=12, seed=seed) for seed in range(5)]
    name = f"resume-{'forced' if teacher_forcing else 'unrolled'}-{workers}-workers"
    write_result(
        name,
        kills=[check.killed_after for check in checks],
        tensors=checks[0].tensors,
        exact=[check.exact for check in checks],
        threads=torch.get_num_threads(),
    )
    assert all(check.exact for check in checks)
