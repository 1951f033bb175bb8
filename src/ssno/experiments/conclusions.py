"""A finding on disk: numbers as JSON and CSV with where they come from, pictures, and one HTML page.

runs/reproduce/cpu/headline/
    finding.json    verdicts, tables, settings, versions, commit, hardware
    runs.csv        one line per run with all its errors
    headline.png    the figures
    index.html      everything on one page that needs no network
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ssno.base import provenance, to_text, write_document, write_whole
from ssno.evaluation.tables import csv_text, write_text
from ssno.experiments.experiment import Experiment, Finding
from ssno.experiments.paper import PAPER
from ssno.experiments.trial import Trial
from ssno.plots.style import save
from ssno.report.markup import commands, facts, folded, section, table, text
from ssno.report.pictures import picture
from ssno.report.shell import shell

FORMAT, VERSION = "ssno-finding", 1


def store(experiment: Experiment, finding: Finding, trials: Sequence[Trial], folder: Path) -> list[Path]:
    """Write everything, each file whole or not at all, and say where."""
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
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "scale": experiment.scale,
        "seeds": len(experiment.seed_range()),
        "published": experiment.published,
        "verdicts": [asdict(verdict) for verdict in finding.verdicts],
        "tables": [asdict(sheet) for sheet in finding.sheets],
        "notes": list(finding.notes),
        "settings": settings,
        "provenance": provenance(),
    }


def page(experiment: Experiment, finding: Finding, trials: Sequence[Trial]) -> str:
    """The finding as a page."""
    verdicts = [(verdict.claim, verdict.answer, verdict.evidence) for verdict in finding.verdicts]
    parts = [
        section("verdicts", "Verdicts", table(("claim", "our data say", "numbers"), verdicts)),
        section("pictures", "Pictures", "".join(picture(draw, name) for name, draw in finding.figures.items())),
        section("numbers", "Numbers", "".join(table(s.headings, s.rows, caption=s.title) for s in finding.sheets)),
    ]
    described = document(experiment, finding, trials)
    origin = facts({name: str(value) for name, value in described["provenance"].items()})
    settings = folded("Settings of every run", commands([to_text(described["settings"], indent=1)])) if trials else ""
    notes = "".join(f"<p>{text(note)}</p>" for note in (*finding.notes, f"The paper: {PAPER}."))
    again = commands([f"ssno reproduce {experiment.name} --scale {experiment.scale} --seeds {described['seeds']}"])
    parts.append(section("origin", "Where it comes from", f"{notes}{origin}{again}{settings}"))
    links = [
        ("verdicts", "Verdicts"),
        ("pictures", "Pictures"),
        ("numbers", "Numbers"),
        ("origin", "Where it comes from"),
    ]
    return shell(
        title=f"{experiment.title} - ssno reproduce",
        heading=experiment.title,
        lead=f"The paper: {experiment.published} Scale {experiment.scale}, {described['seeds']} seed(s).",
        links=links,
        content="\n".join(parts),
    )
