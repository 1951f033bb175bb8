"""Make the page about runs: open them, evaluate those that have no evaluation yet, write the page.

    make_report(["runs/ks-ssno", "runs/ks-ffno"])
    make_report([open_run("runs/mine", model=my_module)], data=trajectories)

The page about one run goes to its folder, one about several beside their folders, so that it replaces none of theirs.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from ssno.base.atomic_write import Kind, check_replaceable, write_whole
from ssno.data.grids import Points
from ssno.data.load import DataOptions
from ssno.data.readers.suggest import option_words
from ssno.data.trajectories import Trajectories
from ssno.evaluation.evaluate import choose, evaluate, evaluate_ensemble
from ssno.evaluation.record import Evaluation, read_evaluation
from ssno.models.pretrained import results_folder
from ssno.report.page import EnsembleReport, RunReport, build_page, gather
from ssno.runs.checkpoint import WEIGHTS, evaluation_file, report_file
from ssno.runs.load import run_folder_of
from ssno.runs.log import read_log
from ssno.runs.open import RunFolder, open_run

PAGE = Kind("a page", re.compile(rb'<meta name="generator" content="ssno '))
MAX_NAMES = 3
"""Runs listed in the file name of a page about several."""


def make_report(
    runs: Sequence[str | Path | RunFolder],
    *,
    data: Trajectories | DataOptions | str | Path | None = None,
    split: str = "test",
    resolution: Points | None = None,
    ensemble: bool = False,
    out: Path | None = None,
) -> Path:
    """Write one HTML page about runs and return its path.

    Args:
        runs: folders of runs, names of bundled checkpoints, or opened runs (`open_run`).
        data: trajectories, their options, or a name (see `evaluate`); by default the data of the runs.
        split: which part of the data: train, valid or test.
        resolution: grid points along the first axis, or along each, to report on another resolution.
        ensemble: also evaluate the mean forecast of all runs.
        out: the file; by default `default_path(runs)`. Replaces an earlier page of ssno, never another file.
    """
    if not runs:
        raise ValueError("`runs` is empty: give the folder of at least one run, such as runs/ks-ssno.")
    if ensemble and len(runs) < 2:
        raise ValueError(f"`--ensemble` needs at least 2 runs, got {len(runs)}.")
    if out is not None:
        check_replaceable(out, PAGE, option="--out")
    opened = [run if isinstance(run, RunFolder) else open_run(run) for run in runs]
    reports = [_report_of(run, data, split=split, resolution=resolution) for run in opened]
    combined = None
    if ensemble:
        scored = evaluate_ensemble(opened, data=data, split=split, resolution=resolution)
        combined = EnsembleReport(scored, [run.forecaster for run in opened], reports[0].data)
    path = out or default_path(opened)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, build_page(reports, ensemble=combined).encode())
    return path


def default_path(runs: Sequence[RunFolder]) -> Path:
    """report.html in the folder of a run; for several, report-A-B.html beside the folder of the first."""
    home = results_folder(run_folder_of(runs[0].folder))
    if len(runs) == 1:
        return home / report_file()
    names = [run.name.replace("/", "-") for run in runs]
    listed = names if len(names) <= MAX_NAMES else [names[0], "and", str(len(names) - 1), "more"]
    return home.parent / report_file(listed)


def _report_of(
    run: RunFolder, data: Trajectories | DataOptions | str | Path | None, *, split: str, resolution: Points | None
) -> RunReport:
    chosen = choose(run, data, split, resolution=resolution, time_index=None, trajectories=None)
    usual = data is None and split == "test" and resolution is None and run.folder == run_folder_of(run.folder)
    evaluation = stored(run) if usual else None
    if evaluation is None:
        evaluation = evaluate(run, data, split=split, resolution=resolution)
    words: tuple[str, ...] = ()
    if isinstance(data, DataOptions):
        words = ("--data", data.path or data.name, *option_words(data, prefix="--"))
    elif data is not None and not isinstance(data, Trajectories):
        words = ("--data", str(data))
    return gather(run, chosen, evaluation, log=read_log(run_folder_of(run.folder)), data_options=words)


def stored(run: RunFolder) -> Evaluation | None:
    """The evaluation in the run's folder, unless it is older than the weights or of another run or precision."""
    path, weights = results_folder(run.folder) / evaluation_file(), run.folder / WEIGHTS
    if not path.is_file() or not weights.is_file() or path.stat().st_mtime < weights.stat().st_mtime:
        return None
    evaluation = read_evaluation(path)
    return evaluation if evaluation.is_of(run) else None
