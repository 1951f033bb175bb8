"""The long-axis benchmark measures what it says, on sizes that take no time."""

import csv
from pathlib import Path

import pytest
import torch

from benchmarks import long_axes as benchmark


@pytest.mark.parametrize("training", [False, True])
def test_both_methods_are_right_and_timed(training) -> None:
    fft, chunked = benchmark.measure(benchmark.Case(200, 2, 4, training), repeats=1)
    assert [fft.method, chunked.method] == ["fft", "chunked"]
    for row in (fft, chunked):
        assert row.error < 1e-5
        assert row.median_ms > 0
        assert row.saved_mb > 0


def test_rows_are_appended_with_the_machine(tmp_path, capsys) -> None:
    file = tmp_path / "rows.csv"
    for _ in range(2):
        benchmark.main(
            lengths=(64,),
            lines=(1,),
            d_states=(4,),
            boundaries=("periodic",),
            repeats=1,
            threads=torch.get_num_threads(),
            csv_file=file,
        )
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    once = [f"l64-b1-n4-periodic-{kind}" for kind in ("forward", "forward", "training", "training")]
    assert [row["case"] for row in rows] == once * 2
    assert all(row["torch"] and row["threads"] for row in rows)
    assert "what the automatic choice takes" in capsys.readouterr().out


def test_the_automatic_choice_follows_the_stored_measurement() -> None:
    with Path(benchmark.__file__).with_suffix(".csv").open() as lines:
        times = {(row["case"], row["method"]): float(row["median_ms"]) for row in csv.DictReader(lines)}
    faster: dict[tuple[str, int], list[bool]] = {}
    for case in {case for case, _ in times}:
        length, _, _, boundary, _ = case.split("-")
        won = times[case, "chunked"] < times[case, "fft"]
        faster.setdefault((boundary, int(length.removeprefix("l"))), []).append(won)
    assert {boundary for boundary, _ in faster} == {"zero", "periodic"}
    for (boundary, length), won in faster.items():
        chosen = benchmark.choose_scan(length, 1, torch.device("cpu"), boundary=boundary)
        assert (2 * sum(won) > len(won)) == (chosen == "chunked"), (boundary, length, won)
