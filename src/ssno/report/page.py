"""The whole page: an overview, a part for every run, and the template around them.

    html = build_page([gather(run, data, evaluation, record=lines)])

The template around them is `ssno.report.markup`. Nothing is fetched: the page forbids itself every connection
(Content-Security-Policy), so what is not inside it does not exist.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ssno.base import to_text
from ssno.base.formatting import number
from ssno.data.datasets import DATASETS, PRESETS, generate_command, split_name
from ssno.data.load import find
from ssno.data.trajectories import Trajectories
from ssno.evaluation.examples import make_examples
from ssno.evaluation.record import Evaluation
from ssno.evaluation.seeds import check_comparable, group_by_seed
from ssno.evaluation.statistics import rank
from ssno.forecasting.forecaster import Forecaster
from ssno.models.registry import ALL_MODELS
from ssno.plots.curves import calibration_plot, ensemble_bands, error_bands
from ssno.report.markup import commands, data_uri, facts, flatten, folded, picture, section, shell, table, text
from ssno.report.sections import RunReport, band, metrics, numbers, run_sections, verdict
from ssno.runs.open import RunFolder

# Where a run comes from and how to make it again: settings, environment, commands.


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


# Several seeds as one forecast: its score, its uncertainty, and whether the uncertainty is honest.


@dataclass(frozen=True)
class EnsembleReport:
    """The evaluation of an ensemble, its members, and the trajectories it was scored on."""

    evaluation: Evaluation
    members: Sequence[Forecaster]
    data: Trajectories


def ensemble_section(report: EnsembleReport) -> str:
    """Numbers, calibration and, in one dimension, the mean with its bands on the median trajectory."""
    evaluation = report.evaluation
    drawn = []
    if evaluation.calibration is not None:
        calibration = evaluation.calibration
        times = evaluation.times if len(evaluation.times) == len(calibration.spread) else None
        drawn.append(
            picture(
                lambda: calibration_plot(calibration, times=times),
                "Coverage of the ensemble's intervals, and its spread against its error",
                caption="Is the ensemble as uncertain as it says?",
            )
        )
    if len(report.data.axes) == 1:
        drawn.append(bands_picture(report))
    body = f"<p>{text(verdict(evaluation))}</p>{numbers(evaluation)}"
    return f'{body}<div class="pictures">{"".join(drawn)}</div><p></p>{metrics(evaluation)}'


def bands_picture(report: EnsembleReport) -> str:
    """Mean and deviations at a few times, on the median trajectory."""
    errors = report.evaluation.scores.trajectory_errors
    median = sorted(range(len(errors)), key=errors.__getitem__)[len(errors) // 2]
    seen = [make_examples(member, report.data, [median]) for member in report.members]
    members = torch.stack([examples.forecast[0, :, 0] for examples in seen]).numpy()
    truth, axis = seen[0].predicted_truth[0, :, 0].numpy(), report.data.axes[0]
    times, field = seen[0].predicted_times, report.data.fields[0]
    return picture(
        lambda: ensemble_bands(axis.coordinates(), members, truth, times=times, field=field),
        "Mean of the ensemble with one and two standard deviations",
        caption=f"Trajectory {median}, the median: mean, one and two standard deviations, truth dashed.",
    )


# The whole page: an overview, a part for every run, and the template around them.

WITHIN = {
    "errors": "Errors",
    "forecasts": "Forecasts",
    "inside": "Inside the model",
    "origin": "Where it comes from",
    "again": "How to make it again",
}
COLUMNS = ("rel_l2", "rel_l2_onestep", "vrmse", "valid_time")


def build_page(reports: Sequence[RunReport], *, ensemble: EnsembleReport | None = None) -> str:
    """One page about one or several runs, and about their ensemble if there is one."""
    if not reports:
        raise ValueError("`reports` is empty: a page needs at least one run.")
    evaluations = [report.evaluation for report in reports]
    parts, links = [], []
    if len(reports) > 1:
        parts.append(section("overview", "Overview", overview(evaluations)))
        links.append(("overview", "Overview"))
    if ensemble is not None:
        parts.append(section("ensemble", "Ensemble", ensemble_section(ensemble)))
        links.append(("ensemble", "Ensemble"))
    for place, report in enumerate(reports):
        identity, name = f"run-{place}", report.evaluation.name
        lead = f"<p>{text(verdict(report.evaluation))}</p>" if len(reports) > 1 else ""
        body = run_sections(report, identity) + origin(report, identity)
        parts.append(section(identity, name if len(reports) > 1 else "Result", lead + body))
        alone = [("run-0", "Result"), *((f"{identity}-{key}", label) for key, label in WITHIN.items())]
        links += [(identity, name)] if len(reports) > 1 else alone
    first = evaluations[0]
    names = ", ".join(evaluation.name for evaluation in evaluations)
    models = ", ".join(dict.fromkeys(evaluation.model for evaluation in evaluations))
    heading = f"{names}: {models} on {first.dataset}, {' x '.join(map(str, first.points))} points"
    lead = verdict(first) if len(reports) == 1 else f"{len(reports)} runs on {first.dataset}."
    return shell(title=f"{heading} - ssno report", heading=heading, lead=lead, links=links, content="\n".join(parts))


def overview(evaluations: Sequence[Evaluation]) -> str:
    """Runs side by side if they can be compared, else why not."""
    rows = [
        (e.name, e.model, f"{e.parameters:,}", *(number(e.scores.means.get(metric)) for metric in COLUMNS))
        for e in evaluations
    ]
    shown = table(("run", "model", "parameters", *COLUMNS), rows, caption="lower is better, but for valid_time")
    try:
        check_comparable(evaluations)
    except ValueError as error:
        return f'<p class="note">{text(error)}</p>{shown}'
    bands = {evaluation.name: band(evaluation.scores) for evaluation in evaluations}
    first = evaluations[0]
    drawn = picture(
        lambda: error_bands(first.times, bands, given_until=first.given_until),
        "Relative error over time of every run",
        caption="Error of every predicted frame: mean, and the middle half of the trajectories.",
    )
    return f"<p>{text(judge(evaluations))}</p>{shown}{drawn}"


def judge(evaluations: Sequence[Evaluation]) -> str:
    """Which model is best, by a test over seeds; or that it cannot be told."""
    try:
        groups = group_by_seed(evaluations, ["rel_l2"])
    except ValueError as error:
        return str(error)
    if len(groups) < 2:
        return f"{len(evaluations)} seeds of one model."
    return rank({group.name: group.summaries["rel_l2"] for group in groups}).sentence
