"""The page about the user's own files does what it says, and prints what it shows."""

import re
import shlex
from pathlib import Path

import pytest

from ssno.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "own-data.md"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_block_of_the_page_runs_and_every_output_is_printed(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    names: dict[str, object] = {}
    printed, shown, trained = "", 0, 0
    for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        if kind == "python":
            exec(block, names)
        elif kind == "sh":
            for line in block.strip().splitlines():
                main(shlex.split(line)[1:])
            printed = capsys.readouterr().out
        else:
            for line in filter(None, (line.strip() for line in block.splitlines())):
                if not line.startswith("──"):
                    assert squeezed(line) in squeezed(printed), line
                    shown += 1
                    trained += line.startswith("Train on it:")
    assert (shown > 10, trained) == (True, 1)
    assert (tmp_path / "tracer-inspect.png").is_file()


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def test_the_picture_of_the_page_is_there() -> None:
    for image in re.findall(r"!\[.*?\]\((.*?)\)", PAGE.read_text()):
        assert (PAGE.parent / image).stat().st_size > 10_000
