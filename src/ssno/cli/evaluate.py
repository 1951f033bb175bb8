"""`ssno evaluate RUN`: score a run on trajectories it has not seen, beside what needs no learning."""

from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from ssno.base import byte_size, duration, to_text
from ssno.base.formatting import number
from ssno.base.memory import peak_memory
from ssno.base.terminal import Console
from ssno.cli.options import SWEEP_TABLE, other_data, warn_of_copies, warn_of_other_grid, warn_of_other_step
from ssno.data.load import DataOptions
from ssno.data.readers.registry import DEFAULTS, ReadOptions
from ssno.evaluation.evaluate import (
    choose,
    described_by,
    evaluate_ensemble,
    first_forecasts,
    forecast_seconds,
    metric_table,
    rows_of,
)
from ssno.evaluation.evaluate import evaluate as evaluate_run
from ssno.evaluation.record import Evaluation, file_name
from ssno.evaluation.solver import SAME_GRID, SAME_TIME, measured, on_grid, parameters_of, problem_of
from ssno.evaluation.tables import ResultTable, check_tables, csv_text, write_text
from ssno.forecasting.divergence import divergence_lines
from ssno.models.pretrained import ReportedMetrics, reported_metrics
from ssno.native.engine import Precision
from ssno.runs.open import RunFolder, open_run

DISK_BYTES = 2**15


def evaluate(
    runs: tyro.conf.Positional[tuple[Path, ...]],
    *,
    split: str = "test",
    resolution: tuple[int, ...] | None = None,
    time_index: str | None = None,
    max_trajectories: int | None = None,
    data: str | None = None,
    read: Annotated[ReadOptions, tyro.conf.arg(name="")] = DEFAULTS,
    solver: bool = False,
    ensemble: bool = False,
    batch_size: int = 32,
    precision: Precision | None = None,
    csv: Path | None = None,
    latex: Path | None = None,
    dry_run: bool = False,
    json: bool = False,
) -> None:
    """Score runs with every metric, beside forecasts that learn no dynamics; see docs/manual/evaluation.md.

    The data are those that the run describes. The result is written to evaluation.json in the folder of the run, under
    a longer name for another split, grid or choice of frames. A checkpoint that comes with ssno (`ssno models`) is
    evaluated by its name, beside the error that it states; the result goes to ./runs/pretrained/NAME.

    Args:
        runs: Folders of training runs, or of their checkpoints (runs/NAME/last); names of bundled checkpoints.
        split: train, valid or test.
        resolution: Evaluate on a coarser grid of the stored data, --resolution 100, or one number per axis:
            every n-th point where that fits, else spectral resampling of periodic fields.
        time_index: Frames to use, START:STOP:STEP.
        max_trajectories: Evaluate only the first N trajectories.
        data: Other data than the run's: a dataset's name, a file or a folder, read with the options of the run's own.
        read: How to read those other data, where neither the file says it nor the run.
        solver: Also score the solver that made the data, at the model's resolution and at the model's run time, and the
            number of forecasts after which the model, with its training and data, costs less than the solver.
        ensemble: Also score all runs together: the mean of their forecasts, and the calibration of their spread.
        batch_size: Trajectories at once; changes memory, not results.
        precision: Floating-point format: float32, bf16 or float64; by default that of the weights.
        csv: Write a CSV file, one line per forecaster, all digits. Replaces an earlier table, no other file.
        latex: Write a LaTeX table (booktabs). Replaces an earlier table, no other file.
        dry_run: Say what would be evaluated, how long it takes and how much memory; write nothing.
        json: Print the evaluations as JSON.
    """
    if not runs:
        raise ValueError("`runs`: give the folder of at least one run, as runs/ks-ssno.")
    if ensemble and len(runs) < 2:
        raise ValueError(f"`--ensemble` needs at least 2 runs, got {len(runs)}.")
    if batch_size < 1:
        raise ValueError(f"`--batch-size` must be at least 1, got {batch_size}.")
    check_tables(csv, latex)
    chosen: dict[str, Any] = {
        "split": split,
        "resolution": resolution,
        "time_index": time_index,
        "trajectories": max_trajectories,
    }
    opened = [open_run(run, precision=precision) for run in runs if run.name != SWEEP_TABLE]
    others = [other_data(run, data, read) for run in opened]
    if dry_run:
        plans = [
            plan_of(run, data=other, solver=solver, batch_size=batch_size, **chosen)
            for run, other in zip(opened, others, strict=True)
        ]
        report_plan([*plans, ensemble_plan(plans)] if ensemble else plans, as_json=json)
        return
    found = [
        evaluate_run(run, other, **chosen, solver=solver, batch_size=batch_size)
        for run, other in zip(opened, others, strict=True)
    ]
    if data is not None:
        for run, evaluation in zip(opened, found, strict=True):
            if resolution is None:
                warn_of_other_grid(run, evaluation.points)
            warn_of_other_step(run, evaluation.times)
    for evaluation in found:
        warn_of_copies(evaluation.copies)
    if ensemble:
        found.append(evaluate_ensemble(opened, data=others[0], **chosen, batch_size=batch_size))
    if csv is not None:
        write_text(csv, csv_text([record for evaluation in found for record in records(evaluation)]))
    if latex is not None:
        write_text(latex, "\n".join(metric_table(rows_of(one), title=title(one)).latex() for one in found))
    if json:
        print(to_text([evaluation.to_json() for evaluation in found], indent=1))
        return
    for evaluation in found:
        own_data = data is None and time_index is None
        show(evaluation, solver=solver and evaluation.calibration is None, own_data=own_data)


