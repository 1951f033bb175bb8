"""Names that come from files, made safe for files, terminal and figures."""

import io

import pytest
from rich.table import Table
from rich.text import Text

from ssno.base.formatting import LONGEST, as_file_name, printable
from ssno.base.terminal import Console


@pytest.mark.parametrize("name", ["u", "velocity_x", "température", "Re-100", "a.b", "压力"])
def test_ordinary_names_are_file_names_already(name: str) -> None:
    assert as_file_name(name) == name


PLACES = ["", ".", "..", "/etc/x", "../../x", "a/b", "C:\\x", "-rf", ".hidden"]
LETTERS = ["a\0b", "\x1b[2J", "u\n", "\udcff", "a b", "u" * 9999, "压" * 99]


@pytest.mark.parametrize("name", PLACES + LETTERS)
def test_any_other_name_becomes_a_plain_file_name(name: str, tmp_path) -> None:
    safe = as_file_name(name)
    (tmp_path / safe).write_text("")
    assert [path.name for path in tmp_path.iterdir()] == [safe]
    assert safe[0] not in ".-"
    assert safe.isprintable()
    assert len(safe.encode()) <= LONGEST + 9


def test_names_that_differ_have_files_that_differ() -> None:
    names = ["a/b", "a_b", "a\\b", "a b", "u" * 100, "u" * 101]
    assert len({as_file_name(name) for name in names}) == len(names)


def test_characters_that_act_are_spelt_out() -> None:
    assert printable("u\x1b[2J\u202e\x07\udcff\r") == r"u\x1b[2J\u202e\x07\udcff\r"
    assert printable("two\nlines\tand ü²") == "two\nlines\tand ü²"


def test_the_terminal_obeys_neither_markup_nor_escapes_in_strings() -> None:
    name = "[red]u[/] [link=https://x.invalid]:smile: \x1b[31m [/nothing]"
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=200, color_system="standard")
    table = Table(name, title=name)
    table.add_row(name)
    console.print(table)
    console.print(name, highlight=False)
    console.print(Text.assemble((name, "bold")))
    console.rule(name)
    console.print(name)  # highlighted: colours between the words
    assert shown.getvalue().count("[red]u[/] [link=https://x.invalid]:smile: \\x1b[31m [/nothing]") == 5
    assert "\x1b[31m" not in shown.getvalue()
    assert "\x1b[1m" in shown.getvalue(), "what we want bold is bold"
