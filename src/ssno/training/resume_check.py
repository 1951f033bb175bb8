"""Proof on the user's own run that interrupting it changes nothing: `ssno train ... --check-resume`.

Three real processes: one trains some steps undisturbed; one is killed with SIGKILL on the way, and a third goes on from
what it left behind. Weights, optimiser state, averages and progress must then agree bit by bit.
"""

import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from ssno.runs.checkpoint import has_checkpoint, load_checkpoint, read_progress
from ssno.runs.layout import LAST
from ssno.runs.run import Run
from ssno.training.interruption import EXIT_INTERRUPTED

STEPS = 8
LONGEST = 600.0  # seconds for one process


@dataclass(frozen=True)
class ResumeCheck:
    """What the check saw."""

    killed_after: int
    steps: int
    tensors: int
    different: tuple[str, ...]

    @property
    def exact(self) -> bool:
        return not self.different


def check_resume(run: Run[Any], *, steps: int = STEPS, seed: int | None = None) -> ResumeCheck:
    """Kill a copy of this run at a random step, resume it, and compare with an undisturbed copy."""
    kill_at = random.Random(seed).randint(1, max(1, steps - 1))
    run = replace(run, train=replace(run.train, save_seconds=0.0))  # a checkpoint after every step
    with TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "run.json").write_text(json.dumps(run.to_json()))
        _run_to(home, "undisturbed", steps)
        reached = _kill_at(home, "killed", steps, kill_at)
        _run_to(home, "killed", steps, "--resume")
        whole, whole_progress = load_checkpoint(home / "undisturbed" / LAST)
        cut, cut_progress = load_checkpoint(home / "killed" / LAST)
    names = sorted(whole.keys() | cut.keys())
    different = [n for n in names if n not in whole or n not in cut or not torch.equal(whole[n], cut[n])]
    if replace(whole_progress, seconds=0.0) != replace(cut_progress, seconds=0.0):
        different.append("progress")
    return ResumeCheck(killed_after=reached, steps=steps, tensors=len(names), different=tuple(different))


def _command(home: Path, name: str, steps: int, *more: str) -> list[str]:
    source = ["--config", str(home / "run.json")] if "--resume" not in more else []
    where = ["--out", str(home), "--name", name, "--stop-after", str(steps)]
    return [sys.executable, "-m", "ssno", "train", *source, *where, *more]


def _run_to(home: Path, name: str, steps: int, *more: str) -> None:
    done = subprocess.run(_command(home, name, steps, *more), capture_output=True, text=True, timeout=LONGEST)
    if done.returncode not in (0, EXIT_INTERRUPTED):
        raise RuntimeError(f"The trial run failed with code {done.returncode}: {done.stderr.strip()[-2000:]}")


def _kill_at(home: Path, name: str, steps: int, kill_at: int) -> int:
    """Start a run, kill it as soon as the checkpoint of step `kill_at` is there; the step it had saved."""
    process = subprocess.Popen(_command(home, name, steps), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    last, deadline = home / name / LAST, time.monotonic() + LONGEST
    while process.poll() is None and time.monotonic() < deadline:
        if has_checkpoint(last) and read_progress(last).step >= kill_at:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.002)
    process.kill()
    process.wait()
    return read_progress(last).step
