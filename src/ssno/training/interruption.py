"""Stopping early without losing anything: Ctrl-C, SIGTERM and a set time let the current batch finish.

The first signal sets a flag that the loop looks at after each batch; a second one, later than a launcher would take to
pass the first one on again, interrupts at once.
"""

import signal
import threading
import time
from datetime import datetime
from types import FrameType, TracebackType
from typing import Any

EXIT_INTERRUPTED = 75
"""Exit code of a run that was interrupted and saved: start it again with `--resume always`."""
EXIT_DIVERGED = 3
"""Exit code of a run that met a non-finite loss or gradient."""


ECHO_SECONDS = 2.0
"""Under torchrun, Ctrl-C comes from the terminal and again from the launcher."""


class TrainingInterrupted(Exception):
    """A signal asked the run to stop; it is saved and can be resumed."""


class TrainingDiverged(RuntimeError):
    """A loss or gradient is not finite; the last good checkpoint is kept."""


class Interruption:
    """Inside this context, SIGINT and SIGTERM set `asked` instead of ending the process; so does the time `stop_at`."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, *, stop_at: datetime | None = None) -> None:
        self.stop_at = stop_at
        self.signalled = False
        self.asked_at = 0.0
        self._previous: dict[signal.Signals, Any] = {}

    @property
    def asked(self) -> bool:
        """Whether to stop after this batch."""
        return self.signalled or (self.stop_at is not None and datetime.now() >= self.stop_at)

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():  # elsewhere Python allows no handlers
            self._previous = {number: signal.signal(number, self._ask) for number in self.SIGNALS}
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.signalled and time.monotonic() - self.asked_at >= ECHO_SECONDS:
            raise KeyboardInterrupt
        if not self.signalled:
            self.signalled, self.asked_at = True, time.monotonic()
