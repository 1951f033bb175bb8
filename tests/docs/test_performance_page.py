"""The performance page: its commands are understood, its tables are the stored rows, its pictures are there."""

import re
import shlex
from pathlib import Path

import pytest
from benchmarks.__main__ import BASELINE, main
from benchmarks.catalogue import catalogue, chosen
from benchmarks.rows import read
from benchmarks.tables import BEGIN, END, tables

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "performance.md"
COMMANDS = re.findall(
    r"python -m benchmarks\b(.*)", "".join(re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL))
)


def test_every_command_names_options_and_entries_that_exist() -> None:
    assert len(COMMANDS) == 5
    for command in COMMANDS:
        words = shlex.split(command, comments=True)
        known = main.__doc__ or ""
        assert all(word.removeprefix("--").replace("list", "list_names") in known for word in words if word[:2] == "--")
        names = [word for word in words if word[:2] != "--" and "/" not in word]
        assert chosen(catalogue(), names)


def test_the_tables_are_those_of_the_stored_rows() -> None:
    shown = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    assert shown.strip() == tables(read(BASELINE)).strip(), "run `python -m benchmarks --page docs/performance.md`"


@pytest.mark.parametrize("link", re.findall(r"\]\(((?!http).*?)\)", PAGE.read_text()))
def test_every_link_leads_to_a_file(link: str) -> None:
    assert (PAGE.parent / link).is_file()
