"""Pages whose tables are made from stored conclusions: `ssno reproduce --page REPRODUCTION.md`.

A block of a Markdown page between one of these lines and `<!-- end -->` is made anew from results/reproduce, which lies
beside the page or, for a page in docs, beside docs:

    <!-- summary -->                every experiment: what the paper reports, and how many claims hold
    <!-- verdicts NAME -->          the claims of one experiment
    <!-- table NAME NUMBER -->      one of its tables

so that no number between them is typed by hand. NAME is an experiment at scale `cpu`, or SCALE/NAME at another one.
Conclusions are first collected from where experiments put them.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, get_args

from ssno.base import DocumentError, read_document, write_whole
from ssno.experiments.catalogue import EXPERIMENTS
from ssno.experiments.conclusions import FORMAT, VERSION
from ssno.experiments.trial import Scale
from ssno.experiments.verdicts import OPEN

BLOCK = re.compile(r"(<!-- (summary|verdicts|table)(?: ([\w/-]+))?(?: (\d+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def write_page(page: Path, *, collected_from: Path) -> list[str]:
    """Collect conclusions into the project's results/reproduce and docs/images, fill the page, and name them."""
    folder = page.resolve().parent
    root = folder.parent if folder.name == "docs" else folder
    results, images = root / "results" / "reproduce", root / "docs" / "images"
    text, taken = page.read_text(encoding="utf-8"), []
    for path in sorted(collected_from.glob("*/finding.json")):
        made, scale = path.parent, conclusion(collected_from, path.parent.name)["scale"]
        name = place(made.name, scale)
        (results / name).mkdir(parents=True, exist_ok=True)
        images.mkdir(parents=True, exist_ok=True)
        for kept in ("finding.json", "runs.csv"):
            if (made / kept).is_file():
                shutil.copyfile(made / kept, results / name / kept)
        for picture in made.glob("*.png"):
            shown = images / f"reproduce-{place(picture.name, scale).replace('/', '-')}"
            if shown.name in text or shown.exists():  # on this page, or on another one
                shutil.copyfile(picture, shown)
        taken.append(name)
    write_whole(page, filled(text, results).encode())
    return taken


def place(name: str, scale: str) -> str:
    """Where in results/reproduce a conclusion lies, and what pages call it."""
    return name if scale == "cpu" else f"{scale}/{name}"


def filled(page: str, results: Path) -> str:
    """The text of a page with every block made anew."""

    def block(match: re.Match[str]) -> str:
        opening, kind, name, number, ending = match.groups()
        if kind == "summary":
            return f"{opening}{summary(results)}{ending}"
        found = conclusion(results, name)
        if kind == "verdicts":
            rows = [(v["claim"], f"**{v['answer']}**", v["evidence"]) for v in found["verdicts"]]
            return f"{opening}{markdown(('claim', 'our data say', 'numbers'), rows)}{ending}"
        sheet = found["tables"][int(number)]
        return f"{opening}{sheet['title']}\n\n{markdown(sheet['headings'], sheet['rows'])}{ending}"

    return BLOCK.sub(block, page)


def summary(results: Path) -> str:
    """A row per experiment with results: the paper's report, and claims by answer."""
    rows = []
    for (name, kind), scale in product(EXPERIMENTS.items(), get_args(Scale)):
        if not (results / place(name, scale) / "finding.json").is_file():
            continue
        found = conclusion(results, place(name, scale))
        answers = [verdict["answer"] for verdict in found["verdicts"]]
        told = [f"{answers.count(answer)} {answer}" for answer in ("holds", "does not hold") if answer in answers]
        told += [f"{answers.count(OPEN)} not decidable"] if OPEN in answers else []
        decided = [v for v in found["verdicts"] if v["answer"] != OPEN]
        first = (
            f"; first: {decided[0]['claim']} **{decided[0]['answer']}** ({decided[0]['evidence']})" if decided else ""
        )
        rows.append((f"`{name}`, {scale}", kind.published, ", ".join(told) + first))
    return markdown(("result, scale", "the paper", "claims in our data"), rows)


def conclusion(results: Path, name: str) -> Mapping[str, Any]:
    """What is stored about an experiment."""
    path = results / name / "finding.json"
    scale, _, experiment = name.rpartition("/")
    remedy = f"Make it again with: ssno reproduce {experiment}" + f" --scale {scale}" * bool(scale)
    found = read_document(path, format=FORMAT, versions=[VERSION], remedy=remedy)
    if not all(isinstance(found.get(key), list) for key in ("verdicts", "tables")) or "scale" not in found:
        raise DocumentError(f"{path} lacks its verdicts, tables or scale. {remedy}")
    return found


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; columns without any content are left out."""
    kept = [place for place in range(len(headings)) if any(row[place] for row in rows)]
    lines = [
        [headings[place] for place in kept],
        ["---"] * len(kept),
        *([row[place] for place in kept] for row in rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
