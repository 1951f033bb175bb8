"""Findings on disk and in pages whose tables are made from them: `ssno reproduce --page docs/evidence`.

A block of a Markdown page between one of these lines and `<!-- end -->` is made anew from results/reproduce, which is
beside docs or, for a page elsewhere, beside the page:

    <!-- summary NAME ... -->       experiments, all by default: how many claims hold, and what the paper reports
    <!-- verdict NAME -->           one experiment in a sentence
    <!-- verdicts NAME -->          its claims
    <!-- table NAME NUMBER -->      one of its tables
    <!-- repeat NAME -->            the command that makes it again, and where it was made
    <!-- claim NAME ... -->         what all scales of some experiments say of one claim, and how sure that is
    <!-- claims -->                 the same for every heading of the page with such a block, as a table

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
from ssno.data.windows import dataset_conventions
from ssno.evaluation.statistics import LEVEL, holm
from ssno.evaluation.tables import csv_text, write_text
from ssno.paper.catalogue import experiments
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.reference import PAPER
from ssno.paper.results import NO_SKILL, OPEN, SPOKEN
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
        "verdicts": with_holm([asdict(verdict) for verdict in finding.verdicts]),
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
        verdicts=[verdict_row(verdict) for verdict in described["verdicts"]],
        pictures=[picture(draw, name) for name, draw in finding.figures.items()],
        tables=finding.tables,
        notes=(*finding.notes, f"The paper: {PAPER}."),
        environment=described["provenance"],
        reproduce=f"ssno reproduce {experiment.name} --scale {experiment.scale} --seeds {seeds}",
        settings=to_text(described["settings"], indent=1) if trials else "",
    )


# Pages whose tables are made from stored findings: `ssno reproduce --page docs/evidence`.

BLOCK = re.compile(r"(<!-- (summary|verdicts?|table|repeat|claims?)((?: [\w/-]+)*) -->\n).*?(<!-- end -->)", re.DOTALL)
CLAIM = re.compile(r"^## (.+?)$(?:(?!^## ).)*?<!-- claim((?: [\w-]+)+) -->", re.DOTALL | re.MULTILINE)


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
        if kind == "claim":
            return f"{opening}{claim(results, names, places)}{ending}"
        if kind == "claims":
            said = [(title, *answer(stored_findings(results, asked.split()))) for title, asked in CLAIM.findall(page)]
            return f"{opening}{markdown(('claim', 'our data say', 'confidence'), said)}{ending}"
        found = read_finding(results / f"{names[0]}.json")
        if kind == "verdict":
            return f"{opening}{sentence(found)}\n{ending}"
        if kind == "repeat":
            return f"{opening}{repetition(names[0], found)}{ending}"
        if kind == "verdicts":
            rows = [(claim, f"**{answer}**", *more) for claim, answer, *more in map(verdict_row, found["verdicts"])]
            return f"{opening}{markdown(VERDICT_HEADINGS, rows)}{ending}"
        table = found["tables"][int(names[1])]
        return f"{opening}{table['title']}\n\n{markdown(table['headings'], table['rows'])}{ending}"

    return BLOCK.sub(block, page)


def summary(results: Path, names: Sequence[str], places: Mapping[str, str]) -> str:
    """A row per experiment with results: claims by answer, and the paper's report."""
    rows, all_counts, all_survive = [], [0] * len(SPOKEN), [0, 0]
    for name, scale in product(names, get_args(Scale)):
        stored = stored_name(name, scale)
        if (results / f"{stored}.json").is_file():
            found = read_finding(results / f"{stored}.json")
            counts, survive = count_answers(found), survivors(found)
            shown = f"[`{name}`]({places[stored]})" if stored in places else f"`{name}`"
            cells = (*(str(count) for count in counts), surviving(survive))
            rows.append((f"{shown}, {scale}", *cells, experiments()[name].published))
            all_counts = [a + b for a, b in zip(all_counts, counts, strict=True)]
            all_survive = [a + b for a, b in zip(all_survive, survive, strict=True)]
    if len(rows) > 1:
        rows.append(("together", *(str(count) for count in all_counts), surviving(all_survive), ""))
    return markdown(("result, scale", *SPOKEN.values(), "after Holm", "the paper"), rows)


