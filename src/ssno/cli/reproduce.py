"""`ssno reproduce NAME`: train the runs behind a published result and judge its claims.

ssno reproduce --list
ssno reproduce headline --dry-run
ssno reproduce headline
ssno reproduce headline --scale tenth --stop-at 06:00
ssno reproduce --scale tenth --status
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import tyro
from rich.table import Table
from rich.text import Text

from ssno.base import duration, to_text
from ssno.base.provenance import available_cores
from ssno.base.terminal import Console
from ssno.cli.data_generate import describe
from ssno.cli.options import moment, progress
from ssno.paper.catalogue import experiments, find_experiment
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.page import VERDICT_HEADINGS, document, store, verdict_row, with_holm, write_pages
from ssno.paper.runner import collect, estimate_data, estimate_trials, is_done, make_data, run_trials, standings
from ssno.paper.runner import status as status_of
from ssno.paper.trial import Scale, Trial
from ssno.training.processes import EXIT_INTERRUPTED, TrainingInterrupted


def reproduce(
    name: tyro.conf.Positional[str] = "",
    *,
    scale: Scale = "cpu",
    seeds: int | None = None,
    out: Path = Path("runs/reproduce"),
    jobs: int | None = None,
    stop_at: str | None = None,
    list: bool = False,
    status: bool = False,
    partial: bool = False,
    page: Path | None = None,
    dry_run: bool = False,
    json: bool = False,
) -> None:
    """Run the trainings behind one published result and put ours beside the paper's numbers, with a verdict per claim.

    Runs live in OUT/SCALE/runs and are shared between experiments; finished ones are not repeated, and after Ctrl-C the
    same command goes on where it stopped. Tables, figures and a page are written to OUT/SCALE/NAME.

    Args:
        name: Which result, or which study of our own in a checkout; `--list` shows them all.
        scale: tiny: seconds, decides nothing. cpu: at most 40 minutes on two cores. tenth: a tenth of the published
            training, our recipe and the paper's side by side, hours per run. paper: the published setting.
        seeds: Seeds of every run; by default those of the scale.
        out: Folder for runs and findings.
        jobs: Runs in parallel, one thread each; by default one per core, and one run with all threads at `paper`.
        stop_at: Stop at a time of day (06:00) or after a while (8h, 90m); runs save themselves and go on later.
        list: Show all experiments, what the paper reports, and how many of their runs are done.
        status: Show what is done, what is left, and when it will end; of one result, or of all that were begun.
        partial: Judge the runs that are done, and do no others.
        page: Fill in the tables of this Markdown page or folder of pages, after collecting the findings of this scale.
        dry_run: Estimate what would be generated and trained, and how long it takes; writes nothing.
        json: Print the finding, the list, the status or the estimate as JSON.
    """
    console = Console()
    folder = out / scale
    if list:
        print_list(scale, folder, console, as_json=json)
        return
    if page is not None:
        taken = write_pages(page, collected_from=folder)
        print(f"{page} is filled in; collected: {', '.join(taken) or 'nothing new'}.")
        return
    if status:
        print_status(name, scale, seeds, folder, jobs or available_cores(), console, as_json=json)
        return
    if not name:
        raise ValueError(f"`name` must be one of {', '.join(experiments())}. `--list` describes them.")
    if jobs is not None and jobs < 1:
        raise ValueError(f"`--jobs` must be at least 1, got {jobs}.")
    end = None if stop_at is None else moment(stop_at, datetime.now(), option="--stop-at")
    experiment = find_experiment(name, scale=scale, seeds=seeds)
    trials = experiment.trials()
    cores = jobs or (None if scale == "paper" else available_cores())
    talk = Console(stderr=True)
    if not json or dry_run:
        announce(experiment, trials, folder / "runs", cores or 1, console, measure=dry_run, as_json=json)
    if dry_run:
        return
    planned = len(trials)
    if partial:
        trials = [trial for trial in trials if is_done(trial, folder / "runs")]
    with progress("data", console=talk) as advance:
        make_data(trials, lambda line: talk.print(f"ssno: {line}", highlight=False), advance)
    try:
        with progress(name, console=talk) as advance:
            results = run_trials(trials, folder / "runs", cores=cores, advance=advance, until=end)
    except (TrainingInterrupted, KeyboardInterrupt) as stopped:  # by Ctrl-C, by SIGTERM, or because it is time
        done = len(collect(trials, folder / "runs").outcomes)
        print(f"ssno: interrupted with {done} of {len(trials)} runs done; the same command goes on.", file=sys.stderr)
        raise SystemExit(EXIT_INTERRUPTED) from stopped
    finding = experiment.judge(results)
    if len(trials) < planned:
        finding = replace(finding, notes=(*finding.notes, f"Judged with {len(trials)} of {planned} runs."))
    written = store(experiment, finding, trials, folder / name)
    if json:
        print(to_text(document(experiment, finding, trials), indent=1))
        return
    print_finding(finding, console)
    console.print("Written: " + ", ".join(map(str, written)), soft_wrap=True, highlight=False)


def announce(
    experiment: Experiment,
    trials: Sequence[Trial],
    folder: Path,
    workers: int,
    console: Console,
    *,
    measure: bool,
    as_json: bool,
) -> None:
    """What will run, what the paper reports, and, if measured, what has to be generated and how long all takes."""
    todo = [trial for trial in trials if not is_done(trial, folder)]
    data = estimate_data(todo) if measure else {}
    estimated = {trial.name: time for trial, time in estimate_trials(trials, folder)} if measure else {}
    times = list(estimated.values())
    seconds = sum(time for time in times if time is not None) / workers
    if as_json:
        plan: dict[str, Any] = {
            "experiment": experiment.name,
            "scale": experiment.scale,
            "jobs": workers,
            "seconds": seconds,
        }
        plan["data"] = {str(where): asdict(cost) for where, cost in data.items()}
        plan["without_estimate"] = times.count(None)
        plan |= {"runs": [trial.name for trial in trials], "todo": len(todo), "seconds_of": estimated}
        print(to_text(plan, indent=1))
        return
    console.rule(Text(experiment.title, style="bold"), align="left")
    console.print(f"The paper: {experiment.published}")
    rows = ", ".join(dict.fromkeys(trial.label for trial in trials))
    cases = ", ".join(dict.fromkeys(trial.case for trial in trials))
    if trials:
        console.print(f"{len(trials)} runs, {len(todo)} still to do, {workers} at a time: {rows}; on {cases}.")
    for where, cost in data.items():
        console.print(f"To be generated: {where}, {describe(cost)}", highlight=False, soft_wrap=True)
    if data:
        console.print(f"{times.count(None)} runs have no estimate before their data exist.")
    if measure and times.count(None) < len(times):
        console.print(f"About {duration(seconds)} of training here, on an otherwise idle machine.")


def print_finding(finding: Finding, console: Console) -> None:
    """Tables and verdicts."""
    for one in finding.tables:
        console.print(one.terminal())
    table = Table(*VERDICT_HEADINGS, title="verdicts", title_justify="left", show_lines=True)
    for verdict in with_holm([asdict(verdict) for verdict in finding.verdicts]):
        table.add_row(*verdict_row(verdict))
    console.print(table)
    for note in finding.notes:
        console.print(note)


def print_list(scale: Scale, folder: Path, console: Console, *, as_json: bool) -> None:
    """Every table and figure of the paper, the command that reproduces it, and its state."""
    rows = []
    for name in experiments():
        experiment = find_experiment(name, scale=scale)
        trials = experiment.trials()
        done = sum(is_done(trial, folder / "runs") for trial in trials)
        concluded = (folder / name / "finding.json").is_file()
        state = (
            "done" if concluded and done == len(trials) else f"{done} of {len(trials)} runs" if done else "not started"
        )
        told = {
            "name": name,
            "title": experiment.title,
            "paper_location": experiment.paper_location,
            "runs": len(trials),
        }
        rows.append({**told, "done": done, "state": state})
    if as_json:
        print(to_text(rows, indent=1))
        return
    table = Table(title=f"ssno reproduce NAME --scale {scale}", title_justify="left")
    for heading in ("in the paper", "name", "what", "runs", "state"):
        table.add_column(heading, no_wrap=heading == "name")  # a name is part of a command
    for row in rows:
        table.add_row(*(str(row[key]) for key in ("paper_location", "name", "title", "runs", "state")))
    console.print(table)


def print_status(
    name: str, scale: Scale, seeds: int | None, folder: Path, cores: int, console: Console, *, as_json: bool
) -> None:
    """What is done and left of one result, or of all that were begun, and when the rest will be done."""
    chosen = [name] if name else [*experiments()]
    runs = {each: find_experiment(each, scale=scale, seeds=seeds).trials() for each in chosen}
    known = standings((trial for trials in runs.values() for trial in trials), folder / "runs")
    found = {each: status_of(trials, known) for each, trials in runs.items()}
    shown = {each: state for each, state in found.items() if name or state.finished or state.begun}
    total = status_of([trial for each in shown for trial in runs[each]], known)
    ends = datetime.now() + timedelta(seconds=total.seconds_left / cores)
    if as_json:
        states = {each: asdict(state) for each, state in shown.items()}
        print(to_text({"results": states, "all": asdict(total), "cores": cores, "ends": ends.isoformat()}, indent=1))
        return
    table = Table(title=f"runs at scale {scale}; a run shared by several results counts in each", title_justify="left")
    for heading in ("name", "runs", "done", "under way", "left on one core"):
        table.add_column(heading, justify="left" if heading == "name" else "right")
    for each, state in {**shown, "all": total}.items():
        open_ended = f" + {state.without_estimate} without estimate" if state.without_estimate else ""
        left = f"{duration(state.seconds_left)}{open_ended}"
        table.add_row(each, str(state.runs), str(state.finished), str(state.begun), left)
    console.print(table)
    if total.seconds_left:
        console.print(f"With {cores} at a time, the estimated runs end about {ends:%a %d %B, %H:%M}.")
