"""`ssno report RUN ...`: one self-contained HTML page about runs."""

from pathlib import Path

import tyro

from ssno.base import to_text
from ssno.base.whole import write_whole
from ssno.data.options import DataOptions
from ssno.evaluation.ensembles import evaluate_ensemble
from ssno.evaluation.evaluate import choose, evaluate
from ssno.evaluation.record import Evaluation, read_evaluation
from ssno.models.bundled import results_folder
from ssno.report.contents import RunReport, gather
from ssno.report.page import build_page
from ssno.report.together import EnsembleReport
from ssno.runs.folder import RunFolder, open_run
from ssno.runs.log import read_log
from ssno.runs.saved import run_folder_of


def report(
    runs: tyro.conf.Positional[tuple[Path, ...]],
    *,
    data: str | None = None,
    split: str = "test",
    points: int | None = None,
    ensemble: bool = False,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Make one HTML page about one or several runs: numbers, plots, a player, kernels, settings, how to repeat it.

    The page is a single file that needs no network and works on a phone and on paper. Runs that have not been evaluated
    are evaluated first.

    Args:
        runs: Folders of training runs, or names of bundled checkpoints.
        data: Other data than the runs': a dataset's name, a file or a folder.
        split: Which part of the data: train, valid or test.
        points: Grid points along the first axis, to report on another resolution.
        ensemble: Also take all runs together: their mean forecast, its uncertainty, and whether that is honest.
        out: The file; report.html in the folder of the first run (./runs/pretrained/NAME if bundled) if not given.
        json: Print where the page is as JSON.
    """
    if not runs:
        raise ValueError("`runs`: give the folder of at least one run, as runs/ks-ssno.")
    if ensemble and len(runs) < 2:
        raise ValueError(f"`--ensemble` needs at least 2 runs, got {len(runs)}.")
    options = None if data is None else DataOptions(name=data)
    reports = [one(run, options, split=split, points=points) for run in runs]
    together = None
    if ensemble:
        scored = evaluate_ensemble(list(runs), data=options, split=split, points=points)
        together = EnsembleReport(scored, [each.run.forecaster for each in reports], reports[0].data)
    path = results_folder(run_folder_of(reports[0].run.folder)) / "report.html" if out is None else out
    path.parent.mkdir(parents=True, exist_ok=True)
    page = build_page(reports, ensemble=together).encode()
    write_whole(path, page)
    if json:
        print(to_text({"path": str(path), "bytes": len(page)}, indent=2))
    else:
        print(f"{path}: {len(page) / 2**20:.1f} MiB. Open it in any browser.")


def one(folder: Path, options: DataOptions | None, *, split: str, points: int | None) -> RunReport:
    """Everything about one run."""
    run = open_run(folder)
    chosen = choose(run, options, split, points=points, time_index=None, trajectories=None)
    usual = options is None and split == "test" and points is None and run.folder == run_folder_of(run.folder)
    evaluation = stored(run) if usual else None
    if evaluation is None:
        evaluation = evaluate(folder, data=options, split=split, points=points)
    return gather(run, chosen, evaluation, record=read_log(run_folder_of(run.folder)))


def stored(run: RunFolder) -> Evaluation | None:
    """The evaluation in the run's folder, unless the weights are newer or it is of another run of that name."""
    path, weights = results_folder(run.folder) / "evaluation.json", run.folder / "model.safetensors"
    if not path.is_file() or path.stat().st_mtime < weights.stat().st_mtime:
        return None
    evaluation = read_evaluation(path)
    return evaluation if evaluation.config == run.config else None
