"""Compile C or C++ files once, for this machine, and load them.

The library is in the user's cache folder under a name made of everything that determines its content (source, flags,
compiler and the instruction set it targets) and of the content itself:

    ~/.cache/ssno/scan-8b8ba9f98e76bdd1-SHA256.so

So it is rebuilt only when one of them changes, or when the file is incomplete, not this user's or writable by others;
and a home folder shared by different machines has one for each. Without a compiler, or with SSNO_NATIVE=0, there is no
library: callers fall back to PyTorch, after one line in the log.
"""

import ctypes
import hashlib
import logging
import os
import secrets
import shutil
import stat
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import torch

from ssno.base.atomic_write import cache_folder

SWITCH = "SSNO_NATIVE"
FLAGS = ("-O3", "-shared", "-fPIC", "-Wno-psabi")
# No traps and no errno: without these two, loops with a comparison in them (the clamp of an exponential) stay scalar on
# every machine but those with masked vectors. Infinities, NaN and the order of sums are as written.
CPP_FLAGS = ("-std=c++17", "-fno-trapping-math", "-fno-math-errno")
THIS_MACHINE = ("-march=native", "-mcpu=native")  # the second is clang's on ARM
THREADS = ("-fopenmp",)  # Apple's compiler has none
LONGEST_BUILD = 120  # seconds
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

log = logging.getLogger("ssno")


def library(*sources: Path) -> ctypes.CDLL | None:
    """The compiled sources, all C or all C++, with their headers; None if there is no compiler, the build fails, or
    SSNO_NATIVE is 0."""
    return None if os.environ.get(SWITCH) == "0" else _built(sources)


@cache
def _built(sources: tuple[Path, ...]) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(str(build(*sources, compiler=compiler(sources[0].suffix), folder=cache_folder())))
    except (OSError, subprocess.SubprocessError, RuntimeError) as error:  # RuntimeError: no home, so no cache folder
        output = error.stderr if isinstance(error, subprocess.CalledProcessError) else ""
        reason = (output.strip() or str(error)).splitlines()[0]
        log.warning("%s is not compiled, PyTorch does its work: %s", sources[0].name, reason)
        return None


def build(*sources: Path, compiler: str, folder: Path) -> Path:
    """Compile into `folder` unless it is there; two processes may do so at once, and either file is used."""
    machine = first_accepted(compiler, THIS_MACHINE)
    flags = (*FLAGS, *machine)
    if sources[0].suffix == ".cpp":
        flags = (*flags, *CPP_FLAGS, *first_accepted(compiler, THREADS))
    # The macros that a compiler predefines name its version and every instruction set it may use.
    target = _run([compiler, *machine, "-dM", "-E", "-x", "c", os.devnull])
    decides = "\0".join([*(source.read_text(encoding="utf-8") for source in sources), target, *flags])
    name = f"{sources[0].stem}-{hashlib.sha256(decides.encode()).hexdigest()[:16]}-"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    check_folder(folder)
    for found in folder.glob(f"{name}*.so"):
        if is_intact_and_ours(found, content=found.stem.removeprefix(name)):
            return found
    partial = folder / f"{name}{secrets.token_hex(4)}.partial"
    units = [str(source) for source in sources if source.suffix != ".h"]
    try:
        _run([compiler, *flags, *units, "-o", str(partial), "-lm"])
        partial.chmod(0o700)
        with open(partial, "rb") as file:
            os.fsync(file.fileno())
            finished = folder / f"{name}{hashlib.file_digest(file, 'sha256').hexdigest()}.so"
        os.replace(partial, finished)
    finally:
        partial.unlink(missing_ok=True)
    return finished


def check_folder(folder: Path) -> None:
    """Refuse a folder of another user; remove the permission of others to write to one of ours."""
    status = folder.stat()
    if status.st_uid != os.getuid():
        raise PermissionError(
            f"{folder} belongs to another user, so no library in it is loaded. Set XDG_CACHE_HOME to your own folder."
        )
    if status.st_mode & OTHERS_WRITE:
        folder.chmod(stat.S_IMODE(status.st_mode) & ~OTHERS_WRITE)


def is_intact_and_ours(path: Path, *, content: str) -> bool:
    """Whether a library was written by this user, by nobody else since, and has the digest in its name."""
    if not is_ours(path):
        return False
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == content


def is_ours(path: Path) -> bool:
    """Whether a regular file belongs to this user and nobody else may write to it."""
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & OTHERS_WRITE


def first_accepted(compiler: str, choices: tuple[str, ...]) -> tuple[str, ...]:
    """The first of some flags that the compiler accepts, or none."""
    for flag in choices:
        try:
            _run([compiler, flag, "-E", "-x", "c", os.devnull])
        except subprocess.CalledProcessError:
            continue
        return (flag,)
    return ()


def compiler(suffix: str = ".c") -> str:
    """The compiler for sources with this suffix: $CC or `cc` for C, $CXX or `c++` for C++."""
    language, variable, usual = ("C++", "CXX", "c++") if suffix == ".cpp" else ("C", "CC", "cc")
    name = os.environ.get(variable, usual)
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"no {language} compiler ({name!r}) found")
    return found


def _run(command: list[str]) -> str:
    how: dict[str, Any] = {"text": True, "errors": "replace", "timeout": LONGEST_BUILD}
    return subprocess.run(command, check=True, capture_output=True, **how).stdout


# The native library of the fused engine, with PyTorch's own matrix product. Where PyTorch exports none (builds without
# MKL: ARM, macOS), the library uses its own (`product.h`).

SOURCES = tuple(
    Path(__file__).with_name(name)
    for name in (
        "scan.cpp",
        "pointwise.cpp",
        "scan_tiles.cpp",
        "pointwise_tiles.cpp",
        "sampling.cpp",
        "warp.cpp",
        "arithmetic.h",
        "blocks.h",
        "product.h",
        "tiles.h",
    )
)
TILED_KINDS = {torch.float32: 1, torch.bfloat16: 2}
"""Bits of `tiled_kinds`."""


def load() -> ctypes.CDLL | None:
    """The library, ready for calls; None as for `library`."""
    return None if os.environ.get(SWITCH) == "0" else _loaded()


@cache
def _loaded() -> ctypes.CDLL | None:
    found = library(*SOURCES)
    if found is not None:
        bind(found, *matrix_product())
    return found


def tiled(kind: torch.dtype) -> bool:
    """Whether products of this dtype are computed in tiles (`tiles.h`): AVX-512, for bfloat16 AVX512-BF16."""
    found = load()
    return found is not None and bool(found.tiled_kinds() & TILED_KINDS.get(kind, 0))


def matrix_product() -> tuple[Any, Any]:
    """PyTorch's own matrix product and the switch that keeps it on one thread; None for both if either is missing."""
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib", "torch_cpu.dll"):
        path = Path(torch.__file__).parent / "lib" / name
        if path.exists():
            try:
                blas = ctypes.CDLL(str(path))
                return blas.sgemm_, blas.MKL_Set_Num_Threads_Local
            except (OSError, AttributeError) as reason:
                log.info("The fused engine uses its own matrix product, which is slower: %s", reason)
    return None, None


def bind(library: ctypes.CDLL, product: Any, threads: Any) -> None:
    """Pass a matrix product and its switch to the library; without them it uses its own."""
    library.bind(*(None if f is None else ctypes.cast(f, ctypes.c_void_p) for f in (product, threads)))
