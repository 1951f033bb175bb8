"""Bundled checkpoints: made of a run and its evaluation, then used by name in every command."""

import json
import runpy
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from docs.scripts import publish as script
from docs.scripts.publish import publish

from ssno.cli.main import main
from ssno.data.datasets import build_plan
from ssno.data.generation import generate
from ssno.data.load import DataOptions
from ssno.data.normalise import fit
from ssno.data.windows import Window
from ssno.evaluation.evaluate import evaluate
from ssno.forecasting.forecaster import Forecaster
from ssno.layers.memory import MemoryOptions
from ssno.models import pretrained as bundled
from ssno.models.pretrained import reported_metrics
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.report.template import Picture
from ssno.runs.load import load_forecaster
from ssno.runs.options import TrainOptions
from ssno.runs.run import Run


@pytest.fixture(scope="session")
def tiny_ks(tmp_path_factory) -> Path:
    """A folder ./data as users have it."""
    folder = tmp_path_factory.mktemp("tiny") / "data"
    generate(build_plan("ks", "tiny", viscosity=0.1), folder / "ks-0.1-tiny")
    return folder


@pytest.fixture(autouse=True)
def place(tiny_ks, tmp_path, monkeypatch) -> Path:
    """An empty folder with the data, and a bundle of its own beside it."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "data").symlink_to(tiny_ks)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(bundled, "ROOT", tmp_path / "bundle")
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path / "here"


def make_run(options: DataOptions, folder: str = "runs/mine", *, provenance: str = "made up") -> Path:
    """A run as training would leave it behind, its weights as they were drawn."""
    data = options.load("train")
    config = SSNOConfig.tiny(memory=MemoryOptions(2, d_state=8))
    model, window = config.build(), Window(size=2)
    forecaster = Forecaster(
        model, normalisers=fit(data, "zscore"), predict_increment=True, window=window, spacing=data.spacing
    )
    run = Run(data=options, model=config, train=TrainOptions(seed=3), window=window, start_from="runs/coarse")
    forecaster.save(folder, run=run.to_json(), provenance={"commit": provenance})
    return Path(folder)


def options(**more: object) -> DataOptions:
    return DataOptions(name="ks", **{"viscosity": 0.1, "resolution": 32, **more})


@pytest.fixture(scope="session")
def ready_made(tiny_ks, tmp_path_factory) -> Path:
    """A folder with a run and the checkpoint that was shipped of it."""
    home = tmp_path_factory.mktemp("ready")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setattr(bundled, "ROOT", home / "bundle")
        run = make_run(options(path=str((tiny_ks / "ks-0.1-tiny").resolve()), viscosity=None))
        publish(run, "ks-0.1-32", evaluate(run, write=False))
    return home


@pytest.fixture
def shipped(ready_made, place) -> Path:
    shutil.copytree(ready_made / "runs", place / "runs")
    shutil.copytree(ready_made / "bundle", bundled.ROOT)
    return bundled.ROOT / "ks-0.1-32"


def test_a_shipped_checkpoint_is_the_run_without_its_paths(shipped) -> None:
    assert sorted(path.name for path in shipped.iterdir()) == ["config.json", "model.safetensors"]
    assert [path.name for path in shipped.parent.iterdir()] == ["ks-0.1-32"]
    ours, theirs = load_forecaster("ks-0.1-32"), load_forecaster("runs/mine")
    for name, value in theirs.model.state_dict().items():
        assert torch.equal(ours.model.state_dict()[name], value)
    assert ours.normalisers == theirs.normalisers
    assert isinstance(SSNO.from_pretrained("ks-0.1-32"), SSNO)
    document = json.loads((shipped / "config.json").read_text())
    described = document["run"]["data"]
    assert (described["name"], described["path"], described["preset"]) == ("ks", None, "tiny")
    assert (described["viscosity"], described["resolution"]) == (0.1, 32)
    assert document["run"]["start_from"] == "coarse"
    assert "/" not in (shipped / "config.json").read_text()


def test_evaluating_by_name_measures_what_is_stated(shipped, place, capsys) -> None:
    before = {path: path.stat().st_mtime_ns for path in shipped.iterdir()}
    main(["evaluate", "ks-0.1-32"])
    shown = capsys.readouterr().out
    measured = json.loads((place / "runs/pretrained/ks-0.1-32/evaluation.json").read_text())
    stated = measured["config"]["stated"]
    assert stated == {
        "dataset": "ks-0.1-tiny",
        "split": "test",
        "points": 32,
        "trajectories": 2,
        "rel_l2": measured["scores"]["means"]["rel_l2"],
        "rel_l2_onestep": measured["scores"]["means"]["rel_l2_onestep"],
    }
    (line,) = (line for line in shown.splitlines() if line.split()[1:2] == ["rel_l2"])
    assert line.split()[3] == line.split()[5] == f"{stated['rel_l2']:.3g}"
    assert "Reported: the error of this checkpoint on 2 test trajectories of ks-0.1-tiny, 32 points." in shown
    assert {path: path.stat().st_mtime_ns for path in shipped.iterdir()} == before
    for other in (
        ["--resolution", "64"],
        ["--max-trajectories", "1"],
        ["--data", "data/ks-0.1-tiny", "--resolution", "32"],
    ):
        main(["evaluate", "ks-0.1-32", *other])
        assert "which is not what was measured here." in capsys.readouterr().out


def test_ensembles_state_nothing(shipped, capsys) -> None:
    main(["evaluate", "runs/mine", "ks-0.1-32", "--ensemble"])
    members, ensemble = capsys.readouterr().out.split("ensemble of 2:")
    assert "Reported: " in members
    assert "reported" not in ensemble.lower()


def test_commands_take_names(shipped, place, capsys, monkeypatch) -> None:
    monkeypatch.setattr("ssno.report.page.picture", lambda draw, words, **_: Picture("", "", words))
    results = place / "runs" / "pretrained" / "ks-0.1-32"
    main(["inspect", "ks-0.1-32", "--no-draw"])
    main(["rollout", "ks-0.1-32", "--no-animate"])
    assert (results / "rollout" / "test-0.png").is_file()
    given = ["--input", "data/ks-0.1-tiny", "--split", "test", "--resolution", "32"]
    main(["predict", "ks-0.1-32", *given, "--output", "next.h5", "--steps", "2"])
    assert (place / "next.h5").is_file()
    with pytest.raises(SystemExit):
        main(["compare", "ks-0.1-32"])
    told = capsys.readouterr().err
    assert "There is no runs/pretrained/ks-0.1-32/evaluation.json. Make it with: ssno evaluate ks-0.1-32" in told
    main(["report", "ks-0.1-32"])
    assert (results / "report.html").is_file()
    assert (results / "evaluation.json").is_file()
    main(["compare", "ks-0.1-32"])
    assert "2 test trajectories of ks, 32 points" in capsys.readouterr().out
    words = ["--data.viscosity", "0.1", "--data.resolution", "32", "--train.epochs", "1", "--name", "tuned"]
    main(["train", "ks", "--start-from", "ks-0.1-32", *words])
    assert load_forecaster("runs/tuned").model.config == load_forecaster("ks-0.1-32").model.config
    assert sorted(path.name for path in shipped.iterdir()) == ["config.json", "model.safetensors"]


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "ks-0.1-23"],
        ["rollout", "ks-0.1-23"],
        ["inspect", "ks-0.1-23"],
        ["compare", "ks-0.1-23"],
        ["report", "ks-0.1-23"],
        ["predict", "ks-0.1-23", "--input", "data/ks-0.1-tiny", "--output", "next.h5"],
        ["train", "ks", "--data.viscosity", "0.1", "--start-from", "ks-0.1-23"],
    ],
    ids=lambda words: words[0],
)
def test_commands_offer_the_nearest_name(words, shipped, capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert "Did you mean `ks-0.1-32`? There are: ks-0.1-32." in capsys.readouterr().err


def test_a_report_does_not_take_the_evaluation_of_another_checkpoint_of_that_name(shipped, place) -> None:
    from ssno.report.make import stored
    from ssno.runs.open import open_run

    evaluate("ks-0.1-32")
    run = open_run("ks-0.1-32")
    assert stored(run) is not None
    assert stored(replace(run, config={**run.config, "stated": {}})) is None


def test_models_lists_checkpoints(shipped, capsys) -> None:
    main(["models", "--json"])
    (row,) = json.loads(capsys.readouterr().out)["checkpoints"]
    assert (row["name"], row["model"], row["reported"]["points"]) == ("ks-0.1-32", "ssno", 32)
    assert row["parameters"] == sum(value.numel() for value in load_forecaster(shipped).model.parameters())
    assert row["bytes"] == sum(path.stat().st_size for path in shipped.iterdir())
    main(["models"])
    shown = capsys.readouterr().out
    assert "ks-0.1-tiny, 32 points" in shown
    assert f"{row['reported']['rel_l2']:.3g}" in shown


def test_the_script_ships_and_reads_back(place, monkeypatch, capsys) -> None:
    make_run(options())
    script = Path(__file__).parents[2] / "docs" / "scripts" / "publish.py"
    monkeypatch.setattr(sys, "argv", [str(script), "runs/mine", "ks"])
    runpy.run_path(str(script), run_name="__main__")
    words = capsys.readouterr().out.split()
    assert words[words.index("rel_l2") + 1].rstrip(";") == words[-1].rstrip(".")
    assert list(bundled.bundled_folders()) == ["ks"]


def test_names_that_are_taken_or_no_names_are_refused(shipped, place) -> None:
    evaluation = evaluate("runs/mine", write=False)
    for name in ("../x", "a/b", "KS", ".hidden", "", "ks_1"):
        with pytest.raises(ValueError, match="`name` must be lower-case words, digits, dots and dashes"):
            publish("runs/mine", name, evaluation)
    with pytest.raises(FileExistsError, match="There is already a checkpoint 'ks-0.1-32'"):
        publish("runs/mine", "ks-0.1-32", evaluation)
    assert publish("runs/mine", "ks-0.1-32", evaluation, overwrite=True) == shipped


def test_evaluations_of_something_else_are_refused() -> None:
    run, other = make_run(options()), make_run(options(), "runs/other", provenance="another")
    with pytest.raises(ValueError, match="`evaluation` is of 'other', not of runs/mine as it is now"):
        publish(run, "ks", evaluate(other, write=False))
    for changed in ({"trajectories": 1}, {"resolution": 64}, {"split": "valid"}, {"time_index": "0:9"}):
        with pytest.raises(ValueError, match="`evaluation` is not on the whole test split of the run"):
            publish(run, "ks", evaluate(run, write=False, **changed))
    good = evaluate(run, write=False)
    bad = replace(good, scores=replace(good.scores, means={**good.scores.means, "rel_l2": float("inf")}))
    with pytest.raises(ValueError, match="Forecasts of runs/mine do not stay finite"):
        publish(run, "ks", bad)
    assert not bundled.ROOT.exists()


def test_data_that_nobody_else_can_make_are_refused(place) -> None:
    generate(build_plan("ks", "tiny", viscosity=0.1, seed=7), place / "mine" / "ks-0.1-tiny")
    run = make_run(options(path="mine/ks-0.1-tiny", viscosity=None))
    with pytest.raises(ValueError, match="are not what `ssno data generate` makes of a dataset and a preset"):
        publish(run, "ks", evaluate(run, write=False))


def test_paths_and_large_models_are_refused(monkeypatch) -> None:
    run = make_run(options(), provenance="/home/somebody")
    with pytest.raises(ValueError, match="`provenance.commit` in config.json of runs/mine holds a path"):
        publish(run, "ks", evaluate(run, write=False))
    run = make_run(options())
    monkeypatch.setattr(script, "LARGEST", 1000)
    with pytest.raises(ValueError, match="bytes; bundled ones are below 1,000"):
        publish(run, "ks", evaluate(run, write=False))
    assert not list(bundled.ROOT.iterdir())


def test_a_damaged_statement_is_refused() -> None:
    assert reported_metrics({}) is None
    with pytest.raises(ValueError, match="`stated` in config.json lacks dataset, split"):
        reported_metrics({"stated": {"rel_l2": 0.1}})
