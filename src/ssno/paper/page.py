"""Findings on disk and in pages whose tables are made from them: `ssno reproduce --page REPRODUCTION.md`.

A block of a Markdown page between one of these lines and `<!-- end -->` is made anew from results/reproduce, which is
beside the page or, for a page in docs, beside docs:

    <!-- summary -->                every experiment: what the paper reports, and how many claims hold
    <!-- verdicts NAME -->          the claims of one experiment
    <!-- table NAME NUMBER -->      one of its tables

so that no number between them is typed by hand. NAME is an experiment at scale `cpu`, or SCALE/NAME at another one.
Findings are first collected from where experiments put them.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any, get_args

from ssno.base import DocumentError, provenance, read_document, to_text, write_document, write_whole
from ssno.evaluation.tables import csv_text, write_text
from ssno.paper.catalogue import experiments
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.reference import PAPER
from ssno.paper.results import OPEN
from ssno.paper.trial import Scale, Trial
from ssno.plots.style import save
from ssno.report.template import picture, render

# A finding on disk: numbers as JSON and CSV with where they come from, pictures, and one HTML page.
#
# runs/reproduce/cpu/headline/
#     finding.json    verdicts, tables, settings, versions, commit, hardware
#     runs.csv        one line per run with all its errors
#     headline.png    the figures
#     index.html      everything on one page that needs no network

FORMAT, VERSION = "ssno-finding", 1
SETTINGS = "Settings and environment"


def store(experiment: Experiment, finding: Finding, trials: Sequence[Trial], folder: Path) -> list[Path]:
    """Write everything atomically and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    content = document(experiment, finding, trials)
    write_document(folder / "finding.json", content, format=FORMAT, version=VERSION)
    pictures = [save(draw(), folder / f"{name}.png") for name, draw in finding.figures.items()]
    if finding.records:
        write_text(folder / "runs.csv", csv_text(finding.records))
    write_whole(folder / "index.html", page(experiment, finding, trials).encode())
    return [folder / "finding.json", folder / "index.html", *pictures]


def document(experiment: Experiment, finding: Finding, trials: Sequence[Trial]) -> dict[str, Any]:
    """What finding.json holds. One setting stands for all its seeds."""
    settings = {trial.name.rpartition("-seed")[0]: trial.run.to_json() for trial in trials}
    columns = list(dict.fromkeys(name for record in finding.records for name in record))
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "scale": experiment.scale,
        "seeds": len(experiment.seed_range()),
        "published": experiment.published,
        "verdicts": [asdict(verdict) for verdict in finding.verdicts],
        "tables": [asdict(one) for one in finding.tables],
        "notes": list(finding.notes),
        "settings": settings,
        "runs": {"columns": columns, "rows": [[record.get(name) for name in columns] for record in finding.records]},
        "provenance": provenance(),
    }


def page(experiment: Experiment, finding: Finding, trials: Sequence[Trial]) -> str:
    """The finding as a page."""
    described = document(experiment, finding, trials)
    seeds = described["seeds"]
    return render(
        "finding.html",
        command="ssno reproduce",
        heading=experiment.title,
        lead=f"The paper: {experiment.published} Scale {experiment.scale}, {seeds} seed{'s' if seeds != 1 else ''}.",
        links=[(name.partition(" ")[0].lower(), name) for name in ("Verdicts", "Figures", "Tables", SETTINGS)],
        verdicts=[(verdict.claim, verdict.answer, verdict.evidence) for verdict in finding.verdicts],
        pictures=[picture(draw, name) for name, draw in finding.figures.items()],
        tables=finding.tables,
        notes=(*finding.notes, f"The paper: {PAPER}."),
        environment=described["provenance"],
        reproduce=f"ssno reproduce {experiment.name} --scale {experiment.scale} --seeds {seeds}",
        settings=to_text(described["settings"], indent=1) if trials else "",
    )


# Pages whose tables are made from stored findings: `ssno reproduce --page REPRODUCTION.md`.

BLOCK = re.compile(r"(<!-- (summary|verdicts|table)(?: ([\w/-]+))?(?: (\d+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def write_page(page: Path, *, collected_from: Path) -> list[str]:
    """Collect findings into the project's results/reproduce and docs/images, fill the page, and name them."""
    folder = page.resolve().parent
    root = folder.parent if folder.name == "docs" else folder
    results, images = root / "results" / "reproduce", root / "docs" / "images"
    text, taken = page.read_text(encoding="utf-8"), []
    for path in sorted(collected_from.glob("*/finding.json")):
        made, scale = path.parent, read_finding(path)["scale"]
        name = stored_name(made.name, scale)
        stored = results / f"{name}.json"
        for folder in (stored.parent, images):
            folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, stored)
        for file in made.glob("*.png"):
            shown = images / f"reproduce-{stored_name(file.name, scale).replace('/', '-')}"
            if shown.name in text or shown.exists():  # on this page, or on another one
                shutil.copyfile(file, shown)
        taken.append(name)
    write_whole(page, filled(text, results).encode())
    return taken


def stored_name(name: str, scale: str) -> str:
    """What a finding is called in results/reproduce and in pages."""
    return name if scale == "cpu" else f"{scale}/{name}"


def filled(page: str, results: Path) -> str:
    """The text of a page with every block made anew."""

    def block(match: re.Match[str]) -> str:
        opening, kind, name, number, ending = match.groups()
        if kind == "summary":
            return f"{opening}{summary(results)}{ending}"
        found = read_finding(results / f"{name}.json")
        if kind == "verdicts":
            rows = [(v["claim"], f"**{v['answer']}**", v["evidence"]) for v in found["verdicts"]]
            return f"{opening}{markdown(('claim', 'our data say', 'numbers'), rows)}{ending}"
        table = found["tables"][int(number)]
        return f"{opening}{table['title']}\n\n{markdown(table['headings'], table['rows'])}{ending}"

    return BLOCK.sub(block, page)


def summary(results: Path) -> str:
    """A row per experiment with results: the paper's report, and claims by answer."""
    rows = []
    for (name, experiment), scale in product(experiments().items(), get_args(Scale)):
        path = results / f"{stored_name(name, scale)}.json"
        if not path.is_file():
            continue
        found = read_finding(path)
        answers = [verdict["answer"] for verdict in found["verdicts"]]
        told = [f"{answers.count(answer)} {answer}" for answer in ("holds", "does not hold") if answer in answers]
        told += [f"{answers.count(OPEN)} not decidable"] if OPEN in answers else []
        decided = [v for v in found["verdicts"] if v["answer"] != OPEN]
        first = (
            f"; first: {decided[0]['claim']} **{decided[0]['answer']}** ({decided[0]['evidence']})" if decided else ""
        )
        rows.append((f"`{name}`, {scale}", experiment.published, ", ".join(told) + first))
    return markdown(("result, scale", "the paper", "claims in our data"), rows)


def read_finding(path: Path) -> Mapping[str, Any]:
    """What `store` wrote about an experiment, or what was collected of it."""
    remedy = "Make it again with `ssno reproduce`."
    found = read_document(path, format=FORMAT, versions=[VERSION], remedy=remedy)
    if not all(isinstance(found.get(key), list) for key in ("verdicts", "tables")) or "scale" not in found:
        raise DocumentError(f"{path} lacks its verdicts, tables or scale. {remedy}")
    return found


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; columns without any content are left out."""
    columns = [place for place in range(len(headings)) if any(row[place] for row in rows)]
    lines = [
        [headings[place] for place in columns],
        ["---"] * len(columns),
        *([row[place] for place in columns] for row in rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
