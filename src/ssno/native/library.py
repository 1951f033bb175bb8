"""Build and load the native library, once per machine.

The C++ files beside this one are compiled with the machine's own compiler into the user's cache, under a name made of
their content, the compiler and the flags: a changed source, compiler or machine gets a new library, and two processes
that build at the same time end with the same file. When anything is missing (a compiler, the matrix product that
PyTorch's library usually exports), one line of log says so, and `load` returns None: callers then take plain PyTorch.
"""

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch

logger = logging.getLogger("ssno")

SOURCES = ("scan.cpp", "pointwise.cpp")
HEADERS = ("arithmetic.h",)
FLAGS = ("-std=c++17", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared")


class Unavailable(Exception):
    """The native library cannot be had on this machine; the message says why."""


@functools.cache
def load() -> ctypes.CDLL | None:
    """The library, ready for calls, or None after one line of log."""
    try:
        library = ctypes.CDLL(str(build()))
        bind(library)
    except (Unavailable, OSError) as reason:
        logger.warning("ssno: the fused engine is off, plain PyTorch takes over: %s", reason)
        return None
    return library


def build() -> Path:
    """Compile, unless the same thing was compiled before."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if not compiler:
        raise Unavailable("no C++ compiler (install g++, or set CXX)")
    folder = Path(__file__).parent
    path = cache_folder() / f"ssno-{fingerprint(folder, compiler)}.so"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        fresh = Path(scratch) / path.name
        command = [compiler, *FLAGS, *(str(folder / name) for name in SOURCES), "-o", str(fresh)]
        try:
            outcome = subprocess.run(command, capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{compiler} could not be run: {error}") from error
        if outcome.returncode:
            raise Unavailable(f"{compiler} failed: {outcome.stderr.strip().splitlines()[:1]}")
        os.replace(fresh, path)
    return path


def fingerprint(folder: Path, compiler: str) -> str:
    """What the library depends on, in short."""
    try:
        version = subprocess.run([compiler, "--version"], capture_output=True, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{compiler} could not be run: {error}") from error
    parts = [version, " ".join(FLAGS).encode(), platform.machine().encode(), processor().encode()]
    parts += [(folder / name).read_bytes() for name in (*HEADERS, *SOURCES)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def processor() -> str:
    """The instruction sets of this processor, as far as the system tells: a cache may be shared between machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def cache_folder() -> Path:
    """Where compiled libraries live: the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ssno"


def bind(library: ctypes.CDLL) -> None:
    """Give the library the matrix product that PyTorch uses, and the switch that keeps it on one thread."""
    blas = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    try:
        product, threads = blas.sgemm_, blas.MKL_Set_Num_Threads_Local
    except AttributeError as missing:
        raise Unavailable(f"this PyTorch does not export the matrix product it needs ({missing})") from missing
    library.bind(ctypes.cast(product, ctypes.c_void_p), ctypes.cast(threads, ctypes.c_void_p))
