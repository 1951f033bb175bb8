"""torch.compile as a switch: it falls back where it does not work, and resumes exactly where it does."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from ssno.models.ssno import SSNO, SSNOConfig
from ssno.training.checkpoint import load_checkpoint
from ssno.training.compilation import compiled, compiler_problem
from ssno.training.interruption import EXIT_INTERRUPTED
from ssno.training.reporter import Silent
from ssno.training.train import train


@pytest.fixture
def no_compiler(monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("no C++ compiler found\nand a long trace")

    compiler_problem.cache_clear()
    monkeypatch.setattr(torch, "compile", refuse)
    yield
    compiler_problem.cache_clear()


def doubled(x):
    return 2 * x


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_the_function_stays_and_one_line_says_so(caplog) -> None:
    assert compiled(doubled) is doubled
    assert [record.message for record in caplog.records] == [
        "torch.compile does not work here (no C++ compiler found); training goes on without it."
    ]


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_the_run_is_the_eager_one(waves, valid_waves) -> None:
    weights = []
    for switch in (False, True):
        torch.manual_seed(0)
        model = SSNO(SSNOConfig.tiny())
        train(model, waves, valid=valid_waves, epochs=1, compile=switch, reporter=Silent())
        weights.append(model.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.verify
@pytest.mark.parametrize("rollout", [[], ["--train.rollout.forcing", "0", "--train.rollout.recompute"]])
def test_a_compiled_run_resumes_bitwise_and_stays_near_the_eager_one(tmp_path, rollout) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "noise.npy", rng.standard_normal((22, 7, 16)).astype(np.float32).cumsum(-1))
    words = ["noise.npy", "--model", "ssno:tiny", "--data.axes", "batch time x", "--train.epochs", "2"]
    words += ["--train.batch-size", "8", *rollout]  # the last batch of an epoch is smaller: two shapes

    def ssno(*more: str, code: int = 0) -> str:
        command = [sys.executable, "-m", "ssno", "train", *more]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ})
        assert done.returncode == code, done.stderr
        return done.stderr

    assert "does not work here" not in ssno(*words, "--train.compile", "--name", "whole")
    ssno(*words, "--train.compile", "--name", "cut", "--stop-after", "3", code=EXIT_INTERRUPTED)
    ssno("--resume", "--name", "cut")
    ssno(*words, "--name", "eager")
    whole, cut, eager = (load_checkpoint(tmp_path / "runs" / name / "last")[0] for name in ("whole", "cut", "eager"))
    assert whole.keys() == cut.keys() == eager.keys()
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    for name in whole:
        if name.startswith("model/"):
            torch.testing.assert_close(whole[name], eager[name], atol=5e-3, rtol=5e-2)
