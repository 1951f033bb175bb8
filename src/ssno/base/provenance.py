"""Where data come from: versions, commit and hardware, as they go into manifests."""

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@cache
def provenance() -> dict[str, str | int]:
    """Versions, commit and hardware of this process."""
    import h5py  # here, so that the command line starts without the numerical libraries
    import numpy as np
    import torch

    return {
        "ssno": package_version(),
        "commit": source_commit(Path(__file__)),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "h5py": h5py.__version__,
        "hdf5": h5py.version.hdf5_version,
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor_name(),
        "cores": available_cores(),
    }


def package_version() -> str:
    """The installed version of ssno; "unknown" if it runs from its source without being installed."""
    try:
        return version("ssno")
    except PackageNotFoundError:
        return "unknown"


def source_commit(file: Path) -> str:
    """The commit of the checkout that `file` belongs to, "-dirty" if changed since; "unknown" if it is in none.

    An installed package may sit inside somebody else's repository, so the file itself must be tracked.
    """

    def git(*arguments: str) -> str:
        # No locks: looking at a repository must not get in the way of those who work in it.
        command = ["git", "--no-optional-locks", "-C", str(file.parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", file.name)
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def processor_name() -> str:
    """The processor's model as the system names it, else its architecture."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def available_cores() -> int:
    """Cores this process may use, which a job scheduler may have limited."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
