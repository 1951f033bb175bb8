"""`ssno models` and `ssno bench` as a user calls them."""

import json

import pytest

from ssno.cli.main import main
from ssno.models.registry import ALL_MODELS


def test_models_lists_all_with_published_counts(capsys) -> None:
    main(["models", "--json"])
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["models"]}
    assert list(rows) == list(ALL_MODELS)
    assert (rows["ssno"]["parameters_1d"], rows["ssno"]["parameters_2d"]) == (203_713, 369_665)
    assert (rows["fno"]["parameters_2d"], rows["persistence"]["parameters_2d"]) == (67_196_673, 0)
    assert [rows[name]["past"] for name in ("ffno", "gkt", "linear", "persistence")] == [
        "memory 4",
        "stack 4",
        "stack 2",
        "none",
    ]
    assert all(row["summary"] and row["origin"] for row in rows.values())


def test_models_prints_a_table(capsys) -> None:
    main(["models"])
    printed = capsys.readouterr().out
    assert "67,196,673" in printed
    assert "stack 4" in printed


def test_bench_measures_stores_and_draws(tmp_path, capsys) -> None:
    (tmp_path / "errors.csv").write_text("name,rel_l2,grid\ngkt,0.05,32\ngkt,0.02,64\n")
    choice = ["bench", "--quick", "--models", "gkt", "--out", str(tmp_path / "costs")]
    main([*choice, "--errors", str(tmp_path / "errors.csv")])
    printed = capsys.readouterr()
    for title in ("First prediction (cold)", "One prediction (warm)", "One frame (streaming)"):
        assert title in printed.out
    assert "16x16 points, batch 2: operations and memory" in printed.out
    assert "rollout, 16 x 16 points, batch 2" in printed.err
    assert sorted(path.name for path in (tmp_path / "costs").iterdir()) == ["cost.csv", "cost.json", "pareto.png"]
    stored = tmp_path / "costs" / "cost.json"
    main(["bench", "--stored-costs", str(stored), "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert rows == json.loads(stored.read_text())["rows"]
    assert len(rows) == 6 * 4


def test_bench_foresees_without_writing(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["bench", "--quick", "--models", "gkt", "--dry-run", "--seconds", "2", "--memory-gib", "1"]
    main([*arguments, "--json"])
    plan = json.loads(capsys.readouterr().out)
    assert len(plan["cases"]) == 24
    assert plan["seconds"] == pytest.approx(sum(case["seconds"] for case in plan["cases"]))
    assert plan["seconds"] > 12 * 2 + 12 * 0.5
    assert plan["memory_bytes"] == 2**30
    main(arguments)
    assert "In all about" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_roofline_predicts_and_measures_nothing(monkeypatch, capsys) -> None:
    monkeypatch.setattr("ssno.cli.bench.ROOFLINE_STEPS", {(16,): (2, 4)})
    main(["bench", "--roofline", "--models", "ssno:tiny", "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert row["operations"] > 1e6
    separate, fused = row["predicted_seconds"]["H100 SXM"]
    assert 0 < fused < separate < 1e-3
    main(["bench", "--roofline", "--models", "ssno:tiny"])
    assert "Predictions by a roofline, not measurements" in capsys.readouterr().out
