"""Memory as the operating system counts it: what this process holds and held, what is free, what there is. In bytes."""

import os
import resource
import sys
from pathlib import Path


def most_held() -> int:
    """The most memory this process has held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def held() -> int:
    """Memory this process holds now; the most it has held where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return most_held()
    return pages * os.sysconf("SC_PAGE_SIZE")


def physical_memory() -> int:
    """All that the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def free_memory() -> int:
    """What new processes can have without swapping; all there is where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return physical_memory()
