"""What PyTorch's launcher (`torchrun`, `ssno train --nproc`) has told this process, read here and nowhere else.

The launcher tells each process its number by environment variables; without them there is one process.
"""

import os


def is_launched() -> bool:
    """Whether this process is one of several that were launched together."""
    return "RANK" in os.environ


def is_first() -> bool:
    """Whether this process is the one that talks and writes: the first of several, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def processes() -> int:
    """How many processes were launched together, on all machines."""
    return int(os.environ.get("WORLD_SIZE", "1")) if is_launched() else 1


def number_here() -> int:
    """Which of the processes on this machine this is."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def processes_here() -> int:
    """How many processes were launched on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
