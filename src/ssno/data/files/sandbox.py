"""Let a child process open foreign files, with limited memory and time.

HDF5 is a C library, and a damaged or hostile file can crash it, make it loop or ask for all memory; others do the same.
So files are first opened by a child (`ssno.data.files.examine.child`), which is started once and kept: its crash is our
`DataError`. Formats that other libraries decode (MATLAB, CSV, VTK's XML, Zarr) are read by the child, too, which sends
their numbers (`read_by_child`).
"""

import atexit
import json
import os
import subprocess
import sys
import threading
from functools import lru_cache
from math import prod
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import numpy as np

from ssno.data.errors import DataError
from ssno.data.files.arrays import Stamp
from ssno.data.files.examine.report import Record

TIME_LIMIT = 60.0  # seconds of waiting: a slow disk is no damage
COMPUTING = 4  # seconds of computing
MEMORY = 2**30  # bytes that the child may take
SPEED = 16 * 2**20  # bytes that any decoding goes through in a second
COPIES = 6  # of what it goes through: as text, as bytes, as numbers
OUT_OF_SECONDS = 24  # SIGXCPU
# The child needs no torch, so it must not run ssno/__init__.py: it gets an empty package with the same path.
BOOT = """
import sys, types
for name in ("ssno", "ssno.base", "ssno.data", "ssno.data.files"):
    path = "/".join([sys.argv[1], *name.split(".")[1:]])
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
from ssno.data.files.examine.child import main
main()
"""


def ask(
    stamp: Stamp,
    request: Record,
    *,
    work: int = 0,
    memory: int = MEMORY,
    most: int = 0,
    time_limit: float = TIME_LIMIT,
) -> tuple[Record, np.ndarray]:
    """What the child says about a file, and up to `most` bytes that it sends. Raises `DataError`.

    It may compute for 5 s and take 1 GiB, and for longer where it has `work` bytes to go through.
    """
    limits = {"seconds": COMPUTING + work // SPEED, "memory": memory}
    time_limit += work // SPEED
    answer, data = _child().ask({"path": str(stamp.path), **request, **limits}, most=most, time_limit=time_limit)
    if "missing" in answer:
        raise ImportError(answer["missing"])
    if "sentence" in answer:
        raise DataError(answer["sentence"].replace(str(stamp.path), str(stamp.shown)))
    if "error" in answer:
        raise DataError(f"{stamp.shown} {answer['error']}.")
    return answer, data


def read_by_child(stamp: Stamp, request: Record, *, work: int, size: int, most: int) -> dict[str, np.ndarray]:
    """Arrays that the child decodes from `size` bytes and sends: at most `most` bytes, whatever the file says."""
    answer, data = ask(stamp, request, work=work, memory=MEMORY + COPIES * size, most=most)
    found, start = {}, 0
    for name, shape, dtype in answer["arrays"]:
        end = start + prod(shape) * np.dtype(dtype).itemsize
        found[name], start = data[start:end].view(dtype).reshape(shape), end
    return found


class Child:
    """The examining process of this process: started when first asked, replaced when it dies."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.owner = 0
        self.lock = threading.Lock()

    def ask(self, request: Record, *, most: int = 0, time_limit: float) -> tuple[Record, np.ndarray]:
        """Send one request and wait for its answer; a crash or a silence becomes a `DataError`."""
        with self.lock:
            process = self._running()
            assert process.stdin is not None
            answers: Queue[tuple[Record, np.ndarray] | None] = Queue()
            try:
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                threading.Thread(target=lambda: answers.put(_answer(process.stdout, most)), daemon=True).start()
                answer = answers.get(timeout=time_limit)
            except (Empty, BrokenPipeError):
                self.stop()
                raise DataError(
                    f"{request['path']} could not be examined within {time_limit:g} s: it is damaged, or on a very "
                    "slow disk."
                ) from None
            if answer is None:
                code = process.wait()
                self.stop()
                what = (
                    f"kept the library that reads it busy for more than {request['seconds']} s"
                    if code == -OUT_OF_SECONDS
                    else f"crashed the library that reads it (exit code {code})"
                )
                raise DataError(f"{request['path']} {what}: it is damaged or hostile.")
            if answer[0].get("bytes", 0) > most:  # which are still to come
                self.stop()
            return answer

    def stop(self) -> None:
        """End the process, if there is one."""
        process, self.process = self.process, None
        if process is not None and self.owner == os.getpid():
            process.kill()
            process.communicate()

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.owner != os.getpid() or self.process.poll() is not None:
            self.stop()
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", BOOT, str(Path(__file__).parents[2])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
            self.owner = os.getpid()
        return self.process


def _answer(stream: Any, most: int) -> tuple[Record, np.ndarray] | None:
    """A line, and as many bytes as it announces; None if the process that wrote them has ended."""
    if not (line := stream.readline()):
        return None
    answer = json.loads(line)
    if (size := answer.get("bytes", 0)) > most:
        why = f"becomes {size} bytes, more than the {most} that are expected of it"
        return {"error": why, "bytes": size}, np.empty(0, np.uint8)
    data = np.empty(size, np.uint8)
    return (answer, data) if stream.readinto(data) == size else None


@lru_cache(maxsize=1)
def _child() -> Child:
    child = Child()
    atexit.register(child.stop)
    return child
