"""The page about looking at runs does what it says."""

import re
import shlex
from pathlib import Path

import pytest

from ssno.cli.main import find_verb, main

PAGE = Path(__file__).parents[2] / "docs" / "looking.md"


@pytest.mark.verify
def test_every_block_of_the_page_runs(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    programs = commands = 0
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        if kind == "python":
            exec(compile(block, "docs/looking.md", "exec"), {"__name__": "__main__"})
            programs += 1
            continue
        for line in block.strip().splitlines():
            main(shlex.split(line)[1:])
            commands += 1
    assert (programs, commands) == (1, 9)
    assert "layer" in capsys.readouterr().out
    made = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    wanted = {
        "next.h5",
        "far.h5",
        "runs/look/report.html",
        "runs/look/inspect/modes-x.png",
        "runs/look/rollout/test-1.png",
    }
    assert wanted <= made
    assert "later.h5" not in made


def test_every_command_of_the_page_is_one_we_have() -> None:
    lines = re.findall(r"^ssno (.+)$", PAGE.read_text(), re.MULTILINE)
    assert {find_verb(line.split())[0] for line in lines} >= {"predict", "rollout", "inspect", "report"}


def test_the_pictures_of_the_page_are_there_and_small() -> None:
    images = re.findall(r"!\[.*?\]\((.*?)\)", PAGE.read_text())
    assert len(images) == 3
    for image in images:
        assert 10_000 < (PAGE.parent / image).stat().st_size < 300_000
