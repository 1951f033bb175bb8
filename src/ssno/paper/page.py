"""Findings on disk and in pages whose tables are made from them: `ssno reproduce --page docs/evidence`.

A block of a Markdown page between one of these lines and `<!-- end -->` is made anew from results/reproduce, which is
beside docs or, for a page elsewhere, beside the page:

    <!-- summary NAME ... -->       experiments, all by default: how many claims hold, and what the paper reports
    <!-- verdict NAME -->           one experiment in a sentence
    <!-- verdicts NAME -->          its claims
    <!-- table NAME NUMBER -->      one of its tables
    <!-- repeat NAME -->            the command that makes it again, and where it was made

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


# Pages whose tables are made from stored findings: `ssno reproduce --page docs/evidence`.

BLOCK = re.compile(r"(<!-- (summary|verdicts?|table|repeat)((?: [\w/-]+)*) -->\n).*?(<!-- end -->)", re.DOTALL)
SPOKEN = {"holds": "hold", "does not hold": "do not hold", OPEN: "not decidable"}


def write_pages(place: Path, *, collected_from: Path) -> list[str]:
    """Collect findings into results/reproduce and docs/images, fill a page or a folder of pages, and name them."""
    paths = sorted(place.glob("*.md")) if place.is_dir() else [place]
    folders = paths[0].resolve().parents
    root = next((folder.parent for folder in folders if folder.name == "docs"), folders[0])
    results, images = root / "results" / "reproduce", root / "docs" / "images"
    texts, taken = {path: path.read_text(encoding="utf-8") for path in paths}, []
    for path in sorted(collected_from.glob("*/finding.json")):
        made, scale = path.parent, read_finding(path)["scale"]
        name = stored_name(made.name, scale)
        stored = results / f"{name}.json"
        for folder in (stored.parent, images):
            folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, stored)
        for file in made.glob("*.png"):
            shown = images / f"reproduce-{stored_name(file.name, scale).replace('/', '-')}"
            if shown.exists() or any(shown.name in text for text in texts.values()):
                shutil.copyfile(file, shown)
        taken.append(name)
    for path, text in texts.items():
        write_whole(path, filled(text, results, places=find_places(texts)).encode())
    return taken


def find_places(texts: Mapping[Path, str]) -> dict[str, str]:
    """Which page has the verdict of which experiment."""
    return {
        names.split()[0]: path.name
        for path, text in texts.items()
        for _, kind, names, _ in BLOCK.findall(text)
        if kind == "verdict"
    }


def stored_name(name: str, scale: str) -> str:
    """What a finding is called in results/reproduce and in pages."""
    return name if scale == "cpu" else f"{scale}/{name}"


def filled(page: str, results: Path, *, places: Mapping[str, str]) -> str:
    """The text of a page with every block made anew; `places` are the pages to which the summary leads."""

    def block(match: re.Match[str]) -> str:
        opening, kind, named, ending = match.groups()
        names = named.split()
        if kind == "summary":
            return f"{opening}{summary(results, names or list(experiments()), places)}{ending}"
        found = read_finding(results / f"{names[0]}.json")
        if kind == "verdict":
            return f"{opening}{sentence(found)}\n{ending}"
        if kind == "repeat":
            return f"{opening}{repetition(names[0], found)}{ending}"
        if kind == "verdicts":
            rows = [(v["claim"], f"**{v['answer']}**", v["evidence"]) for v in found["verdicts"]]
            return f"{opening}{markdown(('claim', 'our data say', 'numbers'), rows)}{ending}"
        table = found["tables"][int(names[1])]
        return f"{opening}{table['title']}\n\n{markdown(table['headings'], table['rows'])}{ending}"

    return BLOCK.sub(block, page)


def summary(results: Path, names: Sequence[str], places: Mapping[str, str]) -> str:
    """A row per experiment with results: claims by answer, and the paper's report."""
    rows = []
    for name, scale in product(names, get_args(Scale)):
        stored = stored_name(name, scale)
        if (results / f"{stored}.json").is_file():
            counts = count_answers(read_finding(results / f"{stored}.json"))
            shown = f"[`{name}`]({places[stored]})" if stored in places else f"`{name}`"
            rows.append((f"{shown}, {scale}", *(str(count) for count in counts), experiments()[name].published))
    return markdown(("result, scale", *SPOKEN.values(), "the paper"), rows)


def sentence(found: Mapping[str, Any]) -> str:
    """How many claims of a finding hold, and what the paper reports."""
    holds, fails, undecided = count_answers(found)
    total = holds + fails + undecided
    told = f"**{holds} of {total} claim{'s hold' if total != 1 else ' holds'}**"
    rest = [f"{fails} do{'es' if fails == 1 else ''} not"] if fails else []
    rest += [f"{undecided} not decidable at this scale"] if undecided else []
    return (
        f"{', '.join((told, *rest))} (`{found['experiment']}`, scale {found['scale']}). The paper: {found['published']}"
    )


def count_answers(found: Mapping[str, Any]) -> list[int]:
    """How many claims hold, do not hold, and are not decidable."""
    answers = [verdict["answer"] for verdict in found["verdicts"]]
    return [answers.count(answer) for answer in SPOKEN]


def repetition(name: str, found: Mapping[str, Any]) -> str:
    """The command, and versions and hardware of the stored finding."""
    scale = "" if found["scale"] == "cpu" else f" --scale {found['scale']}"
    made = found["provenance"]
    return (
        f"```bash\nssno reproduce {found['experiment']}{scale}\n```\n\n"
        f"Stored: [results/reproduce/{name}.json](../../results/reproduce/{name}.json), {found['seeds']} seed"
        f"{'s' if found['seeds'] != 1 else ''}, commit `{made['commit'][:7]}`, torch {made['torch']}, "
        f"{made['cores']} cores of {made['processor']}.\n"
    )


def read_finding(path: Path) -> Mapping[str, Any]:
    """What `store` wrote about an experiment, or what was collected of it."""
    remedy = "Make it again with `ssno reproduce`."
    found = read_document(path, format=FORMAT, versions=[VERSION], remedy=remedy)
    if not all(isinstance(found.get(key), list) for key in ("verdicts", "tables")) or "scale" not in found:
        raise DocumentError(f"{path} lacks its verdicts, tables or scale. {remedy}")
    return found


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; columns without any content are left out, spreads stay on the line of their mean."""
    columns = [place for place in range(len(headings)) if any(row[place] for row in rows)]
    lines = [
        [headings[place] for place in columns],
        ["---"] * len(columns),
        *([row[place].replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}") for place in columns] for row in rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
