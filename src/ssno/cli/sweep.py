"""`ssno sweep FILE`: many runs from one file, each once, compared in one table.

ssno sweep rates.toml --dry-run
ssno sweep rates.toml --jobs 2
ssno sweep rates.toml --shard 2/8
"""

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import tyro

from ssno.base import require_one_of, to_text, unknown_name
from ssno.base.terminal import Console
from ssno.cli.options import SWEEP_TABLE, moment, parse_part, progress
from ssno.evaluation.statistics import rank
from ssno.evaluation.tables import ResultTable, csv_text, write_text
from ssno.paper.results import Results
from ssno.paper.runner import collect, is_done, metric_names, run_trials
from ssno.paper.sweep import read_sweep, shard_of
from ssno.paper.trial import Trial
from ssno.training.processes import EXIT_INTERRUPTED, TrainingInterrupted


def sweep(
    file: tyro.conf.Positional[Path],
    *,
    out: Path | None = None,
    jobs: int = 1,
    shard: str = "1/1",
    stop_at: str | None = None,
    metric: str = "rel_l2",
    dry_run: bool = False,
    json: bool = False,
) -> None:
    """Train every run that a file describes, judge it on test trajectories, and compare all in one table.

    Finished runs are skipped, interrupted ones go on where they stopped: after a kill, give the same command again.
    Ctrl-C and SIGTERM let every run save itself, and exit with code 75. docs/manual/sweeps.md describes the file.

    Args:
        file: TOML, JSON or YAML: `seeds`, `[run]` with what all runs share, `[grid]` with lists of values, `[[runs]]`.
        out: Folder for the runs and the table; by default runs/ and the name of the file.
        jobs: Runs side by side, one thread each; 1 runs one after the other with all of torch's threads.
        shard: Do only part i of n, as 2/8 in a job array; the table shows all that is there.
        stop_at: Stop at a time of day (06:00) or after a while (55m, 1h30m), as if interrupted.
        metric: Column of the table.
        dry_run: List the runs and whether they are done; trains nothing.
        json: Print the table's records as JSON.
    """
    if jobs < 1:
        raise ValueError(f"`--jobs` must be at least 1, got {jobs}.")
    end = None if stop_at is None else moment(stop_at, datetime.now(), option="--stop-at")
    number, of = parse_part(shard)
    folder = out or Path("runs") / file.stem
    trials = read_sweep(file).trials()
    mine = shard_of(trials, number, of)
    if dry_run:
        print_plan(mine, folder, as_json=json)
        return
    if metric not in (known := metric_names(trials)):
        raise ValueError(f"`--metric`: {unknown_name(metric, known, kind='metric')}")
    try:
        with progress("sweep", console=Console(stderr=True)) as advance:
            run_trials(mine, folder, cores=None if jobs == 1 else jobs, advance=advance, until=end)
    except (TrainingInterrupted, KeyboardInterrupt) as stopped:
        done = len(collect(mine, folder).outcomes)
        print(f"ssno: interrupted with {done} of {len(mine)} runs done; the same command goes on.", file=sys.stderr)
        raise SystemExit(EXIT_INTERRUPTED) from stopped
    results = collect(trials, folder)
    records = results.records()
    if records:
        write_text(folder / SWEEP_TABLE, csv_text(records))
    if json:
        print(to_text(records, indent=1))
        return
    console = Console()
    if records:
        console.print(comparison(results, metric).terminal())
        for sentence in rankings(results, metric):
            console.print(sentence, highlight=False)
    missing = len(dict.fromkeys(trials)) - len(results.outcomes)
    console.print(
        f"{len(results.outcomes)} runs" + (f", {missing} still missing" if missing else "") + f" in {folder}."
    )


def comparison(results: Results, metric: str) -> ResultTable:
    """The runs that are done: mean and standard deviation over seeds, parameters and seconds of training."""
    known = sorted(set.intersection(*(set(one.values) for one in results.outcomes.values())))
    require_one_of("--metric", metric, tuple(known))
    labels = [trial.label for trial in results.outcomes]
    extra = {
        "seeds": {label: str(labels.count(label)) for label in labels},
        "parameters": results.parameters(),
        "seconds": results.seconds(),
    }
    return results.table(
        f"{metric} on test trajectories; mean ± standard deviation over seeds", metric=metric, extra=extra
    )


def rankings(results: Results, metric: str) -> list[str]:
    """For each dataset whether the seeds decide which row is best; nothing where there is only one row."""
    sentences = []
    for case in dict.fromkeys(trial.case for trial in results.outcomes):
        labels = dict.fromkeys(trial.label for trial in results.outcomes if trial.case == case)
        if len(labels) > 1:
            sentence = rank({label: results.summary(label, case, metric) for label in labels}, metric).sentence
            sentences.append(f"{case}: {sentence}")
    return sentences


def print_plan(trials: list[Trial], folder: Path, *, as_json: bool) -> None:
    """The runs, each with its folder and whether it is done."""
    rows: list[dict[str, Any]] = [
        {"run": trial.label, "seed": trial.seed, "folder": str(folder / trial.name), "done": is_done(trial, folder)}
        for trial in trials
    ]
    if as_json:
        print(to_text(rows, indent=1))
        return
    cells = tuple((row["run"], str(row["seed"]), row["folder"], "yes" if row["done"] else "no") for row in rows)
    Console().print(ResultTable(f"{len(rows)} runs", ("run", "seed", "folder", "done"), cells).terminal())
