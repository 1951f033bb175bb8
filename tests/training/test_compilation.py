"""torch.compile as a switch: it falls back where it does not work, and resumes exactly where it does."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.training.small_runs import outcome

from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.checkpoint import load_checkpoint
from ssno.runs.log import Silent
from ssno.runs.options import TrainOptions
from ssno.training.objective import compiled, compiler_problem, compiles
from ssno.training.processes import EXIT_INTERRUPTED
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


def test_by_default_models_are_compiled_on_cuda_alone() -> None:
    assert [compiles(TrainOptions().compile, torch.device(name)) for name in ("cuda", "mps", "cpu")] == [1, 0, 0]
    assert all(compiles(choice, torch.device("cpu")) for choice in (True, "reduce-overhead"))
    assert not compiles(False, torch.device("cuda"))


def test_the_mode_is_handed_on(monkeypatch) -> None:
    asked = []
    monkeypatch.setattr("ssno.training.objective.compiler_problem", lambda: "")
    monkeypatch.setattr(torch, "compile", lambda function, **options: asked.append(options) or function)
    for choice in (True, "reduce-overhead"):
        compiled(doubled, choice=choice)
    assert asked == [{"dynamic": False, "mode": None}, {"dynamic": False, "mode": "reduce-overhead"}]


@pytest.mark.usefixtures("as_users_call_it")
def test_other_choices_are_refused() -> None:
    with pytest.raises(ValueError, match="`compile` must be one of True, False, 'auto', 'reduce-overhead', got 'fast'"):
        TrainOptions(compile="fast")


OWN_MODEL = """
import sys, torch, numpy as np
from pathlib import Path
from torch import nn
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.training.processes import TrainingInterrupted
from ssno.runs.log import Silent
from ssno.training.train import train
from ssno.runs.options import Unrolling

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Conv1d(1, 4, 3, padding=1, padding_mode="circular"), nn.Conv1d(4, 1, 1)

    def forward(self, frames):
        return self.narrow(torch.tanh(self.wide(frames.flatten(0, 1)))).unflatten(0, frames.shape[:2])

folder, forcing, compile, stop = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "compiled", int(sys.argv[4])
array = np.random.default_rng(0).standard_normal((22, 7, 1, 16), dtype=np.float32).cumsum(-1)
data = Trajectories.from_array(array, lengths=[1.0])
torch.manual_seed(0)
try:
    train(Own(), data, valid=data.select(indices=range(4)), epochs=2, batch_size=8, compile=compile, folder=folder,
          unroll=Unrolling(teacher_forcing=(forcing,), gradient_checkpointing=forcing < 1), window=Window(size=1),
          reporter=Silent(), stop_after=stop or None, resume=folder.exists())
except TrainingInterrupted:
    pass
"""


@pytest.mark.verify
@pytest.mark.parametrize("forcing", ["1", "0"])
def test_a_compiled_run_resumes_bitwise_and_is_near_the_eager_one(tmp_path, forcing) -> None:
    """22 trajectories in batches of 8: the last is smaller, so there are two shapes and two graphs."""

    def run(name: str, kind: str, stop: int = 0) -> dict[str, torch.Tensor]:
        command = [sys.executable, "-c", OWN_MODEL, str(tmp_path / name), forcing, kind, str(stop)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "does not work here" not in done.stderr
        return load_checkpoint(tmp_path / name / "last")[0]

    whole, eager = run("whole", "compiled"), run("eager", "eager")
    run("cut", "compiled", stop=3)
    cut = run("cut", "compiled")
    assert whole.keys() == cut.keys() == eager.keys()
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    assert all((whole[name] - eager[name]).abs().max() < 1e-6 for name in whole if name.startswith("model/"))


@pytest.mark.verify
def test_a_compiled_ssno_resumes_bitwise(tmp_path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "noise.npy", rng.standard_normal((12, 7, 16)).astype(np.float32).cumsum(-1))
    words = ["noise.npy", "--model", "ssno:tiny", "--data.axes", "batch time x", "--train.epochs", "2"]

    def ssno(*more: str, code: int = 0) -> None:
        command = [sys.executable, "-m", "ssno", "train", *more]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stderr

    options = ["--train.batch-size", "4", "--train.compile", "True"]
    ssno(*words, *options, "--name", "whole")
    ssno(*words, *options, "--name", "cut", "--stop-after", "2", code=EXIT_INTERRUPTED)
    ssno("--resume", "--name", "cut")
    assert outcome(tmp_path / "runs" / "whole") == outcome(tmp_path / "runs" / "cut")
