"""Every command and program in docs/data.md runs as it stands."""

import re
import shlex
from pathlib import Path

import pytest

from ssno.cli.main import main

TEXT = (Path(__file__).parents[2] / "docs" / "data.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) >= 6
    for program, *arguments in commands:
        assert program == "ssno"
        main([*arguments, *(["--workers", "1"] if "generate" in arguments else [])])
    assert "complete" in capsys.readouterr().out
    assert (tmp_path / "data/heat-array/manifest.json").is_file()


def test_programs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for program in blocks("python"):
        exec(compile(program, "docs/data.md", "exec"), {"__name__": "__main__"})
    assert (tmp_path / "data/ks-0.1-mine/manifest.json").is_file()
