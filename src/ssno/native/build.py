"""Compile C or C++ files once, for this machine, and load them.

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
FLAGS = ("-O3", "-shared", "-fPIC", "-Wno-psabi")
# No traps and no errno: without these two, loops with a comparison in them (the clamp of an exponential) stay scalar on
# every machine but those with masked vectors. Infinities, NaN and the order of sums are as written.
CPP_FLAGS = ("-std=c++17", "-fno-trapping-math", "-fno-math-errno")
THIS_MACHINE = ("-march=native", "-mcpu=native")  # the second is clang's on ARM
THREADS = ("-fopenmp",)  # Apple's compiler has none
LONGEST_BUILD = 120  # seconds

log = logging.getLogger("ssno")


def library(*sources: Path) -> ctypes.CDLL | None:
    """The compiled sources; None if there is no compiler, the build fails, or SSNO_NATIVE is 0.

    All are C, or all C++. Headers they include are to be given too.
    """
    return None if os.environ.get(SWITCH) == "0" else _built(sources)


@cache
def _built(sources: tuple[Path, ...]) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(str(build(*sources, compiler=compiler(sources[0].suffix), folder=cache_folder())))
    except (OSError, subprocess.SubprocessError, RuntimeError) as error:  # RuntimeError: no home, so no cache folder
        output = getattr(error, "stderr", None) or str(error)
        log.warning("%s is not compiled, PyTorch does its work: %s", sources[0].name, output.strip().splitlines()[0])
        return None


def build(*sources: Path, compiler: str, folder: Path) -> Path:
    """Compile into `folder` unless it is there; two processes may do so at once, the last one's file stays."""
    machine = first_accepted(compiler, THIS_MACHINE)
    flags = (*FLAGS, *machine)
    if sources[0].suffix == ".cpp":
        flags = (*flags, *CPP_FLAGS, *first_accepted(compiler, THREADS))
    # The macros that a compiler predefines name its version and every instruction set it may use.
    target = _run([compiler, *machine, "-dM", "-E", "-x", "c", os.devnull])
    decides = "\0".join([*(source.read_text(encoding="utf-8") for source in sources), target, *flags])
    finished = folder / f"{sources[0].stem}-{hashlib.sha256(decides.encode()).hexdigest()[:16]}.so"
    if not finished.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = finished.with_name(f"{finished.name}.{secrets.token_hex(4)}.partial")
        units = [str(source) for source in sources if source.suffix != ".h"]
        try:
            _run([compiler, *flags, *units, "-o", str(partial), "-lm"])
            os.replace(partial, finished)
        finally:
            partial.unlink(missing_ok=True)
    return finished


def first_accepted(compiler: str, choices: tuple[str, ...]) -> tuple[str, ...]:
    """The first of some flags that the compiler knows, or none."""
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


def cache_folder() -> Path:
    """Where compiled libraries are kept: $XDG_CACHE_HOME/ssno, by default ~/.cache/ssno."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ssno"


def _run(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LONGEST_BUILD).stdout
