"""`ssno reproduce` end to end at scale `tiny`: trainings, tables, verdicts, figures, pages; killed and continued."""

import csv
import json
import multiprocessing
import shutil
import signal
import time
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from ssno.base import write_json
from ssno.cli.main import main
from ssno.data.generation import generate
from ssno.evaluation.trivial import TRIVIAL
from ssno.paper.catalogue import experiments, find_experiment
from ssno.paper.results import Results, TrialResult, curve_of
from ssno.paper.runner import (
    collect,
    is_done,
    make_data,
    missing_data,
    run_task,
    run_trials,
    standings,
    steps_done,
    steps_of,
)
from ssno.paper.trial import Trial
from ssno.paper.trivial import unit_interval_factor
from ssno.runs.checkpoint import TRIAL
from ssno.runs.log import Silent
from ssno.training.processes import TrainingInterrupted
from ssno.training.train import train


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory that all tests of this file share, so that data and runs are made once."""
    return tmp_path_factory.mktemp("reproduce")


@pytest.fixture(autouse=True)
def inside(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


LONG = ("navier-stokes", "unidirectional-2d", "teacher-forcing-2d")  # share all their code with shorter ones


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.verify if name in LONG else ()) for name in experiments()]
)
def test_every_experiment_runs(name: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["reproduce", name, "--scale", "tiny", "--jobs", "1"])
    shown = capsys.readouterr().out
    assert "The paper:" in shown
    assert "verdicts" in shown
    folder = place / "runs" / "reproduce" / "tiny" / name
    finding = json.loads((folder / "finding.json").read_text())
    assert finding["experiment"] == name
    assert finding["verdicts"]
    assert finding["tables"]
    assert {"commit", "torch", "processor"} <= set(finding["provenance"])
    if find_experiment(name, scale="tiny").trials():
        assert {verdict["answer"] for verdict in finding["verdicts"]} == {"not decidable at this scale"}
        assert finding["settings"]
    assert list(folder.glob("*.png"))
    page = (folder / "index.html").read_text()
    assert finding["verdicts"][0]["answer"] in page
    assert "http" not in page.split("<main")[1].split("data:image")[0]
    with (folder / "runs.csv").open() as file:
        assert list(csv.DictReader(file))


def test_finished_runs_are_not_repeated(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["reproduce", "unidirectional", "--scale", "tiny", "--jobs", "1"])
    results = place / "runs" / "reproduce" / "tiny" / "runs"
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*") if path.is_file()}
    capsys.readouterr()
    main(["reproduce", "unidirectional", "--scale", "tiny", "--jobs", "1"])
    assert "2 runs, 0 still to do" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*") if path.is_file()} == before


def test_runs_side_by_side_give_the_same_as_one_after_the_other(place: Path) -> None:
    trials = find_experiment("unidirectional", scale="tiny").trials()
    main(["reproduce", "unidirectional", "--scale", "tiny", "--jobs", "1"])
    alone = collect(trials, Path("runs/reproduce/tiny/runs"))
    told: list[tuple[float, float]] = []
    together = run_trials(trials, Path("side"), cores=2, advance=lambda done, total: told.append((done, total)))
    for each in trials:
        assert together.outcomes[each].values["rel_l2"] == alone.outcomes[each].values["rel_l2"]
    assert told[-1][0] == told[-1][1] == sum(map(steps_of, trials))


def longer(trial: Trial) -> Trial:
    """The same run, long enough to be killed in the middle, saving all the time."""
    options = replace(trial.run.train, epochs=60, evaluate_every=60, save_seconds=0.0)
    return replace(trial, run=replace(trial.run, train=options))


def test_a_stopped_run_continues_from_its_checkpoint_to_the_same_weights() -> None:
    main(["reproduce", "unidirectional", "--scale", "tiny", "--jobs", "1"])
    trial = find_experiment("unidirectional", scale="tiny").trials()[0]
    with pytest.raises(TrainingInterrupted):
        train(trial.run, folder=Path("stopped") / trial.name, stop_after=1, reporter=Silent())
    assert not is_done(trial, Path("stopped"))
    for folder in ("stopped", "whole"):
        run_task(trial, Path(folder))
    first, second = (load_file(Path(folder) / trial.name / "model.safetensors") for folder in ("stopped", "whole"))
    assert all((first[name] == second[name]).all() for name in second)
    assert is_done(trial, Path("stopped"))
    config = Path("stopped") / trial.name / "config.json"
    write_json(config, {**json.loads(config.read_text()), "run": replace(trial.run, context_time="target").to_json()})
    assert not is_done(trial, Path("stopped")), "a run of this name with another description is not this one"


def side_by_side(trials: list[Trial], folder: Path) -> None:
    run_trials(trials, folder, cores=2, advance=lambda done, total: None)


def test_sigterm_lets_every_run_save_itself() -> None:
    main(["reproduce", "unidirectional", "--scale", "tiny", "--jobs", "1"])
    trials = [longer(trial) for trial in find_experiment("unidirectional", scale="tiny").trials()]
    trials = [replace(t, run=replace(t.run, train=replace(t.run.train, save_seconds=1e6))) for t in trials]
    first = trials[0].run
    queued = replace(trials[0], run=replace(first, train=replace(first.train, seed=7)))
    arguments = ([*trials, queued], Path("terminated"))
    process = multiprocessing.get_context("spawn").Process(target=side_by_side, args=arguments)
    process.start()
    places = [Path("terminated") / trial.name for trial in trials]
    until = time.monotonic() + 60
    while min(map(steps_done, places)) < 5 and time.monotonic() < until:
        time.sleep(0.02)
    process.terminate()
    process.join(60)
    assert process.exitcode not in (None, 0)
    stopped = [place for t, place in zip(trials, places, strict=True) if not is_done(t, Path("terminated"))]
    assert stopped
    assert all((place / "last").is_dir() for place in stopped)
    assert not (Path("terminated") / queued.name).exists(), "a worker told to stop begins nothing more"


def test_runs_stop_at_a_given_time_and_go_on_later(capsys: pytest.CaptureFixture[str]) -> None:
    main(["reproduce", "unidirectional", "--scale", "tiny", "--jobs", "1"])
    trials = [longer(trial) for trial in find_experiment("unidirectional", scale="tiny").trials()]
    soon = datetime.now() + timedelta(seconds=1)
    with pytest.raises((TrainingInterrupted, KeyboardInterrupt)):
        run_trials(trials, Path("tenth"), cores=1, advance=lambda done, total: None, until=soon)
    first, second = standings(trials, Path("tenth"))
    assert not first.finished
    assert (second.done, second.finished) == (0, False)
    assert (Path("tenth") / trials[0].name / "last").is_dir()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_the_status_foresees_what_is_left_from_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    main(["reproduce", "unidirectional", "--scale", "tiny", "--jobs", "1"])
    capsys.readouterr()
    main(["reproduce", "unidirectional", "--scale", "tiny", "--seeds", "2", "--status", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["results"]["unidirectional"]["finished"] == 2
    assert told["all"]["runs"] == 4
    assert told["all"]["seconds_left"] > 0
    assert told["all"]["without_estimate"] == 0
    main(["reproduce", "--scale", "tiny", "--status"])
    assert "unidirectional" in capsys.readouterr().out
    main(["reproduce", "window", "--scale", "tenth", "--status"])
    assert "without estimate" in capsys.readouterr().out


def test_a_run_that_diverges_is_a_result() -> None:
    main(["reproduce", "unidirectional", "--scale", "tiny", "--jobs", "1"])
    trial = find_experiment("unidirectional", scale="tiny").trials()[0]
    wild = replace(trial.run.train, epochs=40, learning_rate=1e30, grad_clip=0.0, schedule="constant")
    broken = replace(trial, run=replace(trial.run, train=wild))
    results = run_trials([broken], Path("wild"), cores=1, advance=lambda done, total: None)
    assert results.outcomes[broken].values["rel_l2"] == float("inf")
    assert TrialResult.read(Path("wild") / broken.name).values["rel_l2"] == float("inf")


def test_the_list_shows_what_is_done(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    main(["reproduce", "recovery", "--scale", "tiny"])
    capsys.readouterr()
    main(["reproduce", "--list", "--scale", "tiny", "--json"])
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == set(experiments())
    assert all(row["paper_location"] for row in rows.values())
    assert rows["recovery"]["state"] == "done"
    monkeypatch.setenv("COLUMNS", "80")
    main(["reproduce", "--list", "--scale", "cpu"])
    told = capsys.readouterr().out
    assert "not started" in told
    assert all(f" {name} " in told for name in experiments())  # names are parts of commands and never cut short


def test_a_dry_run_without_data_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["reproduce", "unidirectional", "--scale", "tiny", "--dry-run", "--json"])
    plan = json.loads(capsys.readouterr().out)
    assert plan["without_estimate"] == plan["todo"] == 2
    (cost,) = plan["data"].values()
    assert min(cost["seconds"], cost["disk_bytes"], cost["trajectories"]) > 0
    main(["reproduce", "unidirectional", "--scale", "tiny", "--dry-run"])
    assert "To be generated: data/burgers-tiny, " in (shown := capsys.readouterr().out)
    assert "2 runs have no estimate before their data exist" in shown
    assert not list(tmp_path.iterdir())


def test_data_whose_generation_was_interrupted_are_finished_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trials = find_experiment("unidirectional", scale="tiny").trials()
    ((folder, plan),) = missing_data(trials).items()
    generate(plan, folder, part=(1, 3))
    assert list(missing_data(trials)) == [folder]
    make_data(trials, lambda line: None, lambda done, total: None)
    assert not missing_data(trials)


def test_a_dry_run_foresees_time_and_trains_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    make_data(find_experiment("window", scale="tiny").trials(), lambda line: None, lambda done, total: None)
    main(["reproduce", "window", "--scale", "tiny", "--out", "dry", "--dry-run", "--json"])
    plan = json.loads(capsys.readouterr().out)
    assert plan["seconds"] > 0
    assert plan["todo"] == len(plan["runs"]) == 4
    assert sum(plan["seconds_of"].values()) / plan["jobs"] == pytest.approx(plan["seconds"])
    assert not Path("dry").exists()


def test_what_is_there_so_far_can_be_judged(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["reproduce", "headline", "--scale", "tiny", "--out", "part", "--partial"])
    assert "No run of `headline` is done at scale tiny" in capsys.readouterr().err
    trials = find_experiment("headline", scale="tiny").trials()[:2]
    make_data(trials, lambda line: None, lambda done, total: None)
    run_trials(trials, Path("part/tiny/runs"), cores=1, advance=lambda done, total: None)
    main(["reproduce", "headline", "--scale", "tiny", "--out", "part", "--partial", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [verdict["claim"] for verdict in told["verdicts"]] == ["KS 0.1: SS-NO below FFNO"]
    assert "Judged with 2 of 10 runs." in told["notes"]
    assert len(list(Path("part/tiny/runs").iterdir())) == 2


@pytest.mark.parametrize("name", ["damping", "discretisation", "transfer", "swe", "airfoils", "airfoil-rates"])
def test_half_of_the_runs_that_are_looked_into_can_be_judged(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    trials = find_experiment(name, scale="tiny").trials()
    make_data(trials, lambda line: None, lambda done, total: None)
    every = Path("runs/reproduce/tiny/runs")
    run_trials(trials[::2], every, cores=1, advance=lambda done, total: None)
    half = Path("half") / name
    for trial in trials[::2]:
        shutil.copytree(every / trial.name, half / "tiny" / "runs" / trial.name)
    main(["reproduce", name, "--scale", "tiny", "--out", str(half), "--partial", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert f"Judged with {len(trials[::2])} of {len(trials)} runs." in told["notes"]
    assert told["tables"]


TRAINED = (
    "ssno",
    "ssno-uni",
    "ssno-selective",
    "ssno-product",
    "ssno-warp",
    "ssno-2d",
    "ffno",
    "fno",
    "unet",
    "gkt",
    "factformer",
)


@cache
def first_of_each_model() -> dict[str, Trial]:
    """At scale `paper`, one run of every model that some experiment trains."""
    gridded = [name for name in experiments() if not name.startswith("airfoil")]
    runs = [trial for name in gridded for trial in find_experiment(name, scale="paper", seeds=1).trials()]
    line = {trial.run.model.name: trial for trial in reversed(runs) if trial.run.model.n_dims == 1}
    return line | {"ssno-2d": next(trial for trial in runs if trial.case == "TorusVis, only force")}


def test_no_model_of_the_experiments_is_left_out() -> None:
    assert {*first_of_each_model()} == {*TRAINED}


@pytest.mark.parametrize("model", TRAINED)
def test_models_of_the_published_size_start(model: str) -> None:
    """One optimiser step and one forecast, on tiny data in place of the published ones."""
    first = first_of_each_model()[model]
    run = first.run
    options = replace(run.train, epochs=1, batch_size=2)
    data = replace(run.data, preset="tiny", train=2, valid=1, resolution=min(run.data.resolution or 32, 32))
    model = run.model.for_grid([32] * run.model.n_dims)
    small = replace(first, run=replace(run, model=model, train=options, data=data), tested=1)
    make_data([small], lambda line: None, lambda done, total: None)
    run_task(small, Path("published"))
    assert is_done(small, Path("published"))


def test_errors_in_unit_interval_units_are_what_scaling_makes_of_them() -> None:
    main(["reproduce", "unidirectional", "--scale", "tiny", "--jobs", "1"])
    run = find_experiment("unidirectional", scale="tiny").trials()[0].run
    test, train = run.data.load("test"), run.data.load("train")
    low, high = (float(f(train.read(range(len(train))).state)) for f in (lambda x: x.min(), lambda x: x.max()))
    truth = test.read(range(len(test))).state[:, 4:]
    shifted = (truth - low) / (high - low)
    error = 0.1 * truth.flatten(1).norm(dim=1) / shifted.flatten(1).norm(dim=1) / (high - low)
    assert unit_interval_factor(run.data, run.window) * 0.1 == pytest.approx(float(error.mean()), rel=1e-4)


def test_tables_have_rows_of_trivial_forecasts_and_the_papers_value_beside_its_metric_alone(place: Path) -> None:
    main(["reproduce", "unidirectional", "--scale", "tiny", "--jobs", "1"])
    finding = json.loads((place / "runs/reproduce/tiny/unidirectional/finding.json").read_text())
    tables = {table["title"].partition(":")[0]: table for table in finding["tables"]}
    assert [name for name, table in tables.items() if "paper" in table["headings"]] == ["rel_l2_unit_interval"]
    run = find_experiment("unidirectional", scale="tiny").trials()[0].run
    truth = run.data.load("test").read(range(2)).state
    given = run.window.size
    apart = (truth[:, given:] - truth[:, given - 1 : given]).flatten(1).norm(dim=1)
    error = float((apart / truth[:, given:].flatten(1).norm(dim=1)).mean())
    rows = {row[0]: row for row in tables["rel_l2"]["rows"]}
    assert tuple(rows)[-len(TRIVIAL) :] == TRIVIAL
    assert float(rows["persistence"][-1]) == pytest.approx(error, rel=1e-2)
    best = min(float(rows[name][-1]) for name in TRIVIAL)
    for label, *_, shown in tables["skill"]["rows"]:
        assert float(shown) == pytest.approx(1 - float(rows[label][-1]) / best, abs=0.02)


@pytest.mark.parametrize("name", ["transfer", "discretisation", "resolution", "recipe"])
def test_tables_on_several_grids_have_persistence_in_every_column(name: str, place: Path) -> None:
    main(["reproduce", name, "--scale", "tiny", "--jobs", "1"])
    finding = json.loads((place / "runs/reproduce/tiny" / name / "finding.json").read_text())
    for table in finding["tables"]:
        if "skill: " in table["title"]:
            continue
        if "persistence" in table["headings"]:
            column = table["headings"].index("persistence")
            cells = [row[column] for row in table["rows"]]
        else:
            (row,) = (row for row in table["rows"] if row[0] == "persistence")
            last = dict(zip(table["headings"], row, strict=True))
            cells = [
                cell
                for heading, cell in last.items()
                if heading not in ("", "paper", "parameters", "seconds of training")
            ]
        assert all(float(cell) > 0 for cell in cells), table["title"]


def test_cells_without_trials_are_empty_and_damaged_files_are_named(tmp_path: Path) -> None:
    nothing = Results({}, tmp_path)
    assert nothing.values("a", "b") == []
    assert nothing.cell("a", "b") == ""
    (tmp_path / TRIAL).write_text('{"values": {}}')
    with pytest.raises(ValueError, match="is damaged .* Delete it, and the run is judged again"):
        TrialResult.read(tmp_path)


def test_senseless_calls_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        ([], "`name` must be one of headline, ablation"),
        (
            ["headline", "--stop-at", "6 pm"],
            "`--stop-at` must be a time of day as 06:00, or a while as 55m or 1h30m, got '6 pm'",
        ),
        (["headline", "--jobs", "0"], "`--jobs` must be at least 1, got 0"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["reproduce", *arguments])
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err


def test_curves_take_scored_epochs_only() -> None:
    lines = [{"kind": "step", "rel_l2": 9}, {"kind": "epoch", "epoch": 0}, {"kind": "epoch", "epoch": 1, "rel_l2": 0.5}]
    assert curve_of(lines) == ((2, 0.5),)
