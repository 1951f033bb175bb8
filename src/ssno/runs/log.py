"""The log of a run: one JSON object per line in metrics.jsonl.

    {"kind": "step", "step": 120, "epoch": 3, "loss": 0.031, "rate": 0.0012}
    {"kind": "epoch", "step": 128, "epoch": 3, "train_loss": 0.034, "rel_l2": 0.41, ..., "seconds": 52.1}

A resumed run first drops the lines that were written after its checkpoint, so the log of an interrupted run equals that
of an uninterrupted one, seconds apart.
"""

import hashlib
import importlib
import math
import os
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar

from ssno.base import DocumentError, byte_size, from_text, read_regular, to_text, write_whole
from ssno.base.atomic_write import sync_folder
from ssno.base.formatting import printable
from ssno.base.memory import most_held
from ssno.base.terminal import Console
from ssno.runs.checkpoint import BOARD, LOG, Progress

Logger = Literal["tensorboard", "wandb"]
LIBRARIES: dict[str, tuple[str, str]] = {
    "tensorboard": ("TensorBoard", "torch.utils.tensorboard"),
    "wandb": ("wandb", "wandb"),
}
LARGEST = 2**30
"""Bytes of a log that are read at most."""
MOST = 2**63
"""No count of ours is larger, and numbers beyond the range of floats cannot be drawn."""


class Log:
    """Appends to metrics.jsonl, and to the `loggers` asked for; without a folder, does nothing.

    `description` is what a logger shows beside the numbers: the options of the run.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        progress: Progress,
        loggers: Collection[Logger] = (),
        description: Mapping[str, Any] | None = None,
    ):
        check_loggers(loggers)
        self.path = None if folder is None else folder / LOG
        step = progress.step
        self.board = open_board(folder / BOARD, step) if folder and "tensorboard" in loggers else None
        self.wandb = open_wandb(folder, description or {}) if folder and "wandb" in loggers else None
        if self.path is not None and self.path.exists():
            kept = [line for line in read_lines(self.path) if known_at(progress, line)]
            write_whole(self.path, "".join(to_text(line) + "\n" for line in kept).encode())

    def write(self, kind: str, *, step: int, **values: Any) -> None:
        """Log values of one step or epoch."""
        if self.path is not None:
            with open(self.path, "a", encoding="utf-8", opener=_open_itself) as file:
                file.write(to_text({"kind": kind, "step": step, **values}) + "\n")
        if self.board is not None:
            for name, value in values.items():
                if isinstance(value, float):
                    self.board.add_scalar(f"{kind}/{name}", value, step)
            self.board.flush()
        if self.wandb is not None:
            numbers = {f"{kind}/{name}": value for name, value in values.items() if isinstance(value, float)}
            self.wandb.log(numbers, step=step)

    def sync(self) -> None:
        """Put it on the disk: a checkpoint must not know of steps that the log lost in a power cut."""
        if self.path is not None and self.path.exists():
            with open(self.path, "rb") as file:
                os.fsync(file.fileno())
            sync_folder(self.path.parent)

    def close(self) -> None:
        """Tell loggers that the run ends here; a resumed one opens them again."""
        if self.board is not None:
            self.board.close()
        if self.wandb is not None:
            self.wandb.finish()


def _open_itself(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def check_loggers(loggers: Collection[Logger]) -> None:
    """Refuse loggers that there are not, or whose library is not installed."""
    for name in loggers:
        if name not in get_args(Logger):
            raise ValueError(f"`loggers` may name {', '.join(get_args(Logger))}, got {name!r}.")
        called, module = LIBRARIES[name]
        try:
            importlib.import_module(module)
        except ImportError:
            raise ImportError(f"{called} is not installed. Install it with: pip install 'ssno[{name}]'") from None


def known_at(progress: Progress, line: dict[str, Any]) -> bool:
    """Whether a line was written before a checkpoint of this progress: its step was taken, its epoch ended."""
    return bool(line["step"] <= progress.step and (line["kind"] == "step" or line["epoch"] < progress.epoch))


def open_board(folder: Path, step: int) -> Any:
    """TensorBoard's writer; steps after `step` of an interrupted run are hidden from view."""
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(folder, purge_step=step + 1 if step else None)


