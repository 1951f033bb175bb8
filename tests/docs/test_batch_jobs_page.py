"""The scripts of docs/manual/batch-jobs.md under a pretended scheduler: it sends SIGTERM and queues jobs again."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ssno.runs.checkpoint import load_checkpoint
from ssno.runs.log import read_log

PAGE = Path(__file__).parents[2] / "docs" / "manual" / "batch-jobs.md"
TRAINING, ARRAY = re.findall(r"```bash\n(#!/bin/bash.*?)```", PAGE.read_text(), flags=re.DOTALL)
LINES = re.findall(r"^ssno train .* &$", PAGE.read_text(), flags=re.MULTILINE)  # on one device, and on several
OPTIONS = "waves.npz --data.axes 'batch time x' --model ssno:tiny --train.epochs 40 --train.evaluate-every 20"
SWEEP = """
[run]
"data.name" = "waves.npz"
"data.axes" = "batch time x"
"model.model" = "ssno:tiny"
"train.epochs" = 1
[grid]
"train.learning_rate" = [1e-3, 3e-3]
"""


class Scheduler:
    """Runs a script as a job of its own session; `scontrol requeue` leaves a word, on which the job is run again."""

    def __init__(self, place: Path, script: str):
        self.place, self.script = place, place / "job.slurm"
        self.script.write_text(script)
        tools = place / "bin"
        tools.mkdir()
        self._tool("scontrol", f'echo "$2" >> {place}/requeued')
        self._tool("ssno", f'exec {sys.executable} -m ssno "$@"')

    def _tool(self, name: str, line: str) -> None:
        path = self.place / "bin" / name
        path.write_text(f"#!/bin/bash\n{line}\n")
        path.chmod(0o755)

    def start(self, **environment: str) -> subprocess.Popen:
        """A job under way."""
        known = {**os.environ, "PATH": f"{self.place / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_ID": "17"}
        with (self.place / "output").open("ab") as output:
            return subprocess.Popen(
                ["bash", self.script],
                cwd=self.place,
                env={**known, "SLURM_CPUS_PER_TASK": "1", **environment},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def requeued(self) -> list[str]:
        path = self.place / "requeued"
        return path.read_text().split() if path.exists() else []


def until(true, *, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    x, t, phase = np.arange(16) / 16, np.arange(6) / 6, np.random.default_rng(0).random(20)
    np.savez(tmp_path / "waves.npz", u=np.sin(2 * np.pi * (x + t[:, None] + phase[:, None, None])))
    return tmp_path


@pytest.mark.parametrize("line", [LINES[0], *(pytest.param(line, marks=pytest.mark.verify) for line in LINES[1:])])
def test_a_preempted_training_saves_is_queued_again_and_ends(place: Path, line: str) -> None:
    assert LINES[0] in TRAINING
    line = line.replace("ssno train ks ", f"ssno train {OPTIONS} ").replace("--nproc 4", "--nproc 2")
    jobs = Scheduler(place, TRAINING.replace(LINES[0], line))
    run = place / "runs" / "ks-ssno"
    job = jobs.start()
    until(lambda: len(read_log(run)) > 3)
    job.send_signal(signal.SIGTERM)  # a scheduler that tells the batch script only
    assert job.wait(60) == 0
    output = (place / "output").read_text()
    assert "Go on with --resume" in output, output
    assert jobs.requeued == ["17"]
    reached = load_checkpoint(run / "last")[1]
    assert 0 < reached.step < 40 * 4
    assert jobs.start().wait(120) == 0
    assert load_checkpoint(run / "last")[1].finished
    assert jobs.requeued == ["17"], "what is done asks for nothing more"


def test_a_mistake_in_the_call_is_not_queued_again(place: Path) -> None:
    jobs = Scheduler(place, TRAINING.replace("ssno train ks ", "ssno train nowhere.npz "))
    assert jobs.start().wait(60) == 2
    assert jobs.requeued == []


@pytest.mark.verify
def test_tasks_of_an_array_share_a_sweep(place: Path) -> None:
    (place / "rates.toml").write_text(SWEEP)
    jobs = Scheduler(place, ARRAY.replace("/8", "/2"))
    for task in ("1", "2"):
        assert jobs.start(SLURM_ARRAY_TASK_ID=task, SLURM_ARRAY_JOB_ID="17").wait(120) == 0
    assert len(list((place / "runs" / "rates").glob("*/trial.json"))) == 2
