"""What a person sees while a model trains: a live bar on a terminal, plain lines elsewhere, nothing if told so."""

import abc
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ssno.base.process_memory import most_held


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
        print(line, file=sys.stderr, flush=True)


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
        self.task = self.bar.add_task("training", total=total, completed=step, numbers="")
        self.bar.start()

    def step(self, *, step: int, epoch: int, loss: float, rate: float) -> None:
        numbers = f"loss {loss:.4f}  rate {rate:.1e}  {most_held() / 2**30:.1f} GiB"
        self.bar.update(self.task, completed=step, numbers=numbers)

    def epoch(self, *, epoch: int, epochs: int, values: dict[str, float], best: bool) -> None:
        self.bar.print(epoch_line(epoch, epochs, values, best))

    def end(self) -> None:
        self.bar.stop()


class Plain(Reporter):
    """Lines without control characters, for log files: one per epoch, and one every half minute in between."""

    def __init__(self, seconds: float = 30.0):
        self.seconds = seconds

    def begin(self, *, step: int, total: int) -> None:
        self.first, self.total = step, total
        self.started = self.spoken = time.monotonic()
        self.say(f"training: step {step} of {total}")

    def step(self, *, step: int, epoch: int, loss: float, rate: float) -> None:
        now = time.monotonic()
        if now - self.spoken >= self.seconds:
            self.spoken = now
            pace = (now - self.started) / (step - self.first)
            left = time.strftime("%H:%M:%S", time.gmtime(pace * (self.total - step)))
            memory = f"{most_held() / 2**30:.1f} GiB"
            self.say(f"step {step} of {self.total}  loss {loss:.4f}  rate {rate:.1e}  {memory}  left {left}")

    def epoch(self, *, epoch: int, epochs: int, values: dict[str, float], best: bool) -> None:
        self.spoken = time.monotonic()
        self.say(epoch_line(epoch, epochs, values, best))

    def end(self) -> None:
        pass


def epoch_line(epoch: int, epochs: int, values: dict[str, float], best: bool) -> str:
    """One line about an epoch; the best so far is marked."""
    numbers = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
    return f"epoch {epoch + 1:>{len(str(epochs))}} of {epochs}  {numbers}{'  best' if best else ''}"


def reporter_for(stream_is_terminal: bool | None = None) -> Reporter:
    """A live bar on a terminal, plain lines elsewhere."""
    terminal = sys.stderr.isatty() if stream_is_terminal is None else stream_is_terminal
    return Live() if terminal else Plain()
