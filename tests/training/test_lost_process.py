"""A process of a training is killed, or stops answering: the other one says so in a line, and the run goes on later."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from ssno.runs.checkpoint import has_checkpoint, load_checkpoint, read_progress
from ssno.training.processes import EXIT_LOST

PATIENCE = 10
PROGRAM = f"""
from datetime import timedelta
from torch.distributed import distributed_c10d
distributed_c10d.default_pg_timeout = timedelta(seconds={PATIENCE})  # of PyTorch: half an hour
from ssno.cli.main import main
main()
"""
WORDS = "train waves.npy --data.axes batch,time,x --model ssno:tiny --train.batch-size 4 --train.epochs 6"
WORDS += " --train.save-seconds 0"


@pytest.mark.verify
def test_the_other_process_says_so_and_the_run_resumes_bitwise(tmp_path) -> None:
    steps = np.random.default_rng(0).standard_normal((24, 6, 16)).astype(np.float32)
    np.save(tmp_path / "waves.npy", steps.cumsum(1))
    assert [process.wait(600) for process in both(tmp_path, "whole")] == [0, 0]
    whole, _ = load_checkpoint(tmp_path / "runs" / "whole" / "last")
    for name, lost, how in (
        ("killed", 1, signal.SIGKILL),
        ("first", 0, signal.SIGKILL),
        ("stopped", 1, signal.SIGSTOP),
    ):
        started = both(tmp_path, name)
        last = tmp_path / "runs" / name / "last"
        try:
            while not (has_checkpoint(last) and read_progress(last).step >= 4):
                assert all(process.poll() is None for process in started)
                time.sleep(0.02)
            started[lost].send_signal(how)
            assert started[1 - lost].wait(120) == EXIT_LOST
        finally:
            for process in started:
                process.kill()
                process.wait()
        told = (tmp_path / f"{name}-{1 - lost}.txt").read_text()
        assert "another process of this training is gone" in told
        assert "Traceback" not in told
        assert read_progress(last).step < 36
        assert [process.wait(600) for process in both(tmp_path, name, "--resume", "always")] == [0, 0]
        cut, _ = load_checkpoint(last)
        assert whole.keys() == cut.keys()
        assert [name for name in whole if not torch.equal(whole[name], cut[name])] == []


def both(place: Path, name: str, *more: str) -> list[subprocess.Popen]:
    """Two processes that no launcher watches, which would end the one that is left; they say what they say in files."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = str(unused.getsockname()[1])
    found = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    started = []
    for rank in "01":
        with (place / f"{name}-{rank}.txt").open("w") as told:
            words = [sys.executable, "-c", PROGRAM, *WORDS.split(), "--name", name, *more]
            environment = {**os.environ, **found, "OMP_NUM_THREADS": "1", "RANK": rank, "LOCAL_RANK": rank}
            started.append(subprocess.Popen(words, cwd=place, env=environment, stdout=told, stderr=told))
    return started
