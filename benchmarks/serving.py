"""Let another process run a benchmark on command, pinned to given cores, perhaps with another Python.

Protocol, line by line: the worker prints `ready`; on `run` it runs once and prints `done`; on `save FILE` it writes its
last answer with numpy and prints `done`; at the end of its input it stops. Only numpy and the standard library are
needed here, since workers may live in an environment without ssno.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def serve(run: Callable[[], np.ndarray]) -> None:
    """The worker's side."""
    answer = run()  # compiles, plans, claims memory
    print("ready", flush=True)
    for line in sys.stdin:
        command, _, file = line.strip().partition(" ")
        if command == "run":
            answer = run()
        elif command == "save":
            np.save(file, answer)
        else:
            raise ValueError(f"A worker knows `run` and `save FILE`, got {line!r}.")
        print("done", flush=True)


class Server:
    """A worker process, started when built. `start` and `finish` may be called apart, so that several work at once."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        python: str = sys.executable,
        cores: Sequence[int] | None = None,
        variables: Mapping[str, str] = ONE_THREAD,
    ):
        self.command = [python, "-m", module, *arguments]
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **variables},
            preexec_fn=None if cores is None else lambda: os.sched_setaffinity(0, cores),
        )
        self._hear("ready")

    def start(self) -> None:
        """Begin a run."""
        self._say("run")

    def finish(self) -> None:
        """Wait until it is done."""
        self._hear("done")

    def run(self) -> None:
        """One run, start to end."""
        self.start()
        self.finish()

    def answer(self) -> np.ndarray:
        """What the last run gave."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "answer.npy"
            self._say(f"save {file}")
            self._hear("done")
            return np.load(file, allow_pickle=False)

    def close(self) -> None:
        """End the process."""
        self.process.__exit__(None, None, None)  # closes the pipes, then waits

    def _say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def _hear(self, expected: str) -> None:
        assert self.process.stdout is not None
        heard = self.process.stdout.readline().strip()
        if heard != expected:
            self.close()
            code = self.process.returncode
            raise RuntimeError(f"{' '.join(self.command)} said {heard!r} instead of {expected!r} (exit code {code}).")
