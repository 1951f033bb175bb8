"""The cost benchmark tells a change from noise."""

from benchmarks import cost as benchmark
from ssno.evaluation.cost_table import read_costs, write_costs


def row(ms: float, *, spread: float = 0.02, **changes) -> dict:
    where = {"model": "ssno", "task": "forward", "grid": "64", "batch": 1, "frames": 1}
    times = {"ms": ms, "ms_lower": ms * (1 - spread), "ms_upper": ms * (1 + spread)}
    return {**where, "part": 1, "parameters": 1000, "gflop": 0.5, "memory_mib": 1.0, **times, **changes}


def test_changes_beyond_noise_are_reported() -> None:
    assert benchmark.changes([row(1.0)], [row(2.0)]) == [
        "ssno, forward, 64 points, batch 1: 1 -> 2 ms, 2.00 times slower"
    ]
    assert benchmark.changes([row(2.0)], [row(1.0)])[0].endswith("2.00 times faster")
    assert benchmark.changes([row(1.0)], [row(1.0, gflop=0.6)])[0].endswith("gflop 0.5 -> 0.6")


def test_noise_and_new_rows_are_not() -> None:
    assert benchmark.changes([row(1.0)], [row(1.05)]) == []
    assert benchmark.changes([row(1.0, spread=0.5)], [row(1.4, spread=0.5)]) == []
    assert benchmark.changes([row(1.0)], [row(9.0, model="gkt")]) == []


def test_new_rows_are_stored_if_asked(tmp_path, monkeypatch, capsys) -> None:
    """The measuring itself is tested in tests/cli/test_models_and_bench.py."""
    measured = iter(([row(1.0)], [row(2.0)]))
    monkeypatch.setattr(benchmark, "bench", lambda *, out, **_: write_costs(next(measured), out))
    benchmark.main(baseline=tmp_path / "stored", replace=True)
    assert sorted(path.name for path in (tmp_path / "stored").iterdir()) == ["cost.csv", "cost.json"]
    assert "No change against 0 stored rows." in capsys.readouterr().out
    benchmark.main(baseline=tmp_path / "stored")
    assert "2.00 times slower" in capsys.readouterr().out
    assert read_costs(tmp_path / "stored" / "cost.json")[0]["ms"] == 1.0
