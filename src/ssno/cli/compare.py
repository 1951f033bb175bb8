"""`ssno compare RUN RUN ...`: evaluated runs in one table, seeds of a model together."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import tyro

from ssno.base import to_text
from ssno.base.formatting import number
from ssno.base.terminal import Console
from ssno.cli.options import SWEEP_TABLE
from ssno.evaluation.record import Evaluation, read_evaluation
from ssno.evaluation.seeds import SeedGroup, group_by_seed
from ssno.evaluation.statistics import Ranking, rank
from ssno.evaluation.tables import ResultTable, check_tables, csv_text, write_text
from ssno.models.pretrained import resolve_checkpoint, results_folder
from ssno.runs.checkpoint import evaluation_file

METRICS = ("rel_l2", "skill", "rel_l2_onestep", "vrmse", "correlation_time")


def compare(
    runs: tyro.conf.Positional[tuple[Path, ...]],
    *,
    metrics: tuple[str, ...] = METRICS,
    file: str = evaluation_file(),
    csv: Path | None = None,
    latex: Path | None = None,
    json: bool = False,
) -> None:
    """Put evaluated runs into one table: mean over seeds and its 95 % confidence, and whether one model is best.

    Runs that differ in nothing but their seed are one row. The first metric decides who is best, by Welch's test over
    seeds at 5 %; models that the seeds cannot tell apart are called not separable. Runs must have been evaluated
    (`ssno evaluate RUN`) on the same trajectories, frames and grid.

    Args:
        runs: Folders of runs, names of bundled checkpoints, or evaluation files.
        metrics: Columns of the table; the first one ranks.
        file: Which evaluation of each run, as evaluation-valid.json.
        csv: Write a CSV file: mean, spread and confidence of every metric. Replaces an earlier table, no other file.
        latex: Write a LaTeX table (booktabs), likewise.
        json: Print the groups and the verdict as JSON.
    """
    runs = tuple(run for run in runs if run.name != SWEEP_TABLE)
    if not runs:
        raise ValueError("`runs`: give the folders of evaluated runs, as runs/ks-ssno runs/ks-ffno.")
    if not metrics:
        raise ValueError("`--metrics` needs at least one name, as rel_l2.")
    check_tables(csv, latex)
    evaluations = [evaluation_of(run, file) for run in runs]
    if metrics == METRICS and not all("skill" in one.scores.means for one in evaluations):
        metrics = tuple(name for name in METRICS if name != "skill")  # evaluations of before there was one
    groups = group_by_seed(evaluations, metrics)
    first = metrics[0]
    verdict = rank({group.name: group.summaries[first] for group in groups}, first) if len(groups) > 1 else None
    table = sheet(groups, evaluations[0], metrics)
    if csv is not None:
        write_text(csv, csv_text([record(group) for group in groups]))
    if latex is not None:
        write_text(latex, table.latex())
    if json:
        print(to_text(document(groups, verdict), indent=1))
        return
    console = Console()
    console.print(table.terminal())
    if verdict is not None:
        console.print(verdict.sentence, highlight=False)


def evaluation_of(run: Path, file: str) -> Evaluation:
    """The evaluation that is meant by a folder, a bundled checkpoint's name, or an evaluation file itself."""
    if run.is_file() or run.suffix == ".json":
        return read_evaluation(run)
    path = results_folder(resolve_checkpoint(run)) / file
    if not path.is_file():
        raise FileNotFoundError(f"There is no {path}. Make it with: ssno evaluate {run}")
    return read_evaluation(path)


def sheet(groups: list[SeedGroup], evaluation: Evaluation, metrics: tuple[str, ...]) -> ResultTable:
    """A line per model, and one per forecast that needs no learning."""
    lines = [
        (
            group.name,
            number(group.parameters),
            str(len(group.runs)),
            *(str(group.summaries[metric]) for metric in metrics),
        )
        for group in groups
    ]
    lines += [
        (name, "0", "-", *(number(scores.means.get(metric)) for metric in metrics))
        for name, scores in evaluation.baselines.items()
    ]
    grid = " x ".join(map(str, evaluation.points))
    what = f"{evaluation.trajectories} {evaluation.split} trajectories of {evaluation.dataset}, {grid} points"
    return ResultTable(
        f"{what}: mean ± 95 % confidence over seeds", ("forecast by", "parameters", "seeds", *metrics), tuple(lines)
    )


def record(group: SeedGroup) -> dict[str, Any]:
    """A line of the CSV file."""
    numbers: dict[str, Any] = {}
    for metric, summary in group.summaries.items():
        numbers |= {metric: summary.mean, f"{metric} std": summary.spread, f"{metric} ci95": summary.confidence}
    shared = {"model": group.model, "parameters": group.parameters, "seeds": len(group.runs)}
    return {"name": group.name, **shared, **numbers, "runs": " ".join(group.runs)}


def document(groups: list[SeedGroup], verdict: Ranking | None) -> dict[str, Any]:
    """Groups and ranking as JSON values."""
    return {"groups": [asdict(group) for group in groups], "verdict": None if verdict is None else asdict(verdict)}
