"""`ssno train` with a schedule of unrolling, in one process and in two."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from ssno.cli.main import main
from ssno.runs.log import read_log

WORDS = ["noise.npy", "--model", "ssno:tiny", "--data.axes", "batch time x", "--train.batch-size", "4"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder with a file of rough walks in it."""
    array = np.random.default_rng(0).standard_normal((12, 8, 16)).cumsum(-1)
    np.save(tmp_path / "noise.npy", array.astype(np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def losses(folder) -> list[float]:
    return [line["loss"] for line in read_log(folder) if line["kind"] == "step"]


def test_a_schedule_is_written_to_the_run_and_trained(here) -> None:
    schedule = ["--train.epochs", "2", "--train.unroll.teacher-forcing", "1", "0.5", "--train.unroll.frames", "1", "4"]
    main(["train", *WORDS, *schedule])
    config = json.loads((here / "runs" / "noise-ssno" / "config.json").read_text())["run"]
    assert config["version"] == 5
    assert config["train"]["unroll"] == {
        "teacher_forcing": [1.0, 0.5],
        "frames": [1, 4],
        "pushforward": [0],
        "truncate": 0,
        "gradient_checkpointing": False,
    }
    assert np.isfinite(losses(here / "runs" / "noise-ssno")).all()


@pytest.mark.verify
def test_two_processes_follow_one_through_cut_gradients(here) -> None:
    """A step then has several backward passes, and processes may average only in the last."""
    words = [*WORDS, "--train.epochs", "4", "--train.noise-std", "0.01", "--train.evaluate-every", "4"]
    words += [
        "--train.unroll.teacher-forcing",
        "0.5",
        "--train.unroll.truncate",
        "2",
        "--train.unroll.gradient-checkpointing",
    ]
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    command = [*launch, "--rdzv-endpoint", "localhost:0", "-m", "ssno", "train", *words, "--name", "two"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, done.stderr[-2000:]
    main(["train", *words, "--name", "one"])
    one, two = (losses(here / "runs" / name) for name in ("one", "two"))
    assert len(one) == 12
    np.testing.assert_allclose(two, one, rtol=1e-5)
