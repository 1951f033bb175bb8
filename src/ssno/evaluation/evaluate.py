"""An evaluation: one run, one set of trajectories, all metrics, and what any model must beat on the same trajectories.

    evaluation = evaluate("runs/ks-ssno", split="test")
    evaluation.scores.means["rel_l2"], evaluation.baselines["persistence"].means["rel_l2"]

The result and its file are in `ssno.evaluation.record`. Metrics are explained in docs/evaluation.md.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from rich.table import Table
from torch import Tensor

from ssno.base.device import choose_device
from ssno.base.formatting import number
from ssno.base.provenance import provenance
from ssno.data.grids import Points
from ssno.data.normalise import fit
from ssno.data.options import DataOptions
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.evaluation.cost import quick_seconds
from ssno.evaluation.record import Evaluation, file_name, store
from ssno.evaluation.solver import solver_baselines
from ssno.evaluation.tables import ResultTable
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout
from ssno.forecasting.scores import EVERY, Scores, batches, score
from ssno.models.operator import count_parameters
from ssno.models.pretrained import results_folder
from ssno.models.registry import model_config
from ssno.native.engine import Precision
from ssno.runs.load import run_folder_of
from ssno.runs.open import RunFolder, open_run

# Forecasters side by side on the same trajectories.

TRIVIAL = ("persistence", "linear")


@dataclass(frozen=True)
class Row:
    """One forecaster's name, size and scores."""

    name: str
    parameters: int
    scores: Scores


def trivial_forecasters(data: Trajectories, window: Window) -> dict[str, Forecaster]:
    """What any model must beat: the last frame again, and a straight line through the last two."""
    channels = {
        "in_channels": len(data.fields) + len(data.context_fields),
        "out_channels": len(data.fields),
        "n_dims": len(data.axes),
    }
    normalisers = fit(data.select(indices=range(1)), "none")
    return {
        name: Forecaster(model_config(name, **channels).build(), normalisers=normalisers, window=window)
        for name in TRIVIAL
    }


def compare(forecasters: Mapping[str, Forecaster], data: Trajectories) -> list[Row]:
    """Score every forecaster on the same trajectories, best first."""
    rows = [Row(name, count_parameters(f.model), score(f, data)) for name, f in forecasters.items()]
    return sorted(rows, key=lambda row: row.scores.means["rel_l2"])


def as_table(rows: list[Row], *, title: str) -> Table:
    """A table for the terminal: a line per forecaster, its error beside that of the best."""
    best = rows[0].scores.means["rel_l2"]
    lines = []
    for row in rows:
        rollout, onestep = (row.scores.means[name] for name in ("rel_l2", "rel_l2_onestep"))
        ratio = rollout / best if best else float("nan")
        lines.append((row.name, f"{row.parameters:,}", f"{rollout:.4f}", f"{onestep:.4f}", f"{ratio:.1f}"))
    headings = ("forecast by", "parameters", "rel_l2", "rel_l2_onestep", "error, best = 1")
    return ResultTable(title, headings, tuple(lines)).terminal()


def metric_sheet(rows: Sequence[Row], *, title: str) -> ResultTable:
    """All metrics: a line per metric, a column per forecaster."""
    names = dict.fromkeys(name for row in rows for name in row.scores.means)
    lines = [("parameters", *(number(row.parameters) for row in rows))]
    lines += [(name, *(number(row.scores.means.get(name)) for row in rows)) for name in names]
    lines.append(("diverged forecasts", *(str(len(row.scores.divergences)) for row in rows)))
    return ResultTable(title, ("", *(row.name for row in rows)), tuple(lines))


# An evaluation: one run, one set of trajectories, all metrics, and what any model must beat on the same trajectories.

TIMED = 8  # trajectories forecast together when a forecast is timed

UNITLESS = tuple(name for name in EVERY if name != "rel_l2_normalised")
"""Metrics of rules, which have no normalised units of their own."""


def evaluate(
    run: str | Path | RunFolder | Forecaster,
    data: Trajectories | DataOptions | str | Path | None = None,
    *,
    split: str = "test",
    resolution: Points | None = None,
    time_index: str | None = None,
    trajectories: int | None = None,
    solver: bool = False,
    batch_size: int = 32,
    device: str | torch.device = "auto",
    precision: Precision | None = None,
    write: bool = True,
) -> Evaluation:
    """Score a run, persistence and linear extrapolation with every metric, and write the result to the run's folder.

    Args:
        run: the folder of a run, or of one of its checkpoints; or the name of a bundled checkpoint; or an opened run
            (`ssno.runs.open_run`, which takes a module of your own); or a forecaster, about which nothing is written.
        data: trajectories to evaluate on, or their description; a name, file or folder is read as the run's own data
            were (`RunFolder.alike`); by default those that the run describes.
        split: which part of the run's data.
        resolution: read the data on a grid with this many points along the first axis, or along each; every n-th point
            where that fits, else the band-limited part of periodic fields; by default the training grid.
        time_index: frames to use, START:STOP:STEP; by default those of training.
        trajectories: only the first so many.
        solver: also score the solver on the model's grid, and the best one that is as fast as the model.
        batch_size: trajectories at once; changes memory, not results.
        device: where to compute (`ssno.base.device`).
        precision: in which numbers the model computes (`ssno.native.engine`); by default those of its weights.
        write: store `file_name(...)` in the folder.
    """
    write = write and not isinstance(run, Forecaster)
    run = opened(run, device=device, precision=precision)
    chosen = choose(run, data, split, resolution=resolution, time_index=time_index, trajectories=trajectories)
    described = run if data is None or isinstance(data, Trajectories) else replace(run, data=described_by(run, data))
    evaluation = evaluate_forecaster(
        described, run.forecaster, chosen, split=split, solver=solver, batch_size=batch_size
    )
    if write:
        name = file_name(run, chosen, split, foreign=data is not None, time_index=time_index, trajectories=trajectories)
        store(evaluation, results_folder(run_folder_of(run.folder)) / name)
    return evaluation