def stored_findings(results: Path, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """What is stored of some experiments, by name, the smallest scale first."""
    every = (stored_name(name, scale) for name, scale in product(names, get_args(Scale)))
    return {stored: read_finding(path) for stored in every if (path := results / f"{stored}.json").is_file()}


def claim(results: Path, names: Sequence[str], places: Mapping[str, str]) -> str:
    """A line per finding about a claim, then all of them in two words."""
    found = stored_findings(results, names)
    lines = [
        f"- {sentence(one).partition(' The paper: ')[0]} [Page]({places.get(name, 'index.md')})"
        for name, one in found.items()
    ]
    told, confidence = answer(found)
    return "\n".join([*lines, f"- Together: **{told}**; confidence {confidence}.", ""])


def answer(found: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    """What findings say of one claim of the paper, and how sure that is. The longest trainings of each count."""
    longest = {one["experiment"]: one for one in found.values()}.values()
    holds, fails, *rest = (sum(counts) for counts in zip(*map(count_answers, longest), strict=True))
    survive, decided = (sum(counts) for counts in zip(*map(survivors, longest), strict=True))
    total = holds + fails + sum(rest)
    told = "not decidable here"
    if 2 * (holds + fails) > total:
        told = "does not hold" if fails > holds else "holds" if holds == total else "holds in part"
    if told == "not decidable here":
        return told, "none"
    if not decided:
        return told, "high: computed, without training"
    kept = f"{survive} of {decided} tests survive Holm's correction"
    long = any(one["scale"] != "cpu" for one in longest)
    level = "low" if 2 * survive < decided else "high" if long and survive == decided else "medium"
    return told, f"{level}: {kept}{'' if long else ', short trainings only'}"


def surviving(counts: Sequence[int]) -> str:
    """How many of the claims that a test decides stay decided after Holm's correction."""
    return "{} of {}".format(*counts) if counts[1] else "-"


def survivors(found: Mapping[str, Any]) -> tuple[int, int]:
    """Claims of a finding that stay decided after Holm's correction, and those that a test decides without it."""
    decided = [v for v in found["verdicts"] if v["answer"] in ("holds", "does not hold") and v["p"] is not None]
    return sum(v["holm"] < LEVEL for v in decided), len(decided)


def with_holm(verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Verdicts with their p-value, None without a test, and with Holm's correction for all tests of one finding."""
    known = [v.get("p", _written_p(v["evidence"])) for v in verdicts]
    tested = [place for place, p in enumerate(known) if p is not None]
    corrected = dict(zip(tested, holm([known[place] for place in tested]), strict=True))
    return [
        {**v, "p": p, "holm": corrected.get(place)} for place, (v, p) in enumerate(zip(verdicts, known, strict=True))
    ]


def _written_p(evidence: str) -> float | None:
    """The p-value in the words of a finding of before it was a number."""
    written = re.search(r"\bp = ([\d.]+(?:e-?\d+)?)", evidence)
    return float(written[1]) if written else None


VERDICT_HEADINGS = ("claim", "our data say", "numbers", "Holm's p")


def verdict_row(verdict: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """A claim, the answer, what is behind it, and its corrected p-value."""
    corrected = "" if verdict["holm"] is None else f"{verdict['holm']:.2g}"
    return verdict["claim"], verdict["answer"], verdict["evidence"], corrected


def sentence(found: Mapping[str, Any]) -> str:
    """How many claims of a finding hold, and what the paper reports."""
    (holds, *others), survive = count_answers(found), survivors(found)
    total = holds + sum(others)
    told = f"**{holds} of {total} claim{'s hold' if total != 1 else ' holds'}**"
    rest = [f"{count} {word}" for count, word in zip(others, ("do not", OPEN, NO_SKILL), strict=True) if count]
    corrected = f" {surviving(survive)} decided by a test stay so after Holm's correction." if survive[1] else ""
    return (
        f"{', '.join((told, *rest)).replace(', 1 do not', ', 1 does not')} (`{found['experiment']}`, scale "
        f"{found['scale']}).{corrected}{f' {OLDER}' if of_older_recipe(found) else ''} The paper: {found['published']}"
    )


OLDER = "Trained with AdamW, as recipe `fast` was before SOAP, and not run again since."


def of_older_recipe(found: Mapping[str, Any]) -> bool:
    """Whether its runs were trained when there was no choice of an optimiser; clouds of points have AdamW still."""
    old = (run for run in found["settings"].values() if "optimizer" not in run.get("train", {"optimizer": None}))
    return any(not dataset_conventions(run["data"]["name"]).geometry.is_steady for run in old)


def count_answers(found: Mapping[str, Any]) -> list[int]:
    """How many claims have each answer."""
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
    return {**found, "verdicts": with_holm(found["verdicts"])}


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; columns without any content are left out, spreads stay on the line of their mean."""
    columns = [place for place in range(len(headings)) if any(row[place] for row in rows)]
    lines = [
        [headings[place] for place in columns],
        ["---"] * len(columns),
        *([row[place].replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}") for place in columns] for row in rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
