"""A run made before the packages were moved: it opens, forecasts what it did, and goes on."""

import shutil
from pathlib import Path

import pytest

from ssno.cli.main import main
from ssno.data.datasets import build_plan
from ssno.data.generation import generate
from ssno.evaluation.evaluate import evaluate
from ssno.evaluation.record import read_evaluation
from ssno.runs.checkpoint import load_checkpoint
from ssno.runs.log import read_log

FIXTURE = Path(__file__).parents[1] / "fixtures" / "old-run"


@pytest.fixture
def old_run(tmp_path, monkeypatch) -> Path:
    """A copy of the run, beside the data that it was trained on."""
    monkeypatch.chdir(tmp_path)
    generate(build_plan("ks", "tiny", viscosity=0.1), tmp_path / "data" / "ks-0.1-tiny", workers=1)
    return shutil.copytree(FIXTURE, tmp_path / "runs" / "old-run")


def test_an_old_run_is_evaluated_as_it_was(old_run: Path) -> None:
    stored = read_evaluation(old_run / "evaluation.json").scores
    found = evaluate(old_run, write=False).scores
    assert {name: found.means[name] for name in stored.means} == pytest.approx(stored.means, rel=1e-3)
    assert found.step_errors == pytest.approx(stored.step_errors, rel=1e-3)


def test_an_old_run_is_made_longer(old_run: Path) -> None:
    lines = read_log(old_run)
    main(["train", "--resume", "--name", "old-run", "--train.epochs", "3"])
    progress = load_checkpoint(old_run / "last")[1]
    assert progress.finished
    assert progress.step == 6
    assert read_log(old_run)[: len(lines)] == lines
