"""What PyTorch's launcher (`torchrun`, `ssno train --nproc`) has told this process, read here and nowhere else.

The launcher tells each process its number by environment variables; without them there is one process.
"""

import contextlib
import contextvars
import os
from collections.abc import Iterator

_pieces: contextvars.ContextVar[int] = contextvars.ContextVar("pieces", default=1)


@contextlib.contextmanager
def sharing_fields(pieces: int) -> Iterator[None]:
    """Inside, so many of the processes share each field (`ssno.layers.space`)."""
    token = _pieces.set(pieces)
    try:
        yield
    finally:
        _pieces.reset(token)


def is_launched() -> bool:
    """Whether this process is one of several that were launched together."""
    return "RANK" in os.environ


def is_first() -> bool:
    """Whether this process is the one that talks and writes: the first of several, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def processes() -> int:
    """How many processes, or sets of them that share fields, take trajectories of their own, on all machines."""
    return max(1, int(os.environ.get("WORLD_SIZE", "1")) // _pieces.get()) if is_launched() else 1


def number_here() -> int:
    """Which of the processes on this machine this is."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def processes_here() -> int:
    """How many processes were launched on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
