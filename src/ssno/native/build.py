"""Compile a C file once, for this machine, and load it.

The library lies in the user's cache folder under a name made of everything that decides its content: source, flags,
compiler and the instruction set it targets. So it is built again only when one of them changes, and a home folder
shared by different machines holds one for each. Without a compiler, or with SSNO_NATIVE=0, there is no library: callers
fall back to PyTorch, and one line in the log says so.
"""

import ctypes
import hashlib
import logging
import os
import secrets
import shutil
import subprocess
from functools import cache
from pathlib import Path

SWITCH = "SSNO_NATIVE"
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-Wno-psabi")
LONGEST_BUILD = 120  # seconds

log = logging.getLogger("ssno")


def library(source: Path) -> ctypes.CDLL | None:
    """The compiled `source`; None if there is no compiler, the build fails, or SSNO_NATIVE is 0."""
    return None if os.environ.get(SWITCH) == "0" else _built(source)


@cache
def _built(source: Path) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(str(build(source, compiler=compiler(), folder=cache_folder())))
    except (OSError, subprocess.SubprocessError) as error:
        output = getattr(error, "stderr", None) or str(error)
        log.warning("%s is not compiled, PyTorch does its work: %s", source.name, output.strip().splitlines()[0])
        return None


def build(source: Path, *, compiler: str, folder: Path) -> Path:
    """Compile into `folder` unless it is there; two processes may do so at once, the last one's file stays."""
    # The macros that a compiler predefines name its version and every instruction set it may use.
    target = _run([compiler, "-march=native", "-dM", "-E", "-x", "c", os.devnull])
    decides = "\0".join([source.read_text(encoding="utf-8"), target, *FLAGS])
    finished = folder / f"{source.stem}-{hashlib.sha256(decides.encode()).hexdigest()[:16]}.so"
    if not finished.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = finished.with_name(f"{finished.name}.{secrets.token_hex(4)}.partial")
        try:
            _run([compiler, *FLAGS, str(source), "-o", str(partial), "-lm"])
            os.replace(partial, finished)
        finally:
            partial.unlink(missing_ok=True)
    return finished


def compiler() -> str:
    """The C compiler: $CC, or `cc`."""
    name = os.environ.get("CC", "cc")
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"no C compiler ({name!r}) found")
    return found


def cache_folder() -> Path:
    """Where compiled libraries are kept: $XDG_CACHE_HOME/ssno, by default ~/.cache/ssno."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ssno"


def _run(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LONGEST_BUILD).stdout
