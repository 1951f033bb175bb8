"""Cost rows as files and tables: nothing is lost, verdicts are right."""

import csv
import json

import pytest

from ssno.base.terminal import Console
from ssno.evaluation.cost_table import fastest, operations_table, read_costs, task_tables, time_table, write_costs


def row(model: str, ms: float, **changes) -> dict:
    usual = {"task": "forward", "grid": "64", "batch": 1, "part": 1, "frames": 1, "parameters": 1234, "gflop": 0.5}
    times = {"ms": ms, "ms_lower": 0.98 * ms, "ms_upper": 1.02 * ms}
    return {"model": model, **usual, "gflop_published": None, "memory_mib": 3.0, **times, "config": {"a": 1}, **changes}


def text_of(*tables) -> str:
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as captured:
        for table in tables:
            console.print(table)
    return captured.get()


def test_stored_rows_come_back_and_say_where_they_come_from(tmp_path) -> None:
    rows = [row("ssno", 2.0), row("gkt", 1.0)]
    write_costs(rows, tmp_path / "new")
    assert read_costs(tmp_path / "new" / "cost.json") == rows
    provenance = json.loads((tmp_path / "new" / "cost.json").read_text())["provenance"]
    assert {"commit", "torch", "processor", "cores", "threads", "date"} <= set(provenance)
    with (tmp_path / "new" / "cost.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["model"] for line in lines] == ["ssno", "gkt"]
    assert lines[0]["commit"] == provenance["commit"]
    assert "config" not in lines[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON"),
        ('{"format": "other"}', "does not have the format 'ssno-cost', it has 'other'. Measure again with: ssno bench"),
        (
            '{"format": "ssno-cost", "version": 1, "rows": [{"model": "ssno"}]}',
            "has rows without some of model, task",
        ),
    ],
)
def test_other_files_are_refused(tmp_path, text, message) -> None:
    (tmp_path / "cost.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_costs(tmp_path / "cost.json")


def test_tables_put_resolutions_side_by_side() -> None:
    rows = [row("ssno", 2.0, gflop_published=0.026), row("ssno", 4.0, grid="128"), row("gkt", 1.0)]
    assert ["ssno", "2", "±2%", "4", "±2%"] in [
        line.split() for line in text_of(time_table(rows, task="forward")).splitlines()
    ]
    assert "0.500 | 0.026   0.500 | -" in text_of(operations_table(rows))


def test_tables_of_tasks_name_the_parts_of_a_batch() -> None:
    rows = [row("ssno", 9.0, grid="64x64", batch=32, task=task, part=4) for task in ("forward", "train")]
    text = text_of(*task_tables(rows, grid="64x64", batch=32))
    assert "3/8" in text
    assert "1,234" in text


def test_the_verdict_names_the_fastest_and_respects_noise() -> None:
    rows = [row("ssno", 2.0), row("gkt", 1.0), row("unet", 3.0)]
    assert fastest(rows) == ["forward, 64 points, batch 1: gkt is fastest (1 ms), ssno takes 2.0 times that."]
    assert fastest([row("ssno", 1.0), row("gkt", 2.0)]) == ["forward, 64 points, batch 1: ssno is fastest (1 ms)."]
    assert "ties with gkt" in fastest([row("ssno", 1.01), row("gkt", 1.0)])[0]
    assert fastest([row("gkt", 1.0)]) == []
