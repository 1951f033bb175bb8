"""Write every tutorial as a notebook: `python docs/scripts/notebooks.py`, before the site is built.

Blocks of `python` become cells, commands in `sh` blocks become cells that call the shell; everything else (text,
printed lines, commands for other machines) stays Markdown. Cells have no outputs. The files go to
docs/tutorials/notebooks, which git ignores; links are adjusted to that folder.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).resolve().parents[1] / "tutorials"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)]+\))")


def notebook(page: str) -> dict[str, Any]:
    """A page as the JSON of a notebook, format 4.5."""
    cells: list[dict[str, Any]] = []

    def add(kind: str, text: str) -> None:
        if not text.strip():
            return
        cell = {"cell_type": kind, "id": f"cell-{len(cells):03}", "metadata": {}, "source": text.strip("\n")}
        cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))

    place = 0
    for block in BLOCK.finditer(page):
        add("markdown", relinked(page[place : block.start()]))
        language, code = block.groups()
        add("code", code if language == "python" else re.sub(r"^(?=ssno )", "!", code, flags=re.MULTILINE))
        place = block.end()
    add("markdown", relinked(page[place:]))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def relinked(text: str) -> str:
    """Links as seen from a folder deeper; those to other tutorials lead to their notebooks."""

    def moved(link: re.Match[str]) -> str:
        target = link[2] if link[2].startswith("../") else link[2].replace(".md", ".ipynb")
        return link[1] + ("../" + target if link[2].startswith("../") else target)

    return LINK.sub(moved, text)


def write(folder: Path) -> list[Path]:
    """All notebooks into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for page in sorted(set(TUTORIALS.glob("*.md")) - {TUTORIALS / "index.md"}):
        path = folder / f"{page.stem}.ipynb"
        path.write_text(
            json.dumps(notebook(page.read_text(encoding="utf-8")), indent=1, ensure_ascii=False) + "\n", "utf-8"
        )
        written.append(path)
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=TUTORIALS / "notebooks")
    for path in write(parser.parse_args().out):
        print(path)
