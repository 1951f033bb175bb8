"""Memory of training over the number of predicted frames, and the accuracy of its estimate.

    python -m benchmarks.memory                      measure, compare, print
    python -m benchmarks.memory --store              also write results/memory.json and docs/images/memory.png

Every measurement is a process: a few steps and an evaluation, then the peak memory reported by the operating system.
The estimate is computed in another process, as by `ssno train --dry-run`. Data are random numbers. Steps are timed in
one process, the modes in turn, because times of different processes on a busy machine cannot be compared.
"""

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from matplotlib.figure import Figure

from ssno.base.memory import most_held
from ssno.base.provenance import provenance
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.models.registry import model_config
from ssno.plots.style import COLOURS, look, save
from ssno.runs.log import Silent
from ssno.runs.options import TrainOptions, Unrolling
from ssno.training.estimate import forecast_memory, one_step
from ssno.training.task import task_for
from ssno.training.train import train

ROOT = Path(__file__).parents[1]
MODES = {
    "teacher forcing": Unrolling(),
    "pushforward": Unrolling(pushforward=(1,)),
    "full back-propagation": Unrolling(teacher_forcing=(0.0,)),
    "cut every 4 frames": Unrolling(teacher_forcing=(0.0,), truncate=4),
    "recomputed steps": Unrolling(teacher_forcing=(0.0,), gradient_checkpointing=True),
}
GIVEN, STEPS, ROUNDS = 4, 3, 7


@dataclass(frozen=True)
class Case:
    """A run to look at."""

    mode: str
    frames: int
    model: str = "ssno"
    grid: tuple[int, ...] = (64,)
    batch: int = 16

    def setting(self) -> tuple[Any, Trajectories, Trajectories, TrainOptions]:
        """Model, training and validation data, options."""
        torch.manual_seed(0)
        config = model_config(self.model, n_dims=len(self.grid)).for_grid(self.grid)
        options = TrainOptions(epochs=1, batch_size=self.batch, unroll=MODES[self.mode])
        return config.build(), self._noise(STEPS * self.batch), self._noise(self.batch), options

    def _noise(self, count: int) -> Trajectories:
        shape = (count, GIVEN + self.frames, 1, *self.grid)
        array = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
        return Trajectories.from_array(array, name="noise", lengths=[1.0] * len(self.grid))


SWEEP = [Case(mode, frames) for mode in MODES for frames in (4, 8, 16, 24)]
OTHERS = [
    *(Case(mode, 8, model="ffno") for mode in MODES),
    *(Case(mode, 6, model=model, grid=(32, 32), batch=2) for mode in MODES for model in ("ssno", "ffno")),
    Case("teacher forcing", 22, batch=32),
    Case("full back-propagation", 4, grid=(64, 64), batch=1),
]


def main(store: bool = False) -> None:
    """Measure all cases and print how well they were forecast.

    Args:
        store: write results/memory.json and docs/images/memory.png.
    """
    rows = []
    for case in SWEEP + OTHERS:
        row = compare(case)
        rows.append(row)
        print(
            f"{row['model']:5s} {'x'.join(map(str, row['grid'])):6s} batch {row['batch']:2d} frames {row['frames']:2d} "
            f"{row['mode']:22s} {row['measured_bytes'] / 2**20:6.0f} MiB  forecast {row['ratio']:5.2f} of it",
            flush=True,
        )
    if store:
        keep(rows, step_times())


def keep(rows: list[dict[str, Any]], times: dict[str, list[float]]) -> None:
    """Write results/memory.json, and draw the sweep."""
    content = {
        "rows": rows,
        "step_seconds_24_frames": times,
        "date": time.strftime("%Y-%m-%d"),
        "provenance": provenance(),
    }
    (ROOT / "results" / "memory.json").write_text(json.dumps(content, indent=2) + "\n")
    usual = [row for row in rows if (row["model"], tuple(row["grid"]), row["batch"]) == ("ssno", (64,), 16)]
    save(picture(usual), ROOT / "docs" / "images" / "memory.png")


def compare(case: Case) -> dict[str, Any]:
    """One case, measured and forecast, each in a young process."""
    measured, forecast = child("measure", case), child("forecast", case)
    return {**asdict(case), **measured, **forecast, "ratio": forecast["forecast_bytes"] / measured["measured_bytes"]}


def child(what: str, case: Case) -> dict[str, float]:
    """Run `measure` or `forecast` in a process of its own."""
    code = f"import json; from benchmarks.memory import *; print(json.dumps({what}({case!r})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"`{what}` failed for {case}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(case: Case) -> dict[str, float]:
    """Train a few steps, evaluate, and ask the system for the most memory held."""
    model, data, valid, options = case.setting()
    train(model, data, valid=valid, options=options, window=Window(size=GIVEN), reporter=Silent())
    return {"measured_bytes": most_held()}


def step_times(frames: int = 24, rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Processor seconds of a step in every mode, the modes in turn."""
    model, data, _, options = Case("teacher forcing", frames).setting()
    forecaster = task_for(model, data, options=options, window=Window(size=GIVEN)).forecaster.train()
    stages = {mode: rollout.stage(0, 1) for mode, rollout in MODES.items()}
    times: dict[str, list[float]] = {mode: [] for mode in stages}
    for stage in stages.values():
        one_step(forecaster, data, stage, 1)
    for _ in range(rounds):
        for mode, stage in stages.items():
            began = time.process_time()
            one_step(forecaster, data, stage, options.batch_size)
            times[mode].append(time.process_time() - began)
    return times


def forecast(case: Case) -> dict[str, float]:
    """The estimate of `--dry-run`."""
    model, data, valid, options = case.setting()
    task = task_for(model, data, valid=valid, options=options, window=Window(size=GIVEN))
    return {"forecast_bytes": forecast_memory(task)}


def picture(rows: list[dict[str, Any]]) -> Figure:
    """Memory against frames, one line per mode; crosses are forecasts."""
    with look():
        figure = Figure(figsize=(7.2, 4.2))
        axes = figure.subplots()
        for colour, mode in zip(COLOURS, MODES, strict=False):
            mine = sorted((row for row in rows if row["mode"] == mode), key=lambda row: row["frames"])
            frames = [row["frames"] for row in mine]
            axes.plot(frames, [row["measured_bytes"] / 2**20 for row in mine], "o-", color=colour, label=mode, ms=5)
            axes.plot(frames, [row["forecast_bytes"] / 2**20 for row in mine], "x", color=colour, ms=7)
        axes.plot([], [], "x", color="0.4", label="forecast before the run")
        axes.set(xlabel="predicted frames", ylabel="most memory of the process (MiB)", ylim=(0, None))
        axes.set_xticks(sorted({row["frames"] for row in rows}))
        axes.set_title("SS-NO, 64 points, batch 16")
        axes.legend(loc="lower right")
    return figure


if __name__ == "__main__":
    tyro.cli(main)
