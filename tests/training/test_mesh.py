"""`--mesh`: what is refused, what is said, and a run on a mesh that is killed and goes on."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from ssno.base.distributed_env import sharing_fields
from ssno.cli.main import main
from ssno.data.trajectories import Trajectories
from ssno.layers.space import MeshShape
from ssno.models.registry import model_config
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.checkpoint import has_checkpoint, load_checkpoint, read_progress
from ssno.runs.options import recipe
from ssno.training.loop import recompute_blocks
from ssno.training.processes import Process
from ssno.training.train import train


@pytest.fixture
def waves_1d() -> Trajectories:
    return Trajectories.from_array(np.random.default_rng(0).normal(size=(6, 6, 1, 16)).astype(np.float32))


def waves() -> Trajectories:
    return Trajectories.from_array(np.zeros((2, 3, 1, 8, 8), np.float32))


def test_a_mesh_has_as_many_processes_as_were_started(as_users_call_it) -> None:
    with pytest.raises(ValueError, match=r"data=2,space=2 is made of 4 processes, but 1 were started"):
        Process().meshed(MeshShape(2, (2,)), SSNO(SSNOConfig.tiny(n_dims=2)), waves())
    alone = Process()
    assert alone.meshed(None, torch.nn.Linear(1, 1), waves()) is alone


@pytest.mark.parametrize("name", ["ffno", "ssno-vm"])
def test_models_whose_fields_cannot_be_split_are_refused(name, as_users_call_it) -> None:
    two = replace(Process(), world_size=2)
    with pytest.raises(ValueError, match=f"`mesh` splits the fields of models that scan.* not '{name}'"):
        two.meshed(MeshShape(1, (2,)), model_config(f"{name}:tiny", n_dims=2).build(), waves())
    with pytest.raises(ValueError, match="`mesh` splits fields of models of this library, not of Linear"):
        two.meshed(MeshShape(1, (2,)), torch.nn.Linear(1, 1), waves())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--mesh", "space=2", "--nproc", "3"], "`--mesh data=1,space=2` is made of 2 processes, but `--nproc` is 3"),
        (["--mesh", "space=2", "--dry-run"], "looks at one process with whole fields. Leave out `--mesh`"),
        (["--fsdp", "--check-resume"], "`--check-resume` looks at one process with whole fields. Leave out `--fsdp`"),
        (["--mesh", "2x2"], "`mesh` must be of the form"),
    ],
)
def test_the_command_line_refuses_what_does_not_fit(words, told, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["train", "waves.npy", *words])
    assert told in capsys.readouterr().err


def test_processes_that_share_a_field_share_a_batch(monkeypatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert recipe("fast").batch_size == 16
    with sharing_fields(2):
        assert recipe("fast").batch_size == 8


def test_weights_are_split_where_that_helps(waves_1d, as_users_call_it) -> None:
    with pytest.raises(ValueError, match="`fsdp` splits weights over processes, but there is one"):
        train(SSNO(SSNOConfig.tiny()), waves_1d, optimizer="adamw", fsdp=True)
    with pytest.raises(ValueError, match="`fsdp` needs an optimiser of single numbers, but .* is 'soap'"):
        train(SSNO(SSNOConfig.tiny()), waves_1d, optimizer="soap", fsdp=True)
    two = replace(Process(), world_size=2)
    with pytest.raises(ValueError, match="`fsdp` splits models of this library, not Linear"):
        two.shard(torch.nn.Linear(1, 1))
    with pytest.raises(ValueError, match="`fsdp` and `gradient_checkpointing` work on .* not of 'ffno'"):
        two.shard(model_config("ffno:tiny").build())


def test_blocks_computed_again_leave_every_bit_and_keep_less(waves_1d, as_users_call_it) -> None:
    weights = []
    for again in (False, True):
        torch.manual_seed(0)
        model = SSNO(SSNOConfig.tiny())
        train(model, waves_1d, epochs=1, gradient_checkpointing=again)
        weights.append(model.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert kept_bytes(again=True) < 0.5 * kept_bytes(again=False)
    with pytest.raises(ValueError, match="`gradient_checkpointing` knows models of this library, not Linear"):
        recompute_blocks(torch.nn.Linear(1, 1))


def kept_bytes(*, again: bool) -> int:
    """What the backward pass needs of a field large beside its weights."""
    model, kept = SSNO(SSNOConfig.tiny(n_dims=2)), {}
    model.gradient_checkpointing = again

    def keep(value: torch.Tensor) -> torch.Tensor:
        kept[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
        return value

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        out = model(torch.randn(2, 4, 1, 24, 32))
    assert out.requires_grad
    return sum(kept.values())


MESHES = ["--mesh data=1,space=2", "--mesh data=2,space=2", "--nproc 2 --fsdp", "--mesh data=2,space=2 --fsdp"]


@pytest.mark.verify
@pytest.mark.parametrize("mesh", MESHES)
def test_a_run_on_a_mesh_whose_process_is_killed_resumes_bitwise(tmp_path, mesh) -> None:
    generator = np.random.default_rng(0)
    np.save(tmp_path / "waves.npy", generator.normal(size=(12, 6, 8, 8)).astype(np.float32).cumsum(1))
    words = ["--data.axes", "batch time x y", "--model", "ssno:tiny", "--train.epochs", "4", "--train.batch-size", "4"]
    if "--fsdp" in mesh:
        words += ["--train.optimizer", "adamw"]
        mesh += " --gradient-checkpointing"
    command = [sys.executable, "-m", "ssno", "train"]
    first = [*command, "waves.npy", *words, "--train.save-seconds", "0", *mesh.split()]
    options = {"cwd": tmp_path, "env": {**os.environ, "OMP_NUM_THREADS": "1"}}
    subprocess.run([*first, "--name", "whole"], **options, check=True, timeout=500)
    last = tmp_path / "runs" / "cut" / "last"
    with subprocess.Popen([*first, "--name", "cut"], **options, stderr=subprocess.DEVNULL) as started:
        while not (has_checkpoint(last) and read_progress(last).step >= 4):
            assert started.poll() is None
            time.sleep(0.02)
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(started.pid)], capture_output=True, text=True)
        os.kill(int(found.stdout.split()[-1]), signal.SIGKILL)
        assert started.wait(200) != 0
    assert read_progress(last).step < 12
    again = [*command, "--resume", "always", "--name", "cut", *mesh.split()]
    subprocess.run(again, **options, check=True, timeout=500)
    whole, cut = (load_checkpoint(tmp_path / "runs" / name / "last")[0] for name in ("whole", "cut"))
    assert whole.keys() == cut.keys()
    assert [name for name in whole if not torch.equal(whole[name], cut[name])] == []
