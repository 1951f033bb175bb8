"""The whole page: an overview, a part for every run, and the template around them.

    html = build_page([gather(run, data, evaluation, record=lines)])

The template around them is `ssno.report.shell`. Nothing is fetched: the page forbids itself every connection
(Content-Security-Policy), so what is not inside it does not exist.
"""

from collections.abc import Sequence

from ssno.base.amounts import number
from ssno.evaluation.record import Evaluation
from ssno.evaluation.seeds import check_comparable, group_by_seed
from ssno.evaluation.statistics import rank
from ssno.plots.bands import error_bands
from ssno.report.contents import RunReport
from ssno.report.markup import section, table, text
from ssno.report.origin import origin
from ssno.report.pictures import picture
from ssno.report.sections import band, run_sections, verdict
from ssno.report.shell import shell
from ssno.report.together import EnsembleReport, ensemble_section

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