def opened(
    run: str | Path | RunFolder | Forecaster, *, device: str | torch.device = "auto", precision: Precision | None = None
) -> RunFolder:
    """A run, whatever stands for it; a bare forecaster has no folder and no data of its own."""
    if not isinstance(run, RunFolder | Forecaster):
        return open_run(run, device=device, precision=precision)
    if precision is not None:
        (run if isinstance(run, Forecaster) else run.forecaster).in_precision(precision)
    if isinstance(run, RunFolder):
        return run
    config = run.describe()
    return RunFolder(Path(), config["config"]["model"], run.to(choose_device(device)).eval(), config, None)


def choose(
    run: RunFolder,
    data: Trajectories | DataOptions | str | Path | None,
    split: str,
    *,
    resolution: Points | None,
    time_index: str | None,
    trajectories: int | None,
) -> Trajectories:
    """The trajectories that the arguments of `evaluate` mean."""
    if not isinstance(data, Trajectories):
        described = run if data is None else replace(run, data=described_by(run, data))
        return described.load(split, resolution=resolution, time_index=time_index, trajectories=trajectories)
    if (resolution, time_index, trajectories) != (None, None, None):
        raise ValueError("`resolution`, `time_index` and `trajectories` do not change given `data`; use its `select`.")
    return data


def described_by(run: RunFolder, data: DataOptions | str | Path) -> DataOptions:
    """A description; a mere name is read as the run's own data were."""
    return data if isinstance(data, DataOptions) else run.alike(data)


def evaluate_forecaster(
    run: RunFolder,
    forecaster: Forecaster | Ensemble,
    data: Trajectories,
    *,
    split: str = "test",
    name: str | None = None,
    solver: bool = False,
    batch_size: int = 32,
) -> Evaluation:
    """Score a forecaster of a run, and what it must beat, on these trajectories; writes nothing."""
    window = forecaster.window
    plan = window.plan(len(data.times))
    seconds = forecast_seconds(forecaster, data)
    baselines = {
        name: score(trivial, data, batch_size=batch_size, metrics=UNITLESS)
        for name, trivial in trivial_forecasters(data, window).items()
    }
    if solver:
        if run.data is None:
            raise ValueError(f"{run.folder} was started from Python: there is no description to solve its data again.")
        baselines |= solver_baselines(run.data, data, window, seconds=seconds, batch_size=batch_size)
    return Evaluation(
        name=name or run.name,
        model=run.model,
        parameters=count_parameters(forecaster.model),
        seed=run.seed,
        dataset=data.name,
        split=split,
        points=(points := tuple(axis.points for axis in data.axes)),
        copies=forecaster.copies(points, spacing=data.spacing),
        trajectories=len(data),
        given_until=float(data.times[plan.start]),
        times=tuple(float(data.times[frame]) for frame in plan.scored),
        fields=data.fields,
        fingerprint=fingerprint(data, window, batch_size=batch_size),
        scores=score(forecaster, data, batch_size=batch_size, metrics=EVERY),
        baselines=baselines,
        seconds=seconds,
        config={**run.config, "evaluated_in": forecaster.precision},
        provenance=provenance(),
    )


def rows_of(evaluation: Evaluation) -> list[Row]:
    """The run and what it must beat, as rows of a comparison."""
    timed = {} if evaluation.seconds is None else {"seconds": evaluation.seconds}
    scores = replace(evaluation.scores, means={**evaluation.scores.means, **timed})
    own = Row(evaluation.name, evaluation.parameters, scores)
    return [own, *(Row(name, 0, scores) for name, scores in evaluation.baselines.items())]


def fingerprint(data: Trajectories, window: Window, *, batch_size: int = 32) -> str:
    """sha256 of the true frames that are scored, with their fields and times."""
    scored = window.plan(len(data.times)).scored
    digest = hashlib.sha256(repr((data.fields, data.times[list(scored)].tolist())).encode())
    for _, frames in batches(data, batch_size):
        digest.update(np.ascontiguousarray(frames.state[:, scored.start : scored.stop].numpy()).tobytes())
    return digest.hexdigest()


def forecast_seconds(forecaster: Forecaster | Ensemble, data: Trajectories, *, together: int = TIMED) -> float:
    """Seconds of a forecast of one trajectory, when a few are forecast together."""
    count = min(together, len(data))
    return quick_seconds(first_forecasts(forecaster, data, count)) / count


def first_forecasts(forecaster: Forecaster | Ensemble, data: Trajectories, count: int) -> Callable[[], Tensor]:
    """A function that forecasts the first `count` trajectories; reading them is already done."""
    frames = data.read(range(count))
    plan = forecaster.window.plan(len(data.times))
    given, context = plan.inputs(*frames)
    return lambda: rollout(forecaster, given, len(plan.predicted), context=context, spacing=data.spacing)
