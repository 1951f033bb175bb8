"""Fill the tables of REPRODUCTION.md from results/reproduce:  python docs/scripts/reproduction.py [--collect DIR]

A block between `<!-- verdicts NAME -->` or `<!-- table NAME NUMBER -->` and `<!-- end -->` is replaced by what
results/reproduce/NAME/finding.json says, so that no number in that file is typed by hand. With
`--collect runs/reproduce/cpu`, findings are first copied from there, and their pictures to docs/images.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import tyro

ROOT = Path(__file__).parents[2]
RESULTS, IMAGES, PAGES = (
    ROOT / "results" / "reproduce",
    ROOT / "docs" / "images",
    ("REPRODUCTION.md", "docs/training.md"),
)
BLOCK = re.compile(r"(<!-- (verdicts|table) ([\w-]+)(?: (\d+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def main(*, collect: Path | None = None) -> None:
    """Copy findings if asked to, then fill every page."""
    if collect is not None:
        for finding in sorted(collect.glob("*/finding.json")):
            take(finding.parent)
    for page in PAGES:
        path = ROOT / page
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


def take(folder: Path) -> None:
    """Copy one finding: numbers to results, pictures to docs."""
    target = RESULTS / folder.name
    target.mkdir(parents=True, exist_ok=True)
    for name in ("finding.json", "runs.csv"):
        shutil.copyfile(folder / name, target / name)
    for picture in folder.glob("*.png"):
        shutil.copyfile(picture, IMAGES / f"reproduce-{picture.name}")


def filled(page: str) -> str:
    """The page with every block made anew."""

    def block(match: re.Match[str]) -> str:
        opening, kind, name, number, ending = match.groups()
        finding = json.loads((RESULTS / name / "finding.json").read_text(encoding="utf-8"))
        if kind == "verdicts":
            rows = [(v["claim"], f"**{v['answer']}**", v["evidence"]) for v in finding["verdicts"]]
            return f"{opening}{markdown(('claim', 'our data say', 'numbers'), rows)}{ending}"
        sheet = finding["tables"][int(number)]
        return f"{opening}{sheet['title']}\n\n{markdown(sheet['headings'], sheet['rows'])}{ending}"

    return BLOCK.sub(block, page)


def markdown(headings: Any, rows: Any) -> str:
    """A table in Markdown; columns without any content are left out."""
    kept = [place for place in range(len(headings)) if any(row[place] for row in rows)]
    lines = [
        [headings[place] for place in kept],
        ["---"] * len(kept),
        *([row[place] for place in kept] for row in rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    tyro.cli(main)