def title(evaluation: Evaluation) -> str:
    """What was evaluated on what."""
    grid = " x ".join(map(str, evaluation.points))
    what = f"{evaluation.trajectories} {evaluation.split} trajectories of {evaluation.dataset}, {grid} points"
    return f"{evaluation.name}: {what}"


def show(evaluation: Evaluation, *, solver: bool, own_data: bool = True) -> None:
    """A table of all metrics, and what a table does not say; `own_data` if they are those of the run, all frames."""
    console = Console()
    sheet = metric_table(rows_of(evaluation), title=title(evaluation))
    stated = reported_metrics(evaluation.config) if evaluation.calibration is None else None
    console.print((sheet if stated is None else with_stated(sheet, stated)).terminal())
    if stated is not None:
        same = stated.is_about(
            split=evaluation.split, points=evaluation.points[0], trajectories=evaluation.trajectories
        )
        other = "" if own_data and same else ", which is not what was measured here"
        console.print(f"Reported: the error of this checkpoint on {stated.data()}{other}.", highlight=False)
    if evaluation.no_climatology:
        console.print(f"No climatology: {evaluation.no_climatology}.", highlight=False, soft_wrap=True)
    for line in divergence_lines(evaluation.scores.divergences):
        console.print(line, soft_wrap=True)
    for departure in evaluation.scores.departures[:1]:
        console.print(f"First warning: {departure.words()}.", highlight=False, soft_wrap=True)
    if solver and SAME_TIME not in evaluation.baselines:
        console.print(
            f"No {SAME_TIME!r}: even on the coarsest grid the solver takes longer than the model's "
            f"{evaluation.seconds or 0:.2g} s per trajectory ({SAME_GRID}: see `seconds`)."
        )
    if evaluation.break_even is not None:
        console.print(evaluation.break_even.sentence(), highlight=False, soft_wrap=True)
    if (calibration := evaluation.calibration) is not None:
        covered = dict(zip(calibration.nominal, calibration.observed, strict=True))
        console.print(
            f"Spread over error {calibration.ratio:.2f} (1: calibrated, below 1: overconfident). The 50 % and 90 % "
            f"intervals cover {100 * covered[0.5]:.0f} and {100 * covered[0.9]:.0f} % of the true values.",
            highlight=False,
        )


def with_stated(sheet: ResultTable, stated: ReportedMetrics) -> ResultTable:
    """The table with the reported metrics of a checkpoint beside what was measured."""
    known = {name: number(value) for name, value in stated.errors().items()}
    rows = tuple((name, measured, known.get(name, ""), *others) for name, measured, *others in sheet.rows)
    return ResultTable(sheet.title, (*sheet.headings[:2], "reported", *sheet.headings[2:]), rows)


def records(evaluation: Evaluation) -> list[dict[str, Any]]:
    """One line of a CSV file per forecaster, with what it was evaluated on and by which code."""
    shared = {
        "run": evaluation.name,
        "model": evaluation.model,
        "seed": evaluation.seed,
        "dataset": evaluation.dataset,
        "split": evaluation.split,
        "points": "x".join(map(str, evaluation.points)),
        "trajectories": evaluation.trajectories,
        "fingerprint": evaluation.fingerprint,
        "commit": evaluation.provenance.get("commit"),
    }
    found = []
    for row in rows_of(evaluation):  # means whose names do not clash with the columns that say what was evaluated
        means = {("solver_points" if name == "points" else name): value for name, value in row.scores.means.items()}
        found.append({**shared, "forecast_by": row.name, "parameters": row.parameters, **means})
    return found


def plan_of(
    run: RunFolder,
    *,
    solver: bool,
    batch_size: int,
    data: str | DataOptions | None,
    split: str,
    resolution: tuple[int, ...] | None,
    time_index: str | None,
    trajectories: int | None,
) -> dict[str, Any]:
    """What an evaluation would take, measured on one trajectory."""
    chosen = choose(run, data, split, resolution=resolution, time_index=time_index, trajectories=trajectories)
    one = chosen.select(indices=range(1))
    # The rollout, and about as much again for one-step forecasts, rules and metrics.
    seconds = 2 * forecast_seconds(run.forecaster, one, together=1) * len(chosen)
    described = run.data if data is None else described_by(run, data)
    if solver and described is not None:
        seconds += (
            2 * measured(on_grid(problem_of(described), one.axes[0].points), parameters_of(one, [0])) * len(chosen)
        )
    peak = peak_memory(first_forecasts(run.forecaster, one, 1))
    return {
        "run": run.name,
        "data": repr(chosen),
        "seconds": seconds,
        "memory_bytes": peak * min(batch_size, len(chosen)),
        "disk_bytes": DISK_BYTES,
        "file": file_name(
            run, chosen, split, foreign=data is not None, time_index=time_index, trajectories=trajectories
        ),
    }


def ensemble_plan(plans: list[dict[str, Any]]) -> dict[str, Any]:
    """What the ensemble adds: the rollouts of all members, for their mean and once more for their spread."""
    seconds = 1.5 * sum(plan["seconds"] for plan in plans)
    return {**plans[0], "run": f"ensemble of {len(plans)}", "seconds": seconds, "file": "evaluation-ensemble*.json"}


def report_plan(plans: list[dict[str, Any]], *, as_json: bool) -> None:
    """The forecast of a dry run."""
    if as_json:
        print(to_text(plans, indent=1))
        return
    headings = ("run", "data", "time", "memory", "writes")
    table = Table(*headings, title="dry run: estimated cost; nothing was written", title_justify="left")
    for plan in plans:
        table.add_row(
            plan["run"], plan["data"], duration(plan["seconds"]), byte_size(plan["memory_bytes"]), plan["file"]
        )
    Console().print(table)
