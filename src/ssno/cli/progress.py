"""How far a long command is: a bar with the time left on a terminal, plain lines elsewhere. Always on stderr."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ssno.base.terminal import Console

Advance = Callable[[float | int, float | int], None]


@contextmanager
def progress(title: str, *, console: Console | None = None, seconds_between_lines: float = 10.0) -> Iterator[Advance]:
    """Yield a function `advance(done, total)` that shows how far the work is."""
    console = Console(stderr=True) if console is None else console
    if not console.is_terminal:
        yield _Lines(title, console, seconds_between_lines)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left:"), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Lines:
    """Prints a line now and then, and one at the end."""

    def __init__(self, title: str, console: Console, seconds: float):
        self.title, self.console, self.seconds = title, console, seconds
        self.start = self.last = time.monotonic()
        self.finished = False

    def __call__(self, done: float | int, total: float | int) -> None:
        now = time.monotonic()
        if self.finished or (done < total and now - self.last < self.seconds) or done <= 0:
            return
        self.last, self.finished = now, done >= total
        left = (now - self.start) * (total - done) / done
        self.console.print(f"{self.title}: {100 * done / total:.0f} %, {left:.0f} s left", highlight=False)
