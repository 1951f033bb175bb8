"""Runs and datasets made before the packages were moved: they open, forecast what they did, and are resumed.

`old-run` has format 1. `old` was written at commit cb85bb6: a dataset of every geometry, and an interrupted run of
several models, each with the scores that it had.
"""

import shutil
from pathlib import Path

import pytest

from ssno.cli.main import main
from ssno.data.datasets import build_plan
from ssno.data.generation import generate
from ssno.data.load import load_dataset
from ssno.evaluation.evaluate import evaluate
from ssno.evaluation.record import read_evaluation
from ssno.runs.checkpoint import load_checkpoint
from ssno.runs.log import read_log
from ssno.runs.open import open_run

FIXTURES = Path(__file__).parents[1] / "fixtures"
RUNS = {
    "ssno": "line",
    "ssno-uni": "line",
    "gkt": "line",
    "ffno": "plane",
    "ssno-sphere": "sphere",
    "ssno-slices": "cloud",
}
SHAPES = {
    "line": (4, 7, 1, 16),
    "plane": (4, 7, 1, 8, 8),
    "sphere": (4, 6, 3, 8, 16),
    "cloud": (4, 2, 3, 64),
}


@pytest.fixture
def old_run(tmp_path, monkeypatch) -> Path:
    """A copy of the run, beside the data that it was trained on."""
    monkeypatch.chdir(tmp_path)
    generate(build_plan("ks", "tiny", viscosity=0.1), tmp_path / "data" / "ks-0.1-tiny", jobs=1)
    return shutil.copytree(FIXTURES / "old-run", tmp_path / "runs" / "old-run")


@pytest.fixture
def old_folder(tmp_path, monkeypatch) -> Path:
    """A copy of the runs of commit cb85bb6 and of their data."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(FIXTURES / "old", tmp_path, dirs_exist_ok=True)


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


@pytest.mark.parametrize("name", SHAPES)
def test_an_old_dataset_is_read_and_verified(old_folder: Path, name: str) -> None:
    folder = old_folder / "data" / name
    data = load_dataset(folder, "train")
    assert data.shape == SHAPES[name]
    assert data.read(slice(None)).state.std() > 0
    main(["data", "verify", str(folder)])


@pytest.mark.parametrize("name", RUNS)
def test_an_old_run_of_every_kind_is_evaluated_and_resumed(old_folder: Path, name: str) -> None:
    run = old_folder / "runs" / name
    stored, opened = read_evaluation(run / "evaluation.json").scores, open_run(run)
    assert opened.model == name
    assert opened.load("test").shape[1:] == SHAPES[RUNS[name]][1:]
    found = evaluate(run, write=False).scores
    assert {metric: found.means[metric] for metric in stored.means} == pytest.approx(stored.means, rel=1e-3)
    main(["train", "--resume", "--name", name])
    progress = load_checkpoint(run / "last")[1]
    assert progress.finished
    assert progress.step == 4
