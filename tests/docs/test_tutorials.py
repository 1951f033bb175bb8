"""Tutorials do what they say, their notebooks are whole, and every command that an assistant is taught parses.

Blocks run as in `test_pages`. Numbers differ between processors, so a line of `text` must have been printed with the
same words and with numbers within a factor of two; durations and columns of seconds are not compared.
"""

import json
import re
import runpy
from pathlib import Path

import pytest
from tests.docs.test_pages import ROOT, blocks, check_parses, commands_on, run_block

from ssno.data.datasets import DATASETS
from ssno.models import registry

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
COMING_FROM = sorted((ROOT / "docs" / "coming-from").glob("*.md"))
SKILL = ROOT / "skills" / "ssno" / "SKILL.md"
PAGES = [*TUTORIALS, *COMING_FROM, SKILL]
SLOW = {"compare", "export-a-model", "fine-tune", "other-grids", "several-gpus"}  # 5 to 12 s each
DURATION = re.compile(r"\b\d[\d.]* (?:ms|s|min|h)\b|\b\d\d:\d\d:\d\d\b")
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")


def without_seconds(text: str) -> str:
    """A text whose tables have no numbers in columns called seconds."""
    column, lines = None, []
    for line in text.splitlines():
        cells = re.split("[┃│]", line)
        if "┃" in line:
            column = next((n for n, cell in enumerate(cells) if cell.strip() == "seconds"), None)
        elif column is not None and len(cells) > column:
            line = "│".join(cell if n != column else re.sub(r"\d+", "duration", cell) for n, cell in enumerate(cells))
        lines.append(line)
    return "\n".join(lines)


def skeleton(line: str) -> tuple[str, list[float]]:
    """The words of a line, without the frames of tables, and its numbers."""
    plain = " ".join(re.sub(r"[│┃┆|]", " ", DURATION.sub("(duration)", line)).split())
    return NUMBER.sub("#", plain), [float(number.replace(",", "")) for number in NUMBER.findall(plain)]


def alike(one: float, other: float) -> bool:
    return one == other or max(abs(one), abs(other)) < 1e-2 or (one * other > 0 and 0.5 <= one / other <= 2)


def check_shown(line: str, printed: str) -> None:
    """Whether a line of the page was printed, up to a factor of two in its numbers."""
    words, numbers = skeleton(line)
    if not words.strip(".─━┏┓┗┛┡┩┳┻╇┌┐└┘┬┴┼├┤╋ "):
        return
    candidates = [found for found in map(skeleton, printed.splitlines()) if found[0] == words]
    assert candidates, f"not printed: {line}"
    assert any(all(map(alike, numbers, found)) for _, found in candidates), f"{line}: printed {candidates}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.verify] if page.stem in SLOW else [])
        for page in [*TUTORIALS, SKILL]
        if page.stem != "index"
    ],
)
def test_every_block_runs_and_prints_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(registry, "REGISTERED", {})
    for name in [name for name in ("fisher",) if name not in DATASETS]:  # forget afterwards what the page registers
        monkeypatch.setitem(DATASETS, name, DATASETS["ks"])
        del DATASETS[name]
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for kind, block in blocks(page):
        if kind == "text":
            for line in without_seconds(block).splitlines():
                check_shown(line, without_seconds(printed))
        elif kind in ("python", "sh"):
            run_block(kind, block, names, page=page.name)
            out, err = capsys.readouterr()
            printed = out + err


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=f"{page.parent.name}/{page.stem}") for page in PAGES if commands_on(page)]
)
def test_every_command_parses(page: Path) -> None:
    for command in commands_on(page):
        with pytest.MonkeyPatch.context() as patched:
            check_parses(command, patched)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_pages_are_short_and_link_to_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("\n") <= 150
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text):
        assert "://" in target or (page.parent / target).exists(), target


@pytest.mark.parametrize("folder", ["tutorials", "coming-from"])
def test_the_index_lists_every_page(folder: str) -> None:
    index = (ROOT / "docs" / folder / "index.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs" / folder).glob("*.md")} - {"index.md"}
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == pages


def test_notebooks_have_the_code_of_the_pages_and_no_outputs(tmp_path: Path) -> None:
    written = runpy.run_path(str(ROOT / "docs" / "scripts" / "notebooks.py"))["write"](tmp_path)
    assert [path.stem for path in written] == [page.stem for page in TUTORIALS if page.stem != "index"]
    for path in written:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
        assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
        expected = [(kind, block.strip()) for kind, block in blocks(ROOT / "docs" / "tutorials" / f"{path.stem}.md")]
        assert [re.sub(r"^!", "", cell["source"], flags=re.MULTILINE) for cell in code] == [
            block for kind, block in expected if kind in ("python", "sh")
        ]
        text = "\n".join(cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown")
        for target in re.findall(r"\]\((?!\w+:)([^)#]+)", text):  # as seen from docs/tutorials/notebooks
            beside = (tmp_path / target).exists()
            assert beside or (ROOT / "docs" / "tutorials" / "notebooks" / target).resolve().exists(), target
