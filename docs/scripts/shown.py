"""Refresh what tutorials show as printed:  python docs/scripts/shown.py first-forecast fine-tune

Runs the blocks of a page in an empty folder, as its test does, and replaces every line of its `text` blocks by the line
that was printed with the same words, so that its numbers are today's; a table by the printed one whose heading has the
same first column, with the rows that the page had (and those named by `--rows`). A line that was not printed is an
error: the page then says something else than the program, which a person has to read.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import tyro

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.docs.test_pages import run_block  # noqa: E402
from tests.docs.test_tutorials import skeleton  # noqa: E402

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


TABLE = re.compile(r"^┏.*?^└.*?$", re.DOTALL | re.MULTILINE)


def refreshed(page: Path, rows: tuple[str, ...]) -> str:
    """The text of a page with the numbers of this run."""
    text, printed, names = page.read_text(encoding="utf-8"), "", {"__name__": "__main__"}
    made, place = "", 0
    for found in BLOCK.finditer(text):
        kind, block = found.groups()
        if kind == "text":
            for table in TABLE.findall(block):
                block = block.replace(table, same_table(table, printed, rows))
            rest = printed.splitlines()
            made += text[place : found.start(2)] + "".join(f"{now(line, rest)}\n" for line in block.splitlines())
            place = found.end(2)
        elif kind in ("python", "sh"):
            output = io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                run_block(kind, block, names, page=page.name)
            printed = output.getvalue()
    return made + text[place:]


def cells(line: str) -> list[str]:
    """The words of a line of a table."""
    return [cell.strip() for cell in re.split("[┃│]", line)[1:-1]]


def same_table(shown: str, printed: str, more: tuple[str, ...]) -> str:
    """The printed table that begins with the same column as the shown one, with the rows of that."""
    wanted = {cells(line)[0] for line in shown.splitlines() if line.startswith("│")} | set(more)
    heading = cells(shown.splitlines()[1])
    for table in TABLE.findall(printed):
        lines = table.splitlines()
        if cells(lines[1])[:2] == heading[:2]:
            kept = [line for line in lines[3:-1] if cells(line)[0] in wanted]
            return "\n".join([*lines[:3], *kept, lines[-1]])
    raise SystemExit(f"Not printed any more: a table of {heading}")


def now(line: str, rest: list[str]) -> str:
    """The line with the same words as it was printed now, taken from what was not shown yet; dots stay as they are."""
    words, numbers = skeleton(line)
    if not numbers or line.rstrip() in map(str.rstrip, rest):
        return line
    found = next((number for number, other in enumerate(rest) if skeleton(other)[0] == words), None)
    if found is None:
        raise SystemExit(f"Not printed any more: {line}")
    return rest.pop(found).rstrip()


def main(pages: Annotated[tuple[str, ...], tyro.conf.Positional], *, rows: tuple[str, ...] = ()) -> None:
    """Refresh these tutorials, by name."""
    os.environ["COLUMNS"] = "120"
    home = Path.cwd()
    for name in pages:
        page = ROOT / "docs" / "tutorials" / f"{name}.md"
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            text = refreshed(page, rows)
            os.chdir(home)
        page.write_text(text, encoding="utf-8")
        print(page)


if __name__ == "__main__":
    tyro.cli(main)
