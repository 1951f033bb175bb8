"""`ssno sweep FILE`: runs from one file, each once, in shares, continued after a kill, compared."""

import csv
import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file

from ssno.cli.main import main
from ssno.paper import runner as campaign
from ssno.paper.runner import is_done, run_task
from ssno.paper.sweep import read_sweep, shard_of, sweep_from
from ssno.paper.trial import Trial
from ssno.runs.log import Silent
from ssno.training.processes import EXIT_INTERRUPTED, TrainingInterrupted
from ssno.training.train import train

FILE = """
seeds = [0, 1]
tested = 2

[run]
"data.name" = "waves.npz"
"data.axes" = "batch time x"
"model.model" = "ssno:tiny"

[run.train]
epochs = 1

[grid]
"train.learning_rate" = [1e-3, 3e-3]

[[runs]]
"model.model" = "ffno:tiny"
"""
BASE = {
    "run": {
        "data": {"name": "waves.npz", "axes": "batch time x"},
        "model": {"model": "ssno:tiny"},
        "train": {"epochs": 1},
    }
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small file of travelling waves and a sweep."""
    monkeypatch.chdir(tmp_path)
    x, t, phase = np.arange(16) / 16, np.arange(6) / 6, np.random.default_rng(0).random(20)
    np.savez("waves.npz", u=np.sin(2 * np.pi * (x + t[:, None] + phase[:, None, None])))
    Path("rates.toml").write_text(FILE)
    return tmp_path


def test_a_file_is_every_combination_and_the_listed_runs_with_every_seed() -> None:
    trials = read_sweep("rates.toml").trials()
    labels = ["learning_rate 0.001", "learning_rate 0.003", "model ffno:tiny"]
    assert [(trial.label, trial.seed) for trial in trials] == [(label, seed) for seed in (0, 1) for label in labels]
    assert [trial.run.train.learning_rate for trial in trials[:3]] == [1e-3, 3e-3, 1e-2]
    assert all(trial.run.train.epochs == 1 and trial.tested == 2 for trial in trials)
    assert trials[0].run.model.hidden_channels == 16
    assert trials[0].run.model.boundary == "periodic", "the recipe suits the model to its data, as `ssno train` does"
    assert len({trial.name for trial in trials}) == 6


def test_json_says_the_same_as_toml() -> None:
    import tomllib

    Path("rates.json").write_text(json.dumps(tomllib.loads(FILE)))
    assert read_sweep("rates.json") == read_sweep("rates.toml")


class Alias:
    """What PyYAML calls a reference."""


def pretended_yaml() -> SimpleNamespace:
    """PyYAML, as far as a sweep needs it: JSON is YAML, and a star refers to something else."""
    return SimpleNamespace(
        SafeLoader=object(),
        AliasEvent=Alias,
        YAMLError=json.JSONDecodeError,
        parse=lambda text, Loader: [Alias()] if b"*" in text else [],
        safe_load=json.loads,
    )


def test_yaml_says_the_same_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    import tomllib

    monkeypatch.setitem(sys.modules, "yaml", None)
    for suffix in ("yaml", "yml"):
        Path(f"rates.{suffix}").write_text(json.dumps(tomllib.loads(FILE)))
        with pytest.raises(ImportError, match=r"pip install 'ssno\[yaml\]'"):
            read_sweep(f"rates.{suffix}")
    monkeypatch.setitem(sys.modules, "yaml", pretended_yaml())
    assert read_sweep("rates.yaml") == read_sweep("rates.yml") == read_sweep("rates.toml")
    Path("broken.yaml").write_text("{")
    with pytest.raises(ValueError, match=r"broken.yaml: "):
        read_sweep("broken.yaml")
    Path("endless.yaml").write_text("run: *everything")
    with pytest.raises(ValueError, match=r"endless.yaml: aliases .* are not read"):
        read_sweep("endless.yaml")


def test_shares_are_disjoint_and_complete() -> None:
    trials = read_sweep("rates.toml").trials()
    shares = [shard_of(trials, number, 4) for number in (1, 2, 3, 4)]
    assert sorted(trial.name for part in shares for trial in part) == sorted(trial.name for trial in trials)


def test_a_sweep_runs_in_shares_skips_what_is_done_and_ends_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(["sweep", "rates.toml", "--shard", "1/2"])
    shown = capsys.readouterr().out
    assert "3 still missing" in shown
    folder = Path("runs/rates")
    written = {file: file.stat().st_mtime_ns for file in folder.glob("*/trial.json")}
    assert len(written) == 3
    main(["sweep", "rates.toml"])
    shown = capsys.readouterr().out
    assert "6 runs in runs/rates." in shown
    assert re.search(r"waves: (Not separable in rel_l2: |.* is best in rel_l2)", " ".join(shown.split()))
    assert all(file.stat().st_mtime_ns == moment for file, moment in written.items())
    with (folder / "comparison.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["label"], row["seed"]) for row in rows} == {
        (trial.label, str(trial.seed)) for trial in read_sweep("rates.toml").trials()
    }
    mean = np.mean([float(row["rel_l2"]) for row in rows if row["label"] == "model ffno:tiny"])
    assert f"{mean:.3g}" in shown
    main(["sweep", "rates.toml", "--dry-run", "--json"])
    assert all(row["done"] for row in json.loads(capsys.readouterr().out))


def test_a_killed_run_goes_on_and_ends_bitwise_the_same(place: Path) -> None:
    (trial,) = sweep_from(BASE).trials()
    run_task(trial, place / "whole")
    with pytest.raises(TrainingInterrupted):
        train(trial.run, folder=place / "broken" / trial.name, stop_after=2, reporter=Silent())
    assert not is_done(trial, place / "broken")
    run_task(trial, place / "broken")
    whole, broken = (load_file(place / part / trial.name / "model.safetensors") for part in ("whole", "broken"))
    assert all((whole[name] == broken[name]).all() for name in whole)


def test_a_sweep_that_runs_out_of_time_is_interrupted_not_failed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["sweep", "rates.toml", "--stop-at", "0.01s"])
    assert stopped.value.code == EXIT_INTERRUPTED
    assert "the same command goes on" in capsys.readouterr().err


def test_a_worker_that_dies_is_told_with_its_usual_causes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "run_task", die)
    with pytest.raises(SystemExit) as stopped:
        main(["sweep", "rates.toml", "--jobs", "2"])
    assert stopped.value.code == 2
    assert "A worker process died" in capsys.readouterr().err


def die(trial: Trial, folder: Path) -> None:
    os._exit(1)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"grdi": {}}, "Unknown section `grdi`. Did you mean `grid`"),
        ({"grid": {"train.epochs": 3}}, r"`grid.train.epochs` must be a list of values, got 3"),
        ({"seeds": 3}, "`seeds` must be a list"),
        ({"seeds": [-1]}, "`seeds` must be a list of whole numbers"),
        ({"seeds": list(range(10_001))}, "1 to 10,000 runs"),
        ({"recipe": "slow"}, "`recipe` must be one of fast, paper"),
        ({"tested": 0}, "`tested` must be a number of test trajectories"),
        ({"grid": {"train.seed": [1]}}, r"give `seeds = \[0, 1, 2\]` instead"),
        ({"run": 3}, "must be tables of named fields"),
        ({"runs": {"train.epochs": 2}}, "must be a list of tables"),
    ],
)
def test_mistakes_in_a_file_are_named(sections: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sweep_from({**BASE, **sections})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train.learnig_rate": [1.0]}, "Did you mean `train.learning_rate`"),
        ({"train.epochs": [1.5]}, "`train.epochs` must be int, got 1.5"),
        ({"train.epochs.x": [1]}, "'epochs' is a value, not a section"),
        ({"model.model": ["ssno:huge"]}, "the only named size of 'ssno' is ssno:tiny"),
    ],
)
def test_mistakes_in_a_run_are_named(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sweep_from({**BASE, "grid": changes}).trials()


def test_files_that_are_no_sweeps_are_refused_by_name() -> None:
    Path("broken.toml").write_text("seeds = [")
    Path("list.json").write_text("[1]")
    Path("rates.ini").write_text("seeds = 1")
    wrong = (
        ("broken.toml", "broken.toml: "),
        ("list.json", "sections"),
        ("rates.ini", "ends with .toml, .json, .yaml"),
    )
    for name, message in wrong:
        with pytest.raises(ValueError, match=message):
            read_sweep(name)
    with pytest.raises(FileNotFoundError, match="There is no file none.toml"):
        read_sweep("none.toml")


def test_metrics_and_workers_are_checked() -> None:
    with pytest.raises(SystemExit):
        main(["sweep", "rates.toml", "--jobs", "0"])
    with pytest.raises(SystemExit):
        main(["sweep", "rates.toml", "--shard", "3/2"])


@pytest.mark.parametrize(
    ("words", "text", "message"),
    [
        (["--metric", "rel_l3"], FILE, "`--metric`: Unknown metric `rel_l3`. Did you mean `rel_l2`?"),
        (["--metric", "volume_mse"], FILE, "Unknown metric `volume_mse`"),
        ([], FILE.replace("tested = 2", "tested = 99"), "waves.npz has 2 test trajectories, fewer than `tested` = 99."),
        (
            [],
            FILE.replace("tested = 2", "").replace('"data.axes"', '"data.splits" = [18, 2, 0]\n"data.axes"'),
            "waves.npz has 0 test trajectories, which judge the runs.",
        ),
    ],
)
def test_what_would_fail_after_training_is_refused_before(
    words: list[str], text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("rates.toml").write_text(text)
    with pytest.raises(SystemExit) as stopped:
        main(["sweep", "rates.toml", *words])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert not Path("runs").exists()


def test_a_share_without_runs_says_how_many_are_missing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("one.json").write_text(json.dumps(BASE))
    main(["sweep", "one.json", "--shard", "2/2"])
    assert "0 runs, 1 still missing in runs/one." in capsys.readouterr().out
    main(["sweep", "one.json", "--shard", "2/2", "--json"])
    assert json.loads(capsys.readouterr().out) == []


def test_grids_beyond_counting_and_endless_nesting_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="A sweep has 1 to 10,000 runs, got 10,000,000,000,000,000"):
        sweep_from({**BASE, "grid": {f"train.x{i}": [*range(100)] for i in range(8)}})
    for name, text in (("a.toml", "x = " + "[" * 100_000), ("b.toml", "run.a" + ".a" * 3_000 + " = 1")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=f"{name}: nested too deeply"):
            read_sweep(tmp_path / name)
