"""Where a run comes from and how to make it again: settings, environment, commands."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ssno.base import to_text
from ssno.data.load import find
from ssno.data.make.datasets import DATASETS, PRESETS, generate_command, split_name
from ssno.evaluation.record import Evaluation
from ssno.models.registry import ALL_MODELS
from ssno.report.contents import RunReport
from ssno.report.markup import commands, data_uri, facts, flatten, folded, section, text
from ssno.runs.folder import RunFolder


def origin(report: RunReport, identity: str) -> str:
    """Settings, environment, and the commands that repeat the run."""
    told = settings(report.run) + environment(report.run, report.evaluation)
    return section(f"{identity}-origin", "Where it comes from", told, level=3) + (
        section(f"{identity}-again", "How to make it again", again(report), level=3)
    )


def settings(run: RunFolder) -> str:
    """The whole configuration, by section."""
    described = run.config.get("run", {})
    parts = {"model": run.config["config"], "units": run.config.get("forecaster", {})}
    parts |= {name: values for name, values in described.items() if isinstance(values, Mapping) and name != "model"}
    titles = {"train": "Training", "valid": "Validation data"}
    return "".join(
        folded(titles.get(name, name.capitalize()), facts(flatten(values))) for name, values in parts.items() if values
    )


def environment(run: RunFolder, evaluation: Evaluation) -> str:
    """Versions, commit and hardware of training and of the evaluation."""
    trained: dict[str, Any] = dict(run.config.get("provenance", {}))
    return folded("Environment of the training", facts(trained)) + folded(
        "Environment of the evaluation", facts(evaluation.provenance)
    )


def again(report: RunReport) -> str:
    """Exact commands, with the description of the run to download."""
    run, lines = report.run, repeat_commands(report)
    if run.data is None:
        told = (
            "This run was started from Python with trajectories of its own. The program that did so makes it again; "
            "its settings are above."
        )
        return f"<p>{text(told)}</p>{commands(lines[:1])}"
    description = to_text(run.config["run"], indent=2)
    link = data_uri(description.encode(), "application/json")
    file = f'<a download="run.json" href="{link}">run.json</a>'
    return f"<p>Save {file}, the whole description of the run, and then:</p>{commands(lines)}"


def repeat_commands(report: RunReport) -> list[str]:
    """Commands from an empty folder to this page, in the same versions."""
    run, evaluation = report.run, report.evaluation
    known = run.config.get("provenance", {})
    commit = str(known.get("commit", "unknown"))
    lines = [f"# ssno {known.get('ssno', '')}, commit {commit}, torch {known.get('torch', '')}"]
    if run.data is not None and run.model not in ALL_MODELS:
        lines.append(f"# {run.model!r} is not a model of ssno: register it first, see docs/own-models.md")
    name = run.name.partition("/")[0]
    if run.data is not None:
        lines += data_commands(run)
        lines.append(f"ssno train --config run.json --name {name}")
    asked = " " + shlex.join(["--split", evaluation.split, *report.elsewhere])
    other = run.grid not in (None, tuple(evaluation.points))
    where = f" --points {' '.join(map(str, evaluation.points))}" if other else ""
    lines.append(f"ssno evaluate runs/{name}{asked}{where}")
    lines.append(f"ssno report runs/{name}{asked}" + (f" --points {evaluation.points[0]}" if other else ""))
    return lines


def data_commands(run: RunFolder) -> list[str]:
    """How the data came to be, if one of our solvers made them."""
    options = run.data
    assert options is not None
    if options.path is not None or split_name(options.name)[0] not in DATASETS:
        return [f"# the data: {options.path or options.name}"]
    extra: dict[str, Any] = {} if options.viscosity is None else {"viscosity": options.viscosity}
    preset = options.preset
    if preset is None:  # the largest that is there
        try:
            folder = find(options.name, root=Path("data"), preset=None, viscosity=options.viscosity)
            preset = next((size for size in PRESETS if folder.name.endswith(f"-{size}")), None)
        except FileNotFoundError:
            pass
    return [generate_command(options.name, preset or "paper", **extra)]  # type: ignore[arg-type]
