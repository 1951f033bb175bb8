"""Can this machine be trusted, and how fast is it? A tiny training on a device, beside the same one on the CPU.

    losses      |device - CPU| / |CPU| of every training step, the largest
    gradients   |device - CPU| / |CPU| of the first step's whole gradient, in the l2 norm
    forecasts   the same of a rollout of the trained models
    resuming    the device's run stopped half-way and resumed, against the run that was not: the same of its weights

The CPU computes with operations written out (engine "plain"), the device with its usual engine, so that on the CPU
itself the check is one of the native code.
"""

import json
import logging
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ssno.base.device import choose_device, device_name, synchronise
from ssno.data.trajectories import Trajectories
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.metrics import frame_errors
from ssno.forecasting.rollout import rollout
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.native.engine import Engine, MeasuredEngine, measured_engines, remember_fastest, use
from ssno.runs.checkpoint import LAST, has_checkpoint, load_checkpoint, read_progress
from ssno.runs.log import Silent
from ssno.runs.run import Run
from ssno.training.objective import compiled
from ssno.training.processes import EXIT_INTERRUPTED, TrainingInterrupted
from ssno.training.train import train

# Proof on the user's own run that interrupting it changes nothing: `ssno train ... --check-resume`.
#
# Three real processes: one trains some steps undisturbed; one is killed with SIGKILL on the way, and a third goes on
# from what it left behind. Weights, optimiser state, averages and progress must then agree bit by bit.

CHECKED_STEPS = 8
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


def check_resume(run: Run[Any], *, steps: int = CHECKED_STEPS, seed: int | None = None) -> ResumeCheck:
    """Kill a copy of this run at a random step, resume it, and compare with an undisturbed copy."""
    kill_at = random.Random(seed).randint(1, max(1, steps - 1))
    run = replace(run, train=replace(run.train, save_seconds=0.0))  # a checkpoint after every step
    with TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "run.json").write_text(json.dumps(run.to_json()))
        _run_to(home, "undisturbed", steps)
        reached = _kill_at(home, "killed", steps, kill_at)
        _run_to(home, "killed", steps, "--resume", "always")
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


log = logging.getLogger("ssno")
ALLOWED = {"losses": 1e-3, "gradients": 1e-4, "forecasts": 1e-3, "resuming": 1e-3}
"""Rounding in float32 is about 1e-6; a few optimiser steps magnify it."""
STEPS, POINTS, BATCH = 8, 128, 8


@dataclass(frozen=True)
class MachineCheck:
    """What was found: relative differences by name, and seconds of a training step of the default model."""

    device: str
    reference: str
    differences: dict[str, float]
    reference_seconds: float
    """Plain PyTorch on the CPU."""
    seconds: dict[MeasuredEngine, float]
    """Every engine of the device whose gradients agree with the reference."""
    disagreeing: dict[MeasuredEngine, float]
    """The other engines, with the differences of their gradients."""

    @property
    def wrong(self) -> list[str]:
        """The differences that are larger than rounding explains."""
        wrong = [name for name, found in self.differences.items() if not found <= ALLOWED[name]]
        return wrong or ([] if self.seconds else ["gradients"])

    def lines(self) -> list[str]:
        """Six lines for people."""
        found = {
            name: f"{value:.1e} (allowed {ALLOWED[name]:.0e})" if value else "bitwise equal"
            for name, value in self.differences.items()
        }
        ranked = sorted(self.seconds.items(), key=lambda item: item[1])
        times = ", ".join(f"{engine} {1e3 * seconds:.0f} ms" for engine, seconds in ranked)
        left_out = "".join(f" {name} is left out: gradients {off:.1e}." for name, off in self.disagreeing.items())
        if self.wrong:
            return [
                *self._heading(found),
                f"A training step of the default model takes {times or '?'}.{left_out} Nothing is remembered.",
                f"Do not trust this device: {', '.join(self.wrong)} differ.",
            ]
        fastest, best = ranked[0]
        return [
            *self._heading(found),
            f"A training step of the default model, {POINTS} points, batch {BATCH}: {times}.{left_out}",
            f"The fastest is {fastest}, {self.reference_seconds / best:.1f} times as fast as plain PyTorch on the CPU; "
            "--train.engine auto takes it here from now on.",
            "It can be trusted.",
        ]

    def _heading(self, found: dict[str, str]) -> list[str]:
        return [
            f"{self.device}, against plain PyTorch on {self.reference}, float32:",
            f"{STEPS} training steps: losses {found['losses']}, gradients {found['gradients']}.",
            f"Forecasts of the trained model: {found['forecasts']}; stopped and resumed: {found['resuming']}.",
        ]


def check_machine(device: str | torch.device = "auto") -> MachineCheck:
    """Train the same tiny model on the CPU and on the device, compare, and remember the fastest engine that agrees."""
    chosen, cpu = choose_device(device), torch.device("cpu")
    here, away = SmallTraining(cpu, "plain"), SmallTraining(chosen, "auto")
    tried = {engine: off_by(chosen, engine, here) for engine in measured_engines(chosen)}
    off = {engine: value for engine, value in tried.items() if value is not None}
    agreeing = [engine for engine, found in off.items() if found <= ALLOWED["gradients"]]
    seconds = seconds_per_step(chosen, agreeing)
    known = seconds if chosen == cpu else {}
    found = MachineCheck(
        device=device_name(chosen),
        reference=device_name(cpu),
        differences={
            "losses": max(abs(a / b - 1) for a, b in zip(away.losses, here.losses, strict=True)),
            "gradients": difference(away.gradient, here.gradient),
            "forecasts": difference([away.forecast], [here.forecast]),
            "resuming": difference(away.resumed(), away.weights),
        },
        reference_seconds=known["plain"] if "plain" in known else seconds_per_step(cpu, ["plain"])["plain"],
        seconds=seconds,
        disagreeing={engine: value for engine, value in off.items() if engine not in agreeing},
    )
    if not found.wrong:
        remember_fastest(chosen, seconds)
    return found


