"""Long forecasts and trainings: memory stays flat, and nothing that is opened stays open."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch

from ssno.data.trajectories import Trajectories
from ssno.forecasting.rollout import stream
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.log import Silent
from ssno.training.processes import TrainingInterrupted
from ssno.training.train import train
from verify.campaign import Counts

FORECAST, TRAINING = 20_000, 2_000  # steps of a trial, which goes on where the one before it stopped
WARM = 0.1  # of a trial, before memory is looked at
GROWTH = 0.01


def state() -> Path:
    """Where trials leave what the next one goes on with."""
    place = Path(tempfile.gettempdir()) / f"ssno-verify-endurance-{os.getuid()}"
    place.mkdir(exist_ok=True)
    return place


def resident() -> int:
    """Bytes of memory that this process has, files mapped from the disk apart."""
    text = Path("/proc/self/status").read_text()
    return 1024 * sum(int(text.split(name)[1].split()[0]) for name in ("RssAnon:", "RssShmem:"))


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


class Flat:
    """Looks at memory and descriptors from the first tenth on."""

    def __init__(self) -> None:
        self.before = resident(), open_files()

    def check(self, steps: int) -> dict[str, int]:
        """Counts of a trial whose memory stayed flat; an error for another."""
        memory, files = resident(), open_files()
        growth = memory / self.before[0] - 1
        assert growth <= GROWTH, f"memory grew by {growth:.2%}, from {self.before[0]} to {memory} bytes"
        assert files <= self.before[1], f"{files - self.before[1]} descriptors were left open"
        return {"steps": steps}


def waves() -> Trajectories:
    x, t = 2 * np.pi * np.arange(16) / 16, 0.2 * np.arange(8)[:, None]
    phase = 2 * np.pi * np.arange(10)[:, None, None] / 10
    return Trajectories.from_array(np.sin(x - t + phase)[:, :, None].astype(np.float32), lengths=[2 * np.pi], dt=0.2)


def forecast(number: int, place: Path) -> Counts:
    """A forecast that goes on from the last frames of the trial before it, held at the size of the data."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    forecaster = train(SSNO(SSNOConfig.tiny()), waves(), epochs=2, reporter=Silent())
    saved = state() / "frames.npy"
    first = torch.from_numpy(np.load(saved)) if number and saved.exists() else waves().read([0]).state[:, :4]
    frames = stream(forecaster, first, guard=lambda frame: frame.clamp(-2, 2))
    watch, kept = Flat(), []
    for step, frame in enumerate(frames, start=1):
        if step == int(WARM * FORECAST):
            watch = Flat()
        if step > FORECAST - 4:
            kept.append(frame)
        if step == FORECAST:
            break
    assert bool(torch.isfinite(frame).all()), "the forecast is not finite"
    found = watch.check(FORECAST)
    np.save(saved, torch.stack(kept, dim=1).numpy())
    return found


class Watching(Silent):
    """Looks once when a tenth of the trial is done."""

    def __init__(self) -> None:
        self.watch, self.steps = Flat(), 0

    def step(self, *, step: int, epoch: int, loss: float, rate: float) -> None:
        self.steps += 1
        if self.steps == int(WARM * TRAINING):
            self.watch = Flat()


def training(number: int, place: Path) -> Counts:
    """A training of a tiny model that is resumed by every trial."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder, reporter = state() / "run", Watching()
    options = {"epochs": 50_000, "batch_size": 5, "save_seconds": 5.0, "evaluate_every": 100, "optimizer": "adamw"}
    with suppress(TrainingInterrupted):
        train(
            SSNO(SSNOConfig.tiny()),
            waves(),
            folder=folder,
            resume=number > 0,
            overwrite=number == 0,
            stop_after=(number + 1) * TRAINING,
            reporter=reporter,
            **options,  # type: ignore[arg-type]
        )
    assert reporter.steps == TRAINING, f"{reporter.steps} steps instead of {TRAINING}"
    return reporter.watch.check(TRAINING)