def open_wandb(folder: Path, description: Mapping[str, Any]) -> Any:
    """A run of Weights & Biases named after the folder, which a resumed training continues; files go to the folder.

    Project, entity and offline mode are wandb's own settings (WANDB_PROJECT, WANDB_ENTITY, WANDB_MODE).
    """
    import wandb

    place = folder.resolve()
    identity = hashlib.sha256(str(place).encode()).hexdigest()[:8]
    return wandb.init(
        dir=str(folder), name=place.name, id=f"{place.name}-{identity}", resume="allow", config=dict(description)
    )


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The log of a run folder; nothing if the run ended before its first line."""
    return read_lines(folder / LOG) if (folder / LOG).exists() else []


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; a last line cut short by a kill is left out, damage elsewhere is refused."""
    lines: list[dict[str, Any]] = []
    texts = read_regular(path, limit=LARGEST).splitlines()
    for place, text in enumerate(texts, start=1):
        try:
            line = from_text(text)
            whole = isinstance(line, dict) and isinstance(line.get("kind"), str)
            whole = whole and all(isinstance(line.get(name), int) for name in ("step", "epoch"))
            whole = whole and not any(isinstance(value, int) and abs(value) > MOST for value in line.values())
        except ValueError:
            whole = False
        if whole:
            lines.append({name: math.inf if value is None else value for name, value in line.items()})
        elif place < len(texts):
            raise DocumentError(f"Line {place} of {path} is damaged. Delete that line; the rest of the log is kept.")
    return lines


# What a person sees while a model trains: a live bar on a terminal, plain lines elsewhere, nothing if told so.


class Reporter:
    """Told about the run by the loop. This one leaves all but remarks unsaid."""

    def begin(self, *, step: int, total: int) -> None:
        """The run starts (or goes on) at `step` of `total`."""

    def step(self, *, step: int, epoch: int, loss: float, rate: float) -> None:
        """An optimiser step is done."""

    def epoch(self, *, epoch: int, epochs: int, values: dict[str, float], best: bool) -> None:
        """An epoch is done and evaluated."""

    def end(self) -> None:
        """The run ends, however it does."""

    def say(self, line: str) -> None:
        """Something worth knowing once, outside the course of the run."""
        print(printable(line), file=sys.stderr, flush=True)


class Pace:
    """How fast a run goes, from where it started or went on: seconds of an epoch, and what is left."""

    def __init__(self, step: int, total: int):
        self.first = self.step = step
        self.total = total
        self.started = self.epoch_started = time.monotonic()

    def left(self) -> str:
        """Hours, minutes and seconds to the end at the mean pace so far."""
        seconds = (time.monotonic() - self.started) / max(1, self.step - self.first) * (self.total - self.step)
        return f"{int(seconds) // 3600:02d}:{int(seconds) // 60 % 60:02d}:{int(seconds) % 60:02d}"

    def epoch(self) -> str:
        """Seconds of the epoch that ends now, its evaluation included, and the time left."""
        now = time.monotonic()
        spent, self.epoch_started = now - self.epoch_started, now
        return f"{spent:.1f} s" + (f"  left {self.left()}" if self.step < self.total else "")


class Silent(Reporter):
    """Says nothing."""

    def say(self, line: str) -> None:
        pass


class Live(Reporter):
    """A progress bar with loss, learning rate, time left and memory; one line per epoch stays on the screen."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console(stderr=True)
        self.bar = ProgressBar(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
        )

    def begin(self, *, step: int, total: int) -> None:
        self.pace = Pace(step, total)
        self.task = self.bar.add_task("training", total=total, completed=step, numbers="")
        self.bar.start()

    def step(self, *, step: int, epoch: int, loss: float, rate: float) -> None:
        self.pace.step = step
        numbers = f"loss {loss:.4f}  rate {rate:.1e}  {byte_size(most_held())}"
        self.bar.update(self.task, completed=step, numbers=numbers)

    def epoch(self, *, epoch: int, epochs: int, values: dict[str, float], best: bool) -> None:
        self.bar.print(epoch_line(epoch, epochs, values, best, self.pace.epoch()))

    def end(self) -> None:
        self.bar.stop()


class Plain(Reporter):
    """Lines without control characters, for log files: one per epoch, and one every half minute in between."""

    def __init__(self, seconds: float = 30.0):
        self.seconds = seconds

    def begin(self, *, step: int, total: int) -> None:
        self.pace, self.spoken = Pace(step, total), time.monotonic()
        self.say(f"training: step {step} of {total}")

    def step(self, *, step: int, epoch: int, loss: float, rate: float) -> None:
        self.pace.step = step
        if time.monotonic() - self.spoken >= self.seconds:
            self.spoken = time.monotonic()
            numbers = f"loss {loss:.4f}  rate {rate:.1e}  {byte_size(most_held())}"
            self.say(f"step {step} of {self.pace.total}  {numbers}  left {self.pace.left()}")

    def epoch(self, *, epoch: int, epochs: int, values: dict[str, float], best: bool) -> None:
        self.spoken = time.monotonic()
        self.say(epoch_line(epoch, epochs, values, best, self.pace.epoch()))


def epoch_line(epoch: int, epochs: int, values: dict[str, float], best: bool, pace: str) -> str:
    """One line about an epoch, with its pace; the best so far is marked."""
    numbers = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
    return f"epoch {epoch + 1:>{len(str(epochs))}} of {epochs}  {numbers}  {pace}{'  best' if best else ''}"


def reporter_for() -> Reporter:
    """A live bar on a terminal, plain lines elsewhere."""
    return Live() if sys.stderr.isatty() else Plain()
