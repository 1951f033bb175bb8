"""`ssno evaluate` and `ssno compare` from the command line."""

import csv
import json
from importlib import import_module

import pytest

from ssno.cli.main import main
from ssno.evaluation.record import read_evaluation
from ssno.evaluation.statistics import summarise
from ssno.models.baselines.trivial import PersistenceConfig


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def test_evaluate_prints_a_table_and_writes_every_format(make_run, tmp_path, capsys) -> None:
    folder = make_run()
    main(["evaluate", str(folder), "--csv", str(tmp_path / "t.csv"), "--latex", str(tmp_path / "t.tex")])
    shown = capsys.readouterr().out
    found = read_evaluation(folder / "evaluation.json")
    assert "run: 3 test trajectories of ks, 32 points" in shown
    for name in ("rel_l2", "spectral_error/mid", "correlation_time", "energy_drift", "seconds", "persistence"):
        assert name in shown
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [row["forecast_by"] for row in rows] == ["run", "persistence", "linear", "climatology", "mean"]
    assert float(rows[0]["vrmse"]) == found.scores.means["vrmse"]
    assert r"\toprule" in (tmp_path / "t.tex").read_text()


def test_evaluate_with_solver_and_other_data_as_json(make_run, short_ks, capsys) -> None:
    folder = make_run()
    other = ["--data", str(short_ks), "--resolution", "64"]
    main(["evaluate", str(folder), *other, "--max-trajectories", "1", "--solver", "--json"])
    (document,) = json.loads(capsys.readouterr().out)
    assert document["baselines"]["solver, same grid"]["means"]["rel_l2"] < 1e-6
    assert document["points"] == [64]


def timed(monkeypatch, *, model: float, solver: float) -> None:
    """Seconds per forecast, whatever a clock says."""
    monkeypatch.setattr(import_module("ssno.evaluation.evaluate"), "forecast_seconds", lambda *_, **__: model)
    monkeypatch.setattr(import_module("ssno.evaluation.solver"), "measured", lambda *_: solver)


