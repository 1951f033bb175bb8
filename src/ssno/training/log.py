"""What a person sees while a model trains: a live bar on a terminal, plain lines elsewhere, nothing if told so."""

import abc
import sys
import time

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ssno.base import byte_size
from ssno.base.formatting import printable
from ssno.base.memory import most_held
from ssno.base.terminal import Console


class Reporter(abc.ABC):
    """Told about the run by the loop."""

    @abc.abstractmethod
    def begin(self, *, step: int, total: int) -> None:
        """The run starts (or goes on) at `step` of `total`."""

    @abc.abstractmethod
    def step(self, *, step: int, epoch: int, loss: float, rate: float) -> None:
        """An optimiser step is done."""

    @abc.abstractmethod
    def epoch(self, *, epoch: int, epochs: int, values: dict[str, float], best: bool) -> None:
        """An epoch is done and evaluated."""

    @abc.abstractmethod
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

    def begin(self, *, step: int, total: int) -> None:
        pass

    def step(self, *, step: int, epoch: int, loss: float, rate: float) -> None:
        pass

    def epoch(self, *, epoch: int, epochs: int, values: dict[str, float], best: bool) -> None:
        pass

    def end(self) -> None:
        pass

    def say(self, line: str) -> None:
        pass


class Live(Reporter):
    """A progress bar with loss, learning rate, time left and memory; one line per epoch stays on the screen."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console(stderr=True)
        self.bar = Progress(
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

    def end(self) -> None:
        pass


def epoch_line(epoch: int, epochs: int, values: dict[str, float], best: bool, pace: str) -> str:
    """One line about an epoch, with its pace; the best so far is marked."""
    numbers = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
    return f"epoch {epoch + 1:>{len(str(epochs))}} of {epochs}  {numbers}  {pace}{'  best' if best else ''}"


def reporter_for() -> Reporter:
    """A live bar on a terminal, plain lines elsewhere."""
    return Live() if sys.stderr.isatty() else Plain()
