"""`ssno report RUN ...`: one self-contained HTML page about runs."""

from pathlib import Path
from typing import Annotated

import tyro

from ssno.base import byte_size, to_text
from ssno.cli.options import SWEEP_TABLE, other_data, warn_of_other_data
from ssno.data.readers.registry import DEFAULTS, ReadOptions
from ssno.evaluation.evaluate import choose
from ssno.report.make import make_report
from ssno.runs.open import open_run


def report(
    runs: tyro.conf.Positional[tuple[Path, ...]],
    *,
    data: str | None = None,
    read: Annotated[ReadOptions, tyro.conf.arg(name="")] = DEFAULTS,
    split: str = "test",
    resolution: tuple[int, ...] | None = None,
    ensemble: bool = False,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Make one HTML page about one or several runs: numbers, plots, a player, kernels, settings, how to repeat it.

    The page is a single file that needs no network and works on a phone and on paper. Runs that have not been evaluated
    are evaluated first.

    Args:
        runs: Folders of training runs, or names of bundled checkpoints.
        data: Other data than the runs': a dataset's name, a file or a folder, read with the options of each run's own.
        read: How to read those other data, where neither the file says it nor the run; of several runs, the first.
        split: Which part of the data: train, valid or test.
        resolution: Grid points along the first axis, or along each, to report on another resolution.
        ensemble: Also take all runs together: their mean forecast, its uncertainty, and whether that is honest.
        out: The file; if not given, report.html in the folder of the run (./runs/pretrained/NAME if bundled), and of
            several runs report-A-B.html beside their folders. An earlier page is replaced, no other file.
        json: Print where the page is as JSON.
    """
    opened = [open_run(run) for run in runs if run.name != SWEEP_TABLE]
    other = other_data(opened[0], data, read) if runs else None
    for run in opened if other is not None else ():
        found = choose(run, other, split, resolution=resolution, time_index=None, trajectories=None)
        warn_of_other_data(run, found, resolution_given=resolution is not None)
    path = make_report(opened, data=other, split=split, resolution=resolution, ensemble=ensemble, out=out)
    written = path.stat().st_size
    if json:
        print(to_text({"path": str(path), "bytes": written}, indent=2))
    else:
        print(f"{path}: {byte_size(written)}. Open it in any browser.")
