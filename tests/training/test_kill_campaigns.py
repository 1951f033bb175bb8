"""Long campaigns for `make verify`: kills at random moments. Their results are committed under results/."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from ssno.data.provenance import provenance
from ssno.models.ssno import SSNOConfig
from ssno.training.checkpoint import load_checkpoint
from ssno.training.options import TrainOptions
from ssno.training.resume_check import check_resume
from ssno.training.run import DataOptions, Run

RESULTS = Path(__file__).parents[2] / "results"
SAVER = Path(__file__).with_name("kill_campaign.py")


def write_result(name: str, **values) -> None:
    RESULTS.mkdir(exist_ok=True)
    content = {**values, "date": time.strftime("%Y-%m-%d"), "provenance": provenance()}
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")


@pytest.mark.verify
def test_no_kill_while_saving_leaves_an_unreadable_checkpoint(tmp_path) -> None:
    kills, unreadable, steps = 200, 0, []
    moment = random.Random(0)
    for _ in range(kills // 4):  # four savers at a time share the start-up of Python
        folders = [tmp_path / str(len(steps) + index) for index in range(4)]
        savers = [subprocess.Popen([sys.executable, SAVER, folder]) for folder in folders]
        for folder, saver in zip(folders, savers, strict=True):
            while not (folder / "checkpoint.json").exists():
                time.sleep(0.01)
                assert saver.poll() is None
            time.sleep(moment.uniform(0, 0.2))
            saver.kill()
            saver.wait()
            try:
                tensors, progress = load_checkpoint(folder)
                whole = all(bool((value == progress.step).all()) for value in tensors.values())
            except (OSError, ValueError):
                whole = False
            unreadable += not whole
            steps.append(progress.step)
    write_result("kill-while-saving", kills=len(steps), unreadable=unreadable, last_steps=[min(steps), max(steps)])
    assert len(steps) == kills
    assert unreadable == 0


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
            epochs=4, batch_size=4, noise=0.01, ema=0.9, teacher_forcing=teacher_forcing, workers=workers
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
