"""What the libraries do that open foreign files: the system calls of whole processes, noted by strace.

python -m verify.system_calls NUMBER FOLDER      opens one file of the corpus; started by a trial, under strace
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

from verify import crafted, hostile
from verify.campaign import Counts, Unavailable

BEGIN = "/ssno-verify-begins-here"
KINDS = ("burgers.hdf5", "plain.mat", "three.nc", "packed.npz", "tensors.pt", "exported.onnx", "run/model.safetensors")
CALLS = "open,openat,creat,execve,connect,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,link,symlink,chmod"
LINE = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+)")
KNOWN = (
    "/proc",
    "/sys",
    "/dev/null",
    "/dev/urandom",
    "/dev/shm",
    "/etc/",
    "/usr/",
    "/lib",
    sys.base_prefix,
    str(Path(tempfile.gettempdir(), "torch")),
)


@cache
def numbers() -> list[int]:
    """Those of the corpus that libraries in C open."""
    return [number for number, (kind, _) in enumerate(crafted.corpus()) if kind in KINDS]


def trial(number: int, place: Path) -> Counts:
    """One file, opened by a process that strace watches."""
    if shutil.which("strace") is None:
        raise Unavailable("strace is not installed")
    noted, inside = place / "calls", place / "inside"
    inside.mkdir()
    words = ["strace", "-f", "-qq", "-s", "4096", "-e", f"trace={CALLS}", "-o", str(noted)]
    words += [sys.executable, "-m", "verify.system_calls", str(numbers()[number]), str(inside)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, f"{crafted.corpus()[numbers()[number]]}: {done.stderr[-500:]}"
    calls = noted.read_text(errors="replace").partition(BEGIN)[2]
    bad = [line for line in calls.splitlines() if offence(line, inside)]
    assert not bad, f"{crafted.corpus()[numbers()[number]]}: {bad[:3]}"
    return Counter({"system calls": len(calls.splitlines())})


def offence(line: str, place: Path) -> bool:
    """Whether a call does what no file may ask for. Calls that failed did nothing."""
    found = LINE.search(line)
    if found is None or int(found[3]) < 0:
        return False
    call, arguments = found[1], found[2]
    if call == "connect":
        return "AF_UNIX" not in arguments
    paths = re.findall(r'"([^"]*)"', arguments)
    if call == "execve":
        return os.path.realpath(paths[0]) != os.path.realpath(sys.executable)
    full = [os.path.realpath(path if path.startswith("/") else place / path) for path in paths]
    if call in ("open", "openat", "creat") and not re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", arguments):
        allowed = (str(place.resolve()), *hostile.SAFE, *KNOWN, str(hostile.originals().resolve()))
        return not all(path.startswith(allowed) for path in full)
    return not all(path.startswith((str(place.resolve()), "/dev/null", "/dev/shm", "/proc")) for path in full)


def main(number: int, place: Path) -> None:
    """Open one file; everything is imported, then the mark, then the file."""
    hostile.prepare()
    try:
        open(BEGIN).close()
    except FileNotFoundError:
        crafted.trial(number, place)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