def test_break_even_joins_log_data_solver_and_model(make_run, monkeypatch, capsys) -> None:
    folder = make_run()
    lines = [{"kind": "epoch", "step": 8 * n, "epoch": n, "seconds": 300.0 * n} for n in (1, 2)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    timed(monkeypatch, model=0.25, solver=2.25)
    main(["evaluate", str(folder), "--solver", "--json"])
    parts = json.loads(capsys.readouterr().out)[0]["break_even"]
    assert (parts["training"], parts["data"], parts["solver"], parts["model"]) == (600, 3 * 2.25, 2.25, 0.25)
    assert parts["forecasts"] == (600 + 3 * 2.25) / 2  # two training trajectories and one of validation
    assert parts["remarks"] == [
        "Training: on another processor (not recorded)",
        "Data: 3 trajectories of 2.2 s, measured here",
    ]
    assert json.loads((folder / "evaluation.json").read_text())["break_even"] == parts
    found = read_evaluation(folder / "evaluation.json")
    assert found.break_even.forecasts == parts["forecasts"]
    main(["evaluate", str(folder), "--solver"])
    shown = capsys.readouterr().out
    assert "Break-even: after 304 forecasts (training 600 s, data 6.75 s, solver at equal error 2.25 s on" in shown
    assert "break_even" in shown


def test_break_even_is_never_for_a_slow_model_and_unknown_without_a_log(make_run, monkeypatch, capsys) -> None:
    folder = make_run()
    timed(monkeypatch, model=3.0, solver=2.0)
    main(["evaluate", str(folder), "--solver", "--json"])
    assert json.loads(capsys.readouterr().out)[0]["break_even"]["forecasts"] == "never"
    assert read_evaluation(folder / "evaluation.json").break_even.forecasts == float("inf")
    timed(monkeypatch, model=1.0, solver=2.0)
    main(["evaluate", str(folder), "--solver"])
    shown = capsys.readouterr().out
    assert "Break-even: unknown (training unknown, data 6 s" in shown
    assert "Training: the run has no log of its time." in shown


def test_evaluate_says_if_no_solver_is_as_fast_as_the_model(make_run, capsys, monkeypatch) -> None:
    monkeypatch.setattr(import_module("ssno.evaluation.evaluate"), "forecast_seconds", lambda *_, **__: 0.0)
    main(["evaluate", str(make_run()), "--solver", "--max-trajectories", "1"])
    assert "No 'solver, same time': even on the coarsest grid the solver takes longer" in capsys.readouterr().out


def test_evaluate_reports_diverged_forecasts(make_run, capsys, monkeypatch) -> None:
    monkeypatch.setattr("ssno.forecasting.divergence.LISTED", 2)
    folder = make_run()
    from ssno.models.pretrained import save_weights
    from ssno.runs.load import load_forecaster

    weights = {name: 1e20 * value for name, value in load_forecaster(folder).model.state_dict().items()}
    save_weights(folder, weights)
    main(["evaluate", str(folder)])
    shown = capsys.readouterr().out
    assert "! trajectory 0 diverges: not finite from step 1 on" in shown
    assert "! and 1 more; --json lists them all" in shown


def test_an_ensemble_is_scored_beside_its_members(make_run, capsys) -> None:
    folders = [str(make_run(f"run{seed}", seed=seed)) for seed in range(2)]
    main(["evaluate", *folders, "--ensemble"])
    shown = capsys.readouterr().out
    assert "ensemble of 2: 3 test trajectories of ks" in shown
    assert "Spread over error" in shown


def test_a_dry_run_foresees_and_writes_nothing(make_run, capsys) -> None:
    folder = make_run()
    main(["evaluate", str(folder), str(make_run("other", seed=1)), "--ensemble", "--solver", "--dry-run", "--json"])
    one, _, together = json.loads(capsys.readouterr().out)
    assert one["seconds"] > 0 < one["memory_bytes"]
    assert one["file"] == "evaluation.json"
    assert together["seconds"] > one["seconds"]
    main(["evaluate", str(folder), "--dry-run"])
    assert "nothing was written" in capsys.readouterr().out
    assert not list(folder.glob("evaluation*"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["evaluate"], "`runs`: give the folder of at least one run"),
        (["evaluate", "a", "--ensemble"], "`--ensemble` needs at least 2 runs, got 1"),
        (["evaluate", "nowhere"], "There is no run or saved model in nowhere"),
        (["compare"], "`runs`: give the folders of evaluated runs"),
        (["evaluate", "a", "--batch-size", "-1"], "`--batch-size` must be at least 1, got -1"),
        (["compare", "a", "--metrics"], "`--metrics` needs at least one name"),
    ],
)
def test_mistakes_are_told_in_a_line(words, told, capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert told in capsys.readouterr().err


def test_compare_groups_seeds_and_refuses_to_rank_what_overlaps(make_run, tmp_path, capsys) -> None:
    ours = [make_run(f"ours{seed}", seed=seed) for seed in range(3)]
    rule = PersistenceConfig()
    others = [make_run(f"other{seed}", seed=seed, config=rule) for seed in range(2)]
    folders = [str(folder) for folder in (*ours, *others)]
    table = str(tmp_path / "comparison.csv")  # as a shell makes it of runs/sweep/*
    main(["evaluate", table, *folders])
    capsys.readouterr()
    main(["compare", table, *folders, "--csv", str(tmp_path / "c.csv"), "--latex", str(tmp_path / "c.tex")])
    shown = capsys.readouterr().out
    assert "mean ± 95 % confidence over seeds" in shown
    assert "in rel_l2" in shown
    assert "Welch's test over seeds, 5 %" in shown
    errors = [read_evaluation(folder / "evaluation.json").scores.means["rel_l2"] for folder in ours]
    first, second = csv.DictReader((tmp_path / "c.csv").read_text().splitlines())
    assert (first["name"], first["seeds"], second["name"], second["seeds"]) == ("ffno", "3", "persistence", "2")
    assert float(first["rel_l2"]) == pytest.approx(summarise(errors).mean)
    assert float(first["rel_l2 ci95"]) == pytest.approx(summarise(errors).confidence)
    assert r"$\pm$" in (tmp_path / "c.tex").read_text()
    main(["compare", folders[0], folders[3], "--metrics", "valid_time", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"]["best"] is None
    assert document["groups"][0]["summaries"]["valid_time"]["confidence"] is None


def test_tables_replace_tables_and_nothing_else(make_run, tmp_path, capsys) -> None:
    folder = make_run()
    tables = ["--csv", str(tmp_path / "t.csv"), "--latex", str(tmp_path / "t.tex")]
    for verb in ("evaluate", "evaluate", "compare", "compare", "evaluate"):
        main([verb, str(folder), *tables])
    (tmp_path / "errors.csv").write_text("name,rel_l2,grid\nssno,0.01,64\n")
    (tmp_path / "paper.tex").write_text("% my paper\n\\documentclass{article}\n")
    for verb in ("evaluate", "compare"):
        for option, file in (
            ("--csv", folder / "config.json"),
            ("--csv", tmp_path / "errors.csv"),
            ("--latex", tmp_path / "paper.tex"),
        ):
            before = file.read_bytes()
            with pytest.raises(SystemExit) as stopped:
                main([verb, str(folder), option, str(file)])
            assert stopped.value.code == 2
            assert f"is not a table that ssno wrote, so `{option}` does not replace it" in capsys.readouterr().err
            assert file.read_bytes() == before


def test_compare_takes_files_and_refuses_other_grids(make_run, capsys) -> None:
    folder = make_run()
    main(["evaluate", str(folder)])
    main(["evaluate", str(folder), "--resolution", "64"])
    main(["compare", str(folder / "evaluation-64.json")])
    assert "64 points" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["compare", str(folder), str(folder / "evaluation-64.json")])
    assert "were evaluated on different points ((32,) and (64,))" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["compare", str(folder), "--file", "evaluation-valid.json"])
    assert "Make it with: ssno evaluate" in capsys.readouterr().err