def off_by(device: torch.device, engine: MeasuredEngine, reference: "SmallTraining") -> float | None:
    """How far the gradient of an engine is off; None for kernels of Triton that this device cannot compile or run."""
    try:
        return difference(gradient(device, engine), reference.gradient)
    except Exception as error:
        if engine != "triton":
            raise
        log.warning("Kernels of Triton do not run on %s: %s", device_name(device), error)
        return None


class SmallTraining:
    """One small training: losses, first gradient, weights and forecast, all on the CPU."""

    def __init__(self, device: torch.device, engine: Engine):
        self.device, self.engine = device, engine
        watch = _Losses()
        forecaster = self.train(reporter=watch)
        self.losses, self.weights = watch.seen, weights_of(forecaster)
        self.forecast = rollout(forecaster, waves().read(slice(None)).state[:, :4], 8)
        self.gradient = gradient(device, engine)

    def train(self, **more: Any) -> Forecaster:
        """`STEPS` steps on waves."""
        data = waves()
        settings: dict[str, Any] = {"epochs": 2, "batch_size": 2 * len(data) // STEPS, "compile": False}
        settings |= {"device": self.device, "engine": self.engine, "reporter": Silent()}
        settings |= {"optimizer": "adamw", "learning_rate": 3e-3}  # SOAP at 1e-2 magnifies rounding a thousand times
        return train(small_model(), data, valid=data.select(indices=[0]), **{**settings, **more})

    def resumed(self) -> list[Tensor]:
        """The weights of the same training, stopped half-way and resumed."""
        with TemporaryDirectory() as folder:
            with suppress(TrainingInterrupted):
                self.train(folder=Path(folder) / "run", stop_after=STEPS // 2)
            return weights_of(self.train(folder=Path(folder) / "run", resume=True))


class _Losses(Silent):
    def __init__(self) -> None:
        self.seen: list[float] = []

    def step(self, *, step: int, epoch: int, loss: float, rate: float) -> None:
        self.seen.append(loss)


def small_model() -> SSNO:
    """Always the same one."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return SSNO(SSNOConfig.tiny())


def waves() -> Trajectories:
    """Two waves that meet, from eight places."""
    x, t = 2 * np.pi * np.arange(32) / 32, 0.2 * np.arange(12)[:, None]
    phase = 2 * np.pi * np.arange(8)[:, None, None] / 8
    fields = np.sin(x - t + phase) + 0.5 * np.cos(2 * x + t - phase)
    return Trajectories.from_array(fields[:, :, None].astype(np.float32), name="waves", lengths=[2 * np.pi], dt=0.2)


def weights_of(forecaster: Forecaster) -> list[Tensor]:
    """All weights, on the CPU."""
    return [value.cpu() for value in forecaster.model.state_dict().values()]


def step_loss(model: Callable[[Tensor], Tensor], frames: Tensor) -> Tensor:
    """The relative error of one step from every frame."""
    return frame_errors(model(frames[:, :-1]), frames[:, 1:]).mean()


def difference(found: Iterable[Tensor], expected: Iterable[Tensor]) -> float:
    """|found - expected| / |expected| over all tensors together."""
    a, b = (torch.cat([part.detach().double().flatten() for part in parts]) for parts in (found, expected))
    return float((a - b).norm() / b.norm())


def gradient(device: torch.device, engine: Engine | MeasuredEngine) -> list[Tensor]:
    """The gradient of the small model's first loss, on the CPU."""
    model = small_model().to(device)
    with stepping(model, engine) as predict:
        step_loss(predict, waves().read(slice(None)).state.to(device)).backward()
    return [p.grad.cpu() for p in model.parameters() if p.grad is not None]


@contextmanager
def stepping(model: SSNO, engine: Engine | MeasuredEngine) -> Iterator[Callable[[Tensor], Tensor]]:
    """What predicts with this engine."""
    with use("auto" if engine == "compiled" else engine):
        yield compiled(model) if engine == "compiled" else model


def seconds_per_step(
    device: torch.device, engines: Sequence[MeasuredEngine], *, rounds: int = 3
) -> dict[MeasuredEngine, float]:
    """Least time of forward and backward pass of the default model, the engines in turns, after a round for nothing."""
    model, frames = SSNO(SSNOConfig()).to(device), torch.randn(BATCH, 12, 1, POINTS).to(device)
    seconds: dict[MeasuredEngine, list[float]] = {engine: [] for engine in engines}
    for _ in range(1 + rounds):
        for engine, found in seconds.items():
            with stepping(model, engine) as predict:
                synchronise(device)
                began = time.perf_counter()
                step_loss(predict, frames).backward()
                synchronise(device)
                found.append(time.perf_counter() - began)
    return {engine: min(found[1:]) for engine, found in seconds.items()}
