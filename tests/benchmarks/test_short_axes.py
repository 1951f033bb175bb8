"""The benchmark of short axes runs, and its rows carry where they were measured."""

import csv

import torch
from benchmarks.short_axes import main


def test_a_small_measurement_writes_rows_with_provenance(tmp_path, capsys) -> None:
    main(lengths=(8,), lines=(2,), seconds=0.0, csv_file=tmp_path / "rows.csv")
    main(lengths=(8,), lines=(2,), seconds=0.0, csv_file=tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["training"] for row in rows] == ["False", "True"] * 2
    assert all(float(row["ratio"]) > 0 and row["torch"] == torch.__version__ and row["processor"] for row in rows)
    assert "8 points" in capsys.readouterr().out
