"""A training on 20 times the memory that it may take, in a process that the system keeps within it."""

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from tests.waves import travelling_waves

from ssno.data.storage import Layout, describe_shard
from ssno.pde.problems.problem import Axis

PROGRAM = """
import json, resource, sys
from dataclasses import replace
from pathlib import Path
import torch
from torch import nn
from ssno.data.load import load_dataset
from ssno.runs.log import read_log
from ssno.runs.log import Silent
from ssno.training.train import train

def data_bytes():
    return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData"))

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(()))
    def forward(self, frames):
        return self.factor * frames

def run(data, **options):
    train(Scaled(), data, valid=data.select(indices=range(2)), epochs=1, batch_size=4, reporter=Silent(), **options)

if __name__ == "__main__":
    folder, allowed, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    data = replace(load_dataset(folder, "all"), limit=2**20)
    run(data.select(indices=range(8)))  # imports what a training needs
    before = data_bytes()
    resource.setrlimit(resource.RLIMIT_DATA, (before + allowed, before + allowed))
    options = {"num_workers": workers, "shuffle_buffer": 32} if workers else {}
    run(data if workers else replace(data, limit=2**40), folder=Path(folder) / "run", **options)
    (line,) = (line for line in read_log(Path(folder) / "run") if line["kind"] == "epoch")
    print(json.dumps({"grew": data_bytes() - before, "steps": line["step"], "waited": line["waited"]}))
"""


def store(folder: Path, size: int, *, points: int = 4096, frames: int = 8, count: int = 64) -> int:
    """Fill a folder with files of noise in our layout; the number of trajectories."""
    folder.mkdir()
    waves = travelling_waves(1, seed=0, frames=frames)
    layout = Layout("noise", ("u",), (Axis("x", 1.0, points),), waves.times)
    noise = np.random.default_rng(0).standard_normal((count, frames, points), np.float32)
    files = -(-size // noise.nbytes)
    for number in range(files):
        with h5py.File(folder / f"part_{number}.h5", "w") as file:
            describe_shard(file, layout, count=count)
            field = file["t0_fields"].create_dataset("u", data=noise)
            field.attrs.update({"dim_varying": [True], "sample_varying": True, "time_varying": True})
            file["t0_fields"].attrs["field_names"] = np.array(["u"], dtype=h5py.string_dtype())
    return files * count


def trained(folder: Path, allowed: int, *, workers: int) -> subprocess.CompletedProcess[str]:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, program, folder, str(allowed), str(workers)], capture_output=True, text=True, check=False
    )


@pytest.mark.verify
@pytest.mark.parametrize("allowed", [32 * 2**20, 128 * 2**20])
def test_twenty_times_the_allowed_memory_streams_through_a_training(tmp_path, allowed) -> None:
    count = store(tmp_path / "store", 20 * allowed)
    done = trained(tmp_path / "store", allowed, workers=1)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["steps"] == count // 4
    assert told["grew"] < allowed
    assert 0 < told["waited"] < 1


@pytest.mark.verify
def test_the_same_training_does_not_fit_into_that_memory(tmp_path) -> None:
    store(tmp_path / "store", 480 * 2**20)
    done = trained(tmp_path / "store", 24 * 2**20, workers=0)
    assert done.returncode == 1
    assert "allocate" in done.stderr
