"""The training page: its code runs, its commands parse, its pictures and figures exist."""

import json
import re
from pathlib import Path

import pytest

from ssno.cli.train import parse, take_out

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "training.md").read_text()
COMMANDS = re.findall(r"^ssno train (ks .*)$", TEXT, flags=re.MULTILINE)


def test_the_examples_run_in_order(capsys) -> None:
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL):
        exec(compile(block, "docs/training.md", "exec"), names)
    assert capsys.readouterr().out == "[(1.0, 1), (0.5, 2), (0.0, 4)]\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_mean_something(command) -> None:
    words, chosen = take_out(command.split(), "--model", "--recipe", "--config", "--processes")
    assert parse(words, chosen).dataset == "ks"


def test_every_mode_of_unrolling_is_shown() -> None:
    shown = "".join(COMMANDS)
    assert all(f"--train.rollout.{name}" in shown for name in ("forcing", "frames", "cut", "recompute", "pushforward"))


def test_pictures_and_figures_are_the_stored_ones() -> None:
    assert all((ROOT / "docs" / path).is_file() for path in re.findall(r"\((images/.+?)\)", TEXT))
    rows = json.loads((ROOT / "results" / "memory.json").read_text())["rows"]
    assert all(0.8 < row["ratio"] < 1.2 for row in rows)
    for row in rows:
        if (row["model"], row["grid"], row["batch"], row["frames"]) == ("ssno", [64], 16, 24):
            line = next(line for line in TEXT.splitlines() if line.startswith(f"| {row['mode']} |") and "MiB" in line)
            assert f"| {row['measured_bytes'] / 2**20:.0f} MiB |" in line
