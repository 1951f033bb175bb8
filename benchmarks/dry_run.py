"""Accuracy and cost of the time estimates of `ssno train --dry-run`.

    python -m benchmarks.dry_run                            measure, compare, print (some minutes on an idle machine)
    python -m benchmarks.dry_run --store                    also write results/dry-run.json
    python -m benchmarks.dry_run --clock processor          on a busy machine: processor time, one thread

Estimate and training run in separate processes, on the same random data. The time of a training includes reading,
steps, evaluations and checkpoints. Exit code 1 if an estimate is off by more than 1.5 or a dry run takes more than 10 s
of processor time, imports included.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import tyro

from ssno.base.provenance import provenance
from ssno.data.trajectories import Trajectories
from ssno.models.registry import model_config
from ssno.runs.log import Silent
from ssno.runs.options import Unrolling
from ssno.training.estimate import estimate, load_libraries
from ssno.training.loop import run_task
from ssno.training.task import Task, task_for

ROOT = Path(__file__).parents[1]
FACTOR, MOST_SECONDS = 1.5, 10.0
Clock = Literal["wall", "processor"]
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


@dataclass(frozen=True)
class Case:
    """A training with the defaults of recipe `fast`, except for `options`."""

    model: str
    grid: tuple[int, ...]
    frames: int
    trajectories: int
    options: dict[str, Any] = field(default_factory=dict)

    def task(self) -> Task:
        """What is trained, on noise."""
        data, valid = (self._noise(count) for count in (self.trajectories, max(1, self.trajectories // 8)))
        return task_for(model_config(self.model), data, valid=valid, **self.options)

    def _noise(self, count: int) -> Trajectories:
        array = np.random.default_rng(0).standard_normal((count, self.frames, 1, *self.grid), dtype=np.float32)
        return Trajectories.from_array(array, name="noise", lengths=[1.0] * len(self.grid))


CASES = [
    Case("ssno", (64,), 26, 96, {"epochs": 2}),
    Case("ssno:tiny", (64,), 26, 96, {"epochs": 4}),
    Case("ffno", (64,), 26, 96, {"epochs": 2}),
    Case("ssno", (64,), 26, 64, {"epochs": 2, "grids": (32, 64)}),
    Case("ssno:tiny", (64,), 26, 48, {"epochs": 4, "unroll": Unrolling(teacher_forcing=(1.0, 0.0), frames=(0, 8))}),
    Case("ssno", (32, 32), 20, 16, {"epochs": 2}),
    Case("unet", (32, 32), 20, 16, {"epochs": 2}),
    Case("ssno", (64, 64), 20, 12, {"epochs": 1}),
]


def main(store: bool = False, clock: Clock = "wall", first: int = len(CASES)) -> None:
    """Estimate and run all trainings.

    Args:
        store: write results/dry-run.json.
        clock: wall time, for an idle machine; or processor time, on one thread.
        first: run only the first N cases.
    """
    rows = []
    for case in CASES[:first]:
        row = compare(case, clock)
        rows.append(row)
        print(
            f"{case.model:10s} {'x'.join(map(str, case.grid)):6s} {json.dumps(row['options'])}: training "
            f"{row['measured_seconds']:.1f} s, forecast {row['ratio']:.2f} of it in {row['dry_run_seconds']:.1f} s",
            flush=True,
        )
    if store:
        kept = {"clock": clock, "rows": rows, "load": os.getloadavg()[0], "provenance": provenance()}
        (ROOT / "results" / "dry-run.json").write_text(json.dumps(kept, indent=2) + "\n")
    sys.exit(any(not 1 / FACTOR <= row["ratio"] <= FACTOR or row["dry_run_seconds"] > MOST_SECONDS for row in rows))


def compare(case: Case, clock: Clock) -> dict[str, Any]:
    """One case, forecast and done."""
    forecast, measured = (child(what, case, clock) for what in ("forecast", "measure"))
    return {
        **asdict(case),
        **forecast,
        **measured,
        "ratio": forecast["forecast_seconds"] / measured["measured_seconds"],
    }


def child(what: str, case: Case, clock: Clock) -> dict[str, float]:
    """Run `forecast` or `measure` in a process of its own."""
    code = f"import json; from benchmarks.dry_run import *; print(json.dumps({what}({case!r}, {clock!r})))"
    environment = {**os.environ, **({"OMP_NUM_THREADS": "1"} if clock == "processor" else {})}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"`{what}` failed for {case}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def forecast(case: Case, clock: Clock) -> dict[str, float]:
    """The estimate of `--dry-run`, and the processor time of its process."""
    seconds = estimate(case.task(), clock=CLOCKS[clock]).seconds
    assert seconds is not None, "the machine has too little memory for this case"
    return {"forecast_seconds": seconds, "dry_run_seconds": time.process_time()}


def measure(case: Case, clock: Clock) -> dict[str, float]:
    """The training itself."""
    task, now = case.task(), CLOCKS[clock]
    load_libraries()  # seconds once per process, which short trainings like these would be blamed for
    with TemporaryDirectory() as folder:
        began = now()
        run_task(task, folder=Path(folder), reporter=Silent())
        return {"measured_seconds": now() - began}


if __name__ == "__main__":
    tyro.cli(main)
