"""Stopping early without losing anything: Ctrl-C and SIGTERM let the current batch finish.

The first signal sets a flag that the loop looks at after each batch; a second one interrupts at once.
"""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

EXIT_INTERRUPTED = 75
"""Exit code of a run that was interrupted and saved: start it again with `--resume`."""
EXIT_DIVERGED = 3
"""Exit code of a run that met a non-finite loss or gradient."""


class TrainingInterrupted(Exception):
    """A signal asked the run to stop; it is saved and can be resumed."""


class TrainingDiverged(RuntimeError):
    """A loss or gradient is not finite; the last good checkpoint is kept."""


class Interruption:
    """Inside this context, SIGINT and SIGTERM set `asked` instead of ending the process."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.asked = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():  # elsewhere Python allows no handlers
            self._previous = {number: signal.signal(number, self._ask) for number in self.SIGNALS}
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
