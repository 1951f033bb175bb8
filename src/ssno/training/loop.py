"""The training loop. A run is a function of its description: kill it anywhere, resume, and it ends bitwise the same.

That holds because nothing lives outside the checkpoint and the description: the learning rate is a function of the
step, the order of trajectories and grids of (seed, epoch), the way of unrolling of the epoch, noise, forced frames and
pieces of trajectories of (seed, epoch, step, sample), dropout of (seed, epoch, step).
"""

import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ssno.base.device import float64
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.scores import score
from ssno.layers.space import MeshShape, WholeFields
from ssno.models.operator import NeuralOperator
from ssno.models.pretrained import save_weights
from ssno.native.engine import Precision, preferred, use
from ssno.runs.checkpoint import (
    BEST,
    CLIMATOLOGY,
    LAST,
    Progress,
    claimed,
    clear,
    epoch_folder,
    has_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from ssno.runs.log import Log, Logger, Reporter, Silent, check_loggers, reporter_for
from ssno.runs.run import record_changes
from ssno.ssm.kernel import UndampedError
from ssno.training.batches import Batch, BatchSource, prepare
from ssno.training.objective import (
    Carry,
    Objective,
    WeightAverage,
    make_optimiser,
    rate_factor,
    restore,
    run_tensors,
    set_rate,
    whole,
    whole_weights,
)
from ssno.training.processes import Interruption, Process, TrainingDiverged, TrainingInterrupted, join_processes
from ssno.training.task import Task

STEPS_LOGGED_PER_EPOCH = 10


class Loop:
    """One run: what is to be trained, and where it writes.

    Args:
        task: the model with its units, on the CPU, its data and options.
        process: which process this is.
        folder: where checkpoints, log and weights go; None keeps everything in memory.
        stop_after: pretend to be interrupted after this many optimiser steps in all.
        stop_at: or at this time.
        loggers: where else than to metrics.jsonl the numbers go (`ssno.runs.log`).
        fsdp: every process holds a shard of each weight, and all of a model for evaluation only.
        gradient_checkpointing: compute spatial blocks again in the backward pass.
    """

    def __init__(
        self,
        task: Task,
        *,
        process: Process,
        reporter: Reporter,
        folder: Path | None = None,
        stop_after: int | None = None,
        stop_at: datetime | None = None,
        loggers: Collection[Logger] = (),
        fsdp: bool = False,
        gradient_checkpointing: bool = False,
    ):
        if stop_after is not None and stop_after < 1:
            raise ValueError(f"`stop_after` must be at least 1, got {stop_after}.")
        self.task, self.valid, self.options = task, task.valid, task.options
        # Forecasts, and with them validation, have the precision of the weights, whatever a step's activations have.
        weights: Precision = "float64" if task.options.precision == "float64" else "float32"
        self.forecaster = task.forecaster.to(process.device).in_precision(weights)
        self.process, self.reporter = process, reporter
        self.folder, self.stop_after, self.stop_at, self.loggers = folder, stop_after, stop_at, loggers
        self.model, options = task.forecaster.model, task.options
        if gradient_checkpointing:
            recompute_blocks(self.model)
        self.fsdp, self.whole = fsdp, self.model
        if fsdp:
            self.whole = self._shard()
        self.objective = Objective(
            task.forecaster,
            compile=options.compile if process.space is None and not fsdp else False,
            surface_weight=options.surface_weight,
            area=task.data.quadrature_weights,
            space=process.space,
        )
        space = process.space
        forecaster = self.forecaster.of(self.whole) if fsdp else self.forecaster
        self.scored = forecaster if space is None else forecaster.of(WholeFields(self.whole, space))
        self.optimiser = make_optimiser(self.model, options)
        self.average = WeightAverage(self.model, options.ema) if options.ema else None
        self.source = BatchSource(
            task.data,
            batch_size=options.batch_size,
            seed=options.seed,
            grids=options.grids,
            buffer=options.shuffle_buffer,
            files=task.files,
            workers=options.num_workers,
            rank=process.data_rank,
            world=process.data_size,
        )
        self.progress = Progress()
        self.best_weights: dict[str, Tensor] = {}
        self.last_rate = 0.0

    @property
    def total_steps(self) -> int:
        return self.options.epochs * self.source.batches_per_epoch

    def rehearse(self) -> None:
        """The gradient of the first batch, for nothing: what cannot be computed is refused before anything is written.

        If it diverges, the run itself will say so, and keep its beginning.
        """
        before = {name: value.clone() for name, value in self.model.state_dict().items()}  # batch norm counts inputs
        self.forecaster.train()
        with self._computing(), suppress(TrainingDiverged):
            self._backward(next(self.source.epoch(0)), self.objective)
        self.optimiser.zero_grad()
        self.model.load_state_dict(before)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """What surrounds steps: random numbers of the run's own, and its engine."""
        devices = [self.process.device] if self.process.device.type == "cuda" else []
        with torch.random.fork_rng(devices), use(preferred(self.options.engine, self.process.device)):
            yield

    def run(self, *, resume: bool = False) -> Forecaster:
        """Train to the end and leave the best weights in the forecaster."""
        if resume and self.folder is not None and has_checkpoint(self.folder / LAST):
            self._resume(self.folder)
        elif self.folder is not None and self.process.is_main:
            self.forecaster.save_config(self.folder, **self.task.sections())
            if self.task.climatology is not None:
                self.task.climatology.write(self.folder / CLIMATOLOGY)
        self.log = Log(
            self.folder if self.process.is_main else None,
            progress=self.progress,
            loggers=self.loggers,
            description=self.task.description,
        )
        self.wrapped = self.process.wrap(self.objective, idle=self._idle_parameters(), sharded=self.fsdp)
        self.saved_at = time.monotonic()
        self.began_at = self.saved_at - self.progress.seconds
        if self.progress.step == 0:
            self._save(LAST)  # from the first step on there is something to resume
        with Interruption(stop_at=self.stop_at) as interruption, self._computing():
            for note in self.task.notes:
                self.reporter.say(note)
            if self.process.space is not None:
                self.reporter.say(self.process.space.describe([axis.name for axis in self.task.data.axes]))
            if self.process.world_size > 1:
                each = self.options.batch_size / self.process.data_size
                among = f"in each of {self.process.data_size} processes"
                among = among if self.process.space is None else f"for every {self.process.pieces} processes"
                self.reporter.say(f"training in batches of {self.options.batch_size} trajectories, {each:g} {among}")
            if self.fsdp:
                self.reporter.say(f"weights, gradients and optimiser state in {self.process.world_size} shards (FSDP2)")
            self.reporter.begin(step=self.progress.step, total=self.total_steps)
            try:
                while not self.progress.finished:
                    self._epoch(interruption)
            finally:
                self.reporter.end()
                self.log.close()
        self.whole.load_state_dict(self.best_weights)
        return (self.forecaster.of(self.whole) if self.fsdp else self.forecaster).eval()

    def _epoch(self, interruption: Interruption) -> None:
        epoch = self.progress.epoch
        every = max(1, self.source.batches_per_epoch // STEPS_LOGGED_PER_EPOCH)
        self.forecaster.train()
        for batch in self.source.epoch(epoch, first=self.progress.batch):
            loss, asked, due = self._step(batch, interruption.asked)
            progress = self.progress
            self.progress = replace(
                progress,
                batch=progress.batch + 1,
                step=progress.step + 1,
                loss_sum=progress.loss_sum + loss * batch.global_size,
                loss_count=progress.loss_count + batch.global_size,
            )
            step = self.progress.step
            self.reporter.step(step=step, epoch=epoch, loss=loss, rate=self.last_rate)
            if step % every == 0 and self.process.is_main:
                self.log.write("step", step=step, epoch=epoch, loss=loss, rate=self.last_rate)
            if asked or step == self.stop_after:
                self._save(LAST)
                raise TrainingInterrupted(self._where_to_resume())
            if due:
                self._save(LAST)
        self._finish_epoch(epoch)

    def _due(self, seconds: float) -> float:
        """1 in the main process if it last saved so long ago, else 0: processes that hold shards save together."""
        return float(self.process.is_main and time.monotonic() - self.saved_at >= seconds)

    def _step(self, batch: Batch, asked: bool) -> tuple[float, bool, bool]:
        """One optimiser step; the mean loss of the whole batch, if any process was asked to stop, and if to save."""
        options, progress = self.options, self.progress
        told = [self._backward(batch, self.wrapped), float(asked), self._due(options.save_seconds)]
        total, stop, due = self.process.total(told)
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        norm = whole(torch.nn.utils.clip_grad_norm_(parameters, options.grad_clip or float("inf"))).item()
        loss = total / batch.global_size
        if not (np.isfinite(loss) and np.isfinite(norm)):
            raise TrainingDiverged(self._what_diverged(loss, norm, batch))
        factor = rate_factor(progress.step, self.total_steps, schedule=options.schedule, warmup=options.warmup)
        set_rate(self.optimiser, factor)
        self.last_rate = options.learning_rate * factor
        self.optimiser.step()
        if self.average is not None:
            self.average.update(self.model, progress.step + 1)
        return loss, stop > 0, due > 0

    def _backward(self, batch: Batch, module: nn.Module) -> float:
        """Leave the gradient of a batch in the parameters; the sum of this process's losses."""
        options, progress = self.options, self.progress
        torch.manual_seed(step_seed(options.seed, progress.epoch, progress.step, self.process.data_rank))
        prepared = prepare(
            self.forecaster,
            batch.frames.to(self.process.device, self.forecaster.dtype),
            batch.samples,
            stage=options.unroll.stage(progress.epoch, options.epochs),
            key=(options.seed, progress.epoch, progress.step),
            noise=options.noise_std,
            mirror=options.reflect,
            spacing=self.source.views[batch.grid].spacing,
            points=options.points_per_step,
            walls=options.loss == "volume_surface",
        )
        if self.process.space is not None:
            prepared = prepared.piece(self.process.space)
        # Averaged over processes, what is weighed by the whole batch becomes the mean over trajectories.
        weight = self.process.world_size / batch.global_size if batch.samples else 0.0
        self.optimiser.zero_grad()
        carry: Carry | None = None
        local = 0.0
        for part in range(len(prepared.parts)):
            collecting = self.process.collecting(module, last=part + 1 == len(prepared.parts))
            with collecting, self.forecaster.at(options.precision):  # also backward, which may compute steps again
                try:
                    losses, carry = module(prepared, part, carry)
                except UndampedError:  # a mode that had damping has lost it to a step much too large
                    raise TrainingDiverged(self._what_diverged(float("nan"), float("nan"), batch)) from None
                (losses.sum() * weight).backward()
            local += float64(losses.detach()).sum().item() if batch.samples else 0.0
        return local / self.process.pieces  # each of them knows the loss of whole fields

    def _finish_epoch(self, epoch: int) -> None:
        """Evaluate, keep the best, decide whether to go on, save."""
        progress, options = self.progress, self.options
        values = {"train_loss": progress.loss_sum / progress.loss_count}
        rates = self.source.reading.rates() if options.num_workers else {}
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
        self.reporter.epoch(epoch=epoch, epochs=options.epochs, values=values | rates, best=best)
        if best:
            self._keep_best()
        if self.process.is_main:
            seconds = time.monotonic() - self.began_at
            self.log.write("epoch", step=progress.step, epoch=epoch, **values, **rates, best=best, seconds=seconds)
        if best:
            self._save(BEST)
        if options.keep_every and (epoch + 1) % options.keep_every == 0:
            self._save(epoch_folder(epoch + 1))
        # Short epochs would otherwise spend their time writing.
        if self.progress.finished or self.process.agree(self._due(min(10.0, options.save_seconds))):
            self._save(LAST)

    def _evaluate(self) -> dict[str, float]:
        """Validation errors of the averaged weights if there are any; computed by the first set, known to all."""
        values: dict[str, float] = {}
        with self._averaged():
            if self.fsdp:
                self.whole.load_state_dict(whole_weights(self.model))
            if self.process.data_rank == 0:
                values = score(self.scored, self.valid, batch_size=max(1, self.options.batch_size)).means
        self.forecaster.train()
        monitored = self.process.agree(values.get(self.options.monitor, 0.0))
        return values if self.process.is_main else {self.options.monitor: monitored}

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Inside, the model has the averaged weights, if there are any."""
        if self.average is not None:
            self.average.swap(self.model)
        yield
        if self.average is not None:
            self.average.swap(self.model)

    def _shard(self) -> nn.Module:
        """Leave a shard of each weight to every process; a model of the same kind with weights of its own."""
        if self.options.optimizer != "adamw":
            raise ValueError(
                f"`fsdp` needs an optimiser of single numbers, but `train.optimizer` is {self.options.optimizer!r}, "
                "which needs whole matrices. Set --train.optimizer adamw."
            )
        self.process.shard(self.model)
        assert isinstance(self.model, NeuralOperator)
        with torch.random.fork_rng(devices=[]):
            other = self.model.config.build().to(self.process.device, self.forecaster.dtype)
        other.space = self.model.space  # type: ignore[assignment]
        return other

    def _keep_best(self) -> None:
        with self._averaged():
            self.best_weights = {name: value.clone() for name, value in whole_weights(self.model).items()}
        if self.folder is not None and self.process.is_main:
            save_weights(self.folder, self.best_weights)

    def _save(self, name: str) -> None:
        if name == LAST:
            self.saved_at = time.monotonic()
        if self.folder is not None and (self.fsdp or self.process.is_main):
            tensors = run_tensors(self.model, self.optimiser, self.average)
        if self.folder is not None and self.process.is_main:
            tensors |= {f"best/{key}": value for key, value in self.best_weights.items()} if name == LAST else {}
            progress = replace(self.progress, seconds=time.monotonic() - self.began_at)
            self.log.sync()
            save_checkpoint(self.folder / name, tensors, progress)

    def _resume(self, folder: Path) -> None:
        tensors, self.progress = load_checkpoint(folder / LAST)
        stopped_early = 0 < self.options.patience <= self.progress.stale
        finished = stopped_early or self.progress.epoch >= self.options.epochs
        if self.stop_after is not None and not finished and self.stop_after <= self.progress.step:
            raise ValueError(
                f"`stop_after` is {self.stop_after}, but the run in {folder} has done {self.progress.step} steps "
                "already. It counts all steps of a run: give a larger number, or leave it out."
            )
        if self.process.is_main:
            for name, (before, now) in record_changes(folder, self.task.description, self.progress).items():
                rate = ": the learning rate follows the new length" if name == "train.epochs" else ""
                self.reporter.say(f"{name} was {before} and is now {now}{rate}")
        self.progress = replace(self.progress, finished=finished)
        try:
            self.best_weights = restore(tensors, self.model, self.optimiser, self.average, self.progress)
        except ValueError as error:
            raise ValueError(f"The checkpoint in {folder / LAST} does not fit this run: {error}.") from None

    def _idle_parameters(self) -> list[str] | None:
        """Names, inside the objective, of parameters that no gradient reaches; None for modules that do not say."""
        if not isinstance(self.model, NeuralOperator):
            return None
        return [f"forecaster.model.{name}" for name in self.model.idle_parameters()]

    def _where_to_resume(self) -> str:
        done = f"Stopped after step {self.progress.step} of {self.total_steps}"
        return f"{done}; saved in {self.folder}. Go on with --resume always." if self.folder else f"{done}."

    def _what_diverged(self, loss: float, norm: float, batch: Batch) -> str:
        broken = [n for n, p in self.model.named_parameters() if p.grad is not None and not p.grad.isfinite().all()]
        kept = f" The last good checkpoint is kept in {self.folder / LAST}." if self.folder else ""
        return (
            f"Training diverged at step {self.progress.step + 1} (epoch {self.progress.epoch + 1}): loss {loss:g}, "
            f"gradient norm {norm:g}, trajectories {list(batch.samples)}"
            + (f", first bad gradient in {broken[0]}" if broken else "")
            + f".{kept} Lower `learning_rate`, set `grad_clip`, or look at these trajectories with `ssno data inspect`."
        )


def recompute_blocks(model: nn.Module) -> None:
    """Compute spatial blocks again in the backward pass, for which their inputs alone are kept."""
    if not isinstance(model, NeuralOperator):
        raise ValueError(f"`gradient_checkpointing` knows models of this library, not {type(model).__name__}.")
    model.spatial_blocks()  # or an error
    model.gradient_checkpointing = True


def step_seed(*key: int) -> int:
    """A seed for torch's global generator, from which dropout draws."""
    return int(np.random.SeedSequence(list(key)).generate_state(1, np.uint64)[0] >> np.uint64(1))


def run_task(
    task: Task,
    *,
    folder: Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    stop_after: int | None = None,
    stop_at: datetime | None = None,
    reporter: Reporter | None = None,
    device: str | torch.device = "auto",
    loggers: Collection[Logger] = (),
    mesh: MeshShape | None = None,
    fsdp: bool = False,
    gradient_checkpointing: bool = False,
) -> Forecaster:
    """Do a training that has been put together. A refused one leaves nothing behind, and an earlier run as it was."""
    check_loggers(loggers)
    with ExitStack() as around:
        process = around.enter_context(join_processes(device)).meshed(mesh, task.forecaster.model, task.data)
        if process.is_main:
            around.enter_context(claimed(folder, resume=resume, overwrite=overwrite))
        if process.space is not None:
            around.enter_context(process.space.inside(task.forecaster.model))
        loop = Loop(
            task,
            process=process,
            reporter=(reporter or reporter_for()) if process.is_main else Silent(),
            folder=folder,
            stop_after=stop_after,
            stop_at=stop_at,
            loggers=loggers,
            fsdp=fsdp,
            gradient_checkpointing=gradient_checkpointing,
        )
        if resume:
            return loop.run(resume=True)
        if folder is not None:
            loop.rehearse()
        place = folder if process.is_main else None
        if place is not None:
            clear(place)
        try:
            return loop.run()
        except (TrainingInterrupted, TrainingDiverged):
            raise
        except Exception:
            if place is not None and loop.progress.step == 0:
                clear(place)
            raise
