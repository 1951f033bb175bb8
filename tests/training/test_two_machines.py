"""Two machines train together: two network namespaces joined by a cable. One is lost, comes back, and nothing is."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from ssno.runs.checkpoint import has_checkpoint, load_checkpoint, read_progress
from ssno.runs.log import read_log

RANK = Path(__file__).parents[2] / "examples" / "slurm" / "rank.sh"
WORDS = "train waves.npy --data.axes batch,time,x --model ssno:tiny --train.batch-size 6 --train.evaluate-every 150"
WORDS += " --train.epochs 150 --train.save-seconds 0 --train.optimizer adamw"  # SOAP would enlarge the last bits
PORT = 29417


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Machine:
    """A network namespace with one end of a cable, and what runs there."""

    def __init__(self, number: int, place: Path):
        self.name, self.address, self.place = f"ssno{os.getpid()}-{number}", f"10.231.77.{number + 1}", place
        self.number = number
        self.launcher: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Run torchrun here, in a session of its own."""
        launch = f"--nnodes 1:2 --nproc-per-node 1 --max-restarts 5 --rdzv-id 17 --local-addr {self.address}"
        launch += f" --rdzv-backend c10d --rdzv-endpoint 10.231.77.1:{PORT}"
        launch += f" --rdzv-conf last_call_timeout=3,is_host={self.number == 0}"
        command = [sys.executable, "-m", "torch.distributed.run", *launch.split(), "--no-python", "bash", str(RANK)]
        environment = {"RANKS": str(self.place / "ranks"), "PATH": f"{self.place / 'bin'}:{os.environ['PATH']}"}
        environment["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # examples/slurm/four-nodes.slurm says why
        with open(self.place / f"{self.name}.txt", "ab") as told:
            self.launcher = subprocess.Popen(
                ["ip", "netns", "exec", self.name, *command, *WORDS.split(), "--name", "two", "--resume", "auto"],
                cwd=self.place,
                env={**os.environ, **environment, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "cable"},
                stdout=told,
                stderr=told,
                start_new_session=True,
            )

    def lose(self) -> None:
        """End everything that runs here, without a word."""
        found = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True, check=True)
        for number in found.stdout.split():
            os.kill(int(number), signal.SIGKILL)
        if self.launcher is not None:
            self.launcher.wait()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Machine]]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    x, t, phase = np.arange(16) / 16, np.arange(6) / 6, np.random.default_rng(0).random((30, 1, 1))
    np.save(tmp_path / "waves.npy", np.sin(2 * np.pi * (x - t[:, None] + phase)).astype(np.float32))
    (tmp_path / "ranks").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ssno").write_text(f'#!/bin/bash\nexec {sys.executable} -m ssno "$@"\n')
    (tmp_path / "bin" / "ssno").chmod(0o755)
    both = [Machine(number, tmp_path) for number in range(2)]
    try:
        for machine in both:
            ip("netns", "add", machine.name)
            ip("-n", machine.name, "link", "set", "lo", "up")
        ends = ["link", "add", "cable", "netns", both[0].name, "type", "veth", "peer", "name", "cable", "netns"]
        ip(*ends, both[1].name)
        for machine in both:
            ip("-n", machine.name, "address", "add", f"{machine.address}/24", "dev", "cable")
            ip("-n", machine.name, "link", "set", "cable", "up")
        yield both
    finally:
        for machine in both:
            machine.lose()
            ip("netns", "delete", machine.name)


def until(true: Callable[[], bool], *, seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.1)


@pytest.mark.verify
def test_a_lost_machine_comes_back_and_the_run_ends_as_if_it_had_not_gone(machines, tmp_path) -> None:
    second = machines[1]
    last = tmp_path / "runs" / "two" / "last"

    def reached(step: int) -> bool:
        return has_checkpoint(last) and read_progress(last).step >= step

    def started(rank: int) -> int:
        log = tmp_path / "ranks" / f"rank-{rank:03d}.log"
        return log.read_text().count(" of 2 on ") if log.exists() else 0

    for machine in machines:
        machine.start()
    until(lambda: reached(5))
    assert started(0) == 1
    assert started(1) == 1
    second.lose()
    at = read_progress(last).step
    until(lambda: reached(at + 5))  # the first one goes on alone from the checkpoint
    assert "rank 0: exit code 1\n" in (tmp_path / "ranks" / "rank-000.log").read_text()  # it says that one is lost
    together = started(0)
    second.start()
    until(lambda: started(0) > together or read_progress(last).finished)
    assert [machine.launcher.wait(600) for machine in machines] == [0, 0]
    assert started(0) > together, "the run ended before they met again"
    for rank in range(2):
        assert (tmp_path / "ranks" / f"rank-{rank:03d}.log").read_text().splitlines()[-1].endswith("exit code 0")
    one = [sys.executable, "-m", "ssno", *WORDS.split(), "--name", "one"]
    subprocess.run(one, cwd=tmp_path, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    alone, both = (
        [line["loss"] for line in read_log(tmp_path / "runs" / name) if line["kind"] == "step"]
        for name in ("one", "two")
    )
    assert load_checkpoint(last)[1].finished
    assert len(both) == len(alone)
    np.testing.assert_allclose(both[:60], alone[:60], rtol=1e-4)  # rounding grows later on
