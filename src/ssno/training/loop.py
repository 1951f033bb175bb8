"""The training loop. A run is a function of its description: kill it anywhere, resume, and it ends bitwise the same.

That holds because nothing lives outside the checkpoint and the description: the learning rate is a function of the
step, the order of trajectories of (seed, epoch), the way of unrolling of the epoch, noise, forced frames and pieces of
trajectories of (seed, epoch, step, sample), dropout of (seed, epoch, step).
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ssno.base.device import float64
from ssno.data.trajectories import Trajectories
from ssno.forecasting.area import areas
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.scores import score
from ssno.native.engine import use
from ssno.runs.checkpoint import Progress, has_checkpoint, load_checkpoint, save_checkpoint
from ssno.runs.log import Log
from ssno.runs.options import TrainOptions
from ssno.runs.saved import save_description, save_weights
from ssno.ssm.kernel import UndampedError
from ssno.training.batches import Batch, BatchSource
from ssno.training.interruption import Interruption, TrainingDiverged, TrainingInterrupted
from ssno.training.lessons import prepare
from ssno.training.objective import Carry, Objective
from ssno.training.optimiser import WeightAverage, make_optimiser, set_rate
from ssno.training.processes import Place
from ssno.training.reporter import Reporter
from ssno.training.schedule import rate_factor
from ssno.training.state import restore, run_tensors

STEPS_LOGGED_PER_EPOCH = 10


class Loop:
    """One run: a forecaster, its data, and where it writes.

    Args:
        forecaster: the model with its units, on the CPU.
        data: training trajectories.
        valid: trajectories that pick the best weights.
        options: how to train.
        place: which process this is.
        folder: where checkpoints, log and weights go; None keeps everything in memory.
        stop_after: pretend to be interrupted after this many optimiser steps in all.
        tensorboard: also log to TensorBoard's files in the folder.
        sections: what else goes into config.json.
    """

    def __init__(
        self,
        forecaster: Forecaster,
        data: Trajectories,
        valid: Trajectories,
        options: TrainOptions,
        *,
        place: Place,
        reporter: Reporter,
        folder: Path | None = None,
        stop_after: int | None = None,
        tensorboard: bool = False,
        sections: dict[str, Any] | None = None,
    ):
        self.forecaster = forecaster.to(place.device)
        self.valid, self.options, self.place, self.reporter = valid, options, place, reporter
        self.folder, self.stop_after, self.tensorboard, self.sections = folder, stop_after, tensorboard, sections or {}
        self.model = forecaster.model
        self.objective = Objective(
            forecaster, compile=options.compile, surface_weight=options.surface_weight, area=areas(data)
        )
        self.optimiser = make_optimiser(self.model, options)
        self.average = WeightAverage(self.model, options.ema) if options.ema else None
        self.source = BatchSource(
            data,
            batch_size=options.batch_size,
            seed=options.seed,
            workers=options.workers,
            rank=place.rank,
            world=place.world,
        )
        self.progress = Progress()
        self.best_weights: dict[str, Tensor] = {}
        self.last_rate = 0.0

    @property
    def total_steps(self) -> int:
        return self.options.epochs * self.source.batches_per_epoch

    def run(self, *, resume: bool = False) -> Forecaster:
        """Train to the end and leave the best weights in the forecaster."""
        if resume:
            self._resume()
        elif self.folder is not None and self.place.leads:
            save_description(self.folder, self.forecaster, **self.sections)
        self.log = Log(self.folder if self.place.leads else None, progress=self.progress, tensorboard=self.tensorboard)
        wrapped = self.place.wrap(self.objective)
        self.saved_at = time.monotonic()
        self.began_at = self.saved_at - self.progress.seconds
        if self.progress.step == 0:
            self._save("last")  # from the first step on there is something to resume
        devices = [self.place.device] if self.place.device.type == "cuda" else []
        with Interruption() as interruption, torch.random.fork_rng(devices), use(self.options.engine):
            self.reporter.begin(step=self.progress.step, total=self.total_steps)
            try:
                while not self.progress.finished:
                    self._epoch(wrapped, interruption)
            finally:
                self.reporter.end()
        self.model.load_state_dict(self.best_weights)
        return self.forecaster.eval()

    def _epoch(self, objective: nn.Module, interruption: Interruption) -> None:
        epoch = self.progress.epoch
        every = max(1, self.source.batches_per_epoch // STEPS_LOGGED_PER_EPOCH)
        self.forecaster.train()
        for batch in self.source.epoch(epoch, first=self.progress.batch):
            loss, asked = self._step(objective, batch, interruption.asked)
            progress = self.progress
            self.progress = replace(
                progress,
                batch=progress.batch + 1,
                step=progress.step + 1,
                loss_sum=progress.loss_sum + loss * batch.whole,
                loss_count=progress.loss_count + batch.whole,
            )
            step = self.progress.step
            self.reporter.step(step=step, epoch=epoch, loss=loss, rate=self.last_rate)
            if step % every == 0 and self.place.leads:
                self.log.write("step", step=step, epoch=epoch, loss=loss, rate=self.last_rate)
            if asked or step == self.stop_after:
                self._save("last")
                raise TrainingInterrupted(self._where_to_resume())
            if time.monotonic() - self.saved_at >= self.options.save_seconds:
                self._save("last")
        self._finish_epoch(epoch)

    def _step(self, objective: nn.Module, batch: Batch, asked: bool) -> tuple[float, bool]:
        """One optimiser step; the mean loss of the whole batch, and whether any process was asked to stop."""
        options, progress = self.options, self.progress
        torch.manual_seed(step_seed(options.seed, progress.epoch, progress.step, self.place.rank))
        lesson = prepare(
            self.forecaster,
            batch.frames.to(self.place.device),
            batch.samples,
            stage=options.rollout.stage(progress.epoch, options.epochs),
            key=(options.seed, progress.epoch, progress.step),
            noise=options.noise,
            points=options.points,
            walls=options.loss == "volume_surface",
        )
        # DDP averages gradients over processes; weighing by the whole batch makes that the mean over trajectories.
        weight = self.place.world / batch.whole if batch.samples else 0.0
        self.optimiser.zero_grad()
        carry: Carry | None = None
        local = 0.0
        for part in range(len(lesson.parts)):
            with self.place.collecting(objective, last=part + 1 == len(lesson.parts)):
                try:
                    losses, carry = objective(lesson, part, carry)
                except UndampedError:  # a mode that had damping has lost it to a step much too large
                    raise TrainingDiverged(self._what_diverged(float("nan"), float("nan"), batch)) from None
                (losses.sum() * weight).backward()
            local += float64(losses.detach()).sum().item() if batch.samples else 0.0
        total, stop = self.place.total([local, float(asked)])
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        norm = torch.nn.utils.clip_grad_norm_(parameters, options.clip or float("inf")).item()
        loss = total / batch.whole
        if not (np.isfinite(loss) and np.isfinite(norm)):
            raise TrainingDiverged(self._what_diverged(loss, norm, batch))
        factor = rate_factor(progress.step, self.total_steps, schedule=options.schedule, warmup=options.warmup)
        set_rate(self.optimiser, factor)
        self.last_rate = options.learning_rate * factor
        self.optimiser.step()
        if self.average is not None:
            self.average.update(self.model, progress.step + 1)
        return loss, stop > 0

    def _finish_epoch(self, epoch: int) -> None:
        """Evaluate, keep the best, decide whether to go on, save."""
        progress, options = self.progress, self.options
        values = {"train_loss": progress.loss_sum / progress.loss_count}
        last = epoch + 1 == options.epochs
        best = False
        if last or (epoch + 1) % options.evaluate_every == 0:
            values |= self._evaluate()
            best = values[options.monitor] < progress.best or not self.best_weights
            progress = replace(
                progress,
                best=values[options.monitor] if best else progress.best,
                best_epoch=epoch if best else progress.best_epoch,
                stale=0 if best else progress.stale + 1,
            )
        stopped_early = options.patience > 0 and progress.stale >= options.patience
        self.progress = replace(
            progress, epoch=epoch + 1, batch=0, loss_sum=0.0, loss_count=0.0, finished=last or stopped_early
        )
        self.reporter.epoch(epoch=epoch, epochs=options.epochs, values=values, best=best)
        if best:
            self._keep_best()
        if self.place.leads:
            seconds = time.monotonic() - self.began_at
            self.log.write("epoch", step=progress.step, epoch=epoch, **values, best=best, seconds=seconds)
        if best:
            self._save("best")
        if options.keep_every and (epoch + 1) % options.keep_every == 0:
            self._save(f"epoch-{epoch + 1:04d}")
        # Short epochs would otherwise spend their time writing.
        if self.progress.finished or time.monotonic() - self.saved_at >= min(10.0, options.save_seconds):
            self._save("last")

    def _evaluate(self) -> dict[str, float]:
        """Validation errors of the averaged weights if there are any; computed by one process, known to all."""
        values: dict[str, float] = {}
        if self.place.leads:
            if self.average is not None:
                self.average.swap(self.model)
            values = score(self.forecaster, self.valid, batch_size=max(1, self.options.batch_size)).means
            if self.average is not None:
                self.average.swap(self.model)
        self.forecaster.train()
        monitored = self.place.agree(values.get(self.options.monitor, 0.0))
        return values if self.place.leads else {self.options.monitor: monitored}

    def _keep_best(self) -> None:
        if self.average is not None:
            self.average.swap(self.model)
        self.best_weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        if self.average is not None:
            self.average.swap(self.model)
        if self.folder is not None and self.place.leads:
            save_weights(self.folder, self.best_weights)

    def _save(self, name: str) -> None:
        if name == "last":
            self.saved_at = time.monotonic()
        if self.folder is not None and self.place.leads:
            tensors = run_tensors(self.model, self.optimiser, self.average)
            tensors |= {f"best/{key}": value for key, value in self.best_weights.items()} if name == "last" else {}
            progress = replace(self.progress, seconds=time.monotonic() - self.began_at)
            save_checkpoint(self.folder / name, tensors, progress)

    def _resume(self) -> None:
        assert self.folder is not None
        if not has_checkpoint(self.folder / "last"):  # killed before its first step
            return
        tensors, self.progress = load_checkpoint(self.folder / "last")
        try:
            restore(tensors, self.model, self.optimiser, self.average)
        except ValueError as error:
            raise ValueError(f"The checkpoint in {self.folder / 'last'} does not fit this run: {error}.") from None
        self.best_weights = {
            name.removeprefix("best/"): value for name, value in tensors.items() if name.startswith("best/")
        }

    def _where_to_resume(self) -> str:
        done = f"Stopped after step {self.progress.step} of {self.total_steps}"
        return f"{done}; saved in {self.folder}. Go on with --resume." if self.folder else f"{done}."

    def _what_diverged(self, loss: float, norm: float, batch: Batch) -> str:
        broken = [n for n, p in self.model.named_parameters() if p.grad is not None and not p.grad.isfinite().all()]
        kept = f" The last good checkpoint is kept in {self.folder / 'last'}." if self.folder else ""
        return (
            f"Training diverged at step {self.progress.step + 1} (epoch {self.progress.epoch + 1}): loss {loss:g}, "
            f"gradient norm {norm:g}, trajectories {list(batch.samples)}"
            + (f", first bad gradient in {broken[0]}" if broken else "")
            + f".{kept} Lower `learning_rate`, set `clip`, or look at these trajectories with `ssno data inspect`."
        )


def step_seed(*key: int) -> int:
    """A seed for torch's global generator, from which dropout draws."""
    return int(np.random.SeedSequence(list(key)).generate_state(1, np.uint64)[0] >> np.uint64(1))
