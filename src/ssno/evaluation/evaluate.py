"""Evaluate a run, or an ensemble of runs, with all metrics, beside forecasts that learn no dynamics.

    evaluation = evaluate("runs/ks-ssno", split="test")
    evaluation.scores.means["rel_l2"], evaluation.baselines["persistence"].means["rel_l2"]
    evaluate_ensemble(["runs/ks-0", "runs/ks-1", "runs/ks-2"]).calibration.ratio

The result and its file are in `ssno.evaluation.record`. Metrics are explained in docs/manual/metrics.md.
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
from ssno.data.envelope import Climatology
from ssno.data.grids import Points
from ssno.data.load import DataOptions
from ssno.data.trajectories import Frames, Trajectories
from ssno.data.windows import Window
from ssno.evaluation.cost import quick_seconds
from ssno.evaluation.record import Calibration, Evaluation, batch_sums, file_name, finish, write_evaluation
from ssno.evaluation.solver import break_even, solver_baselines
from ssno.evaluation.tables import ResultTable
from ssno.evaluation.trivial import climatology_of_run, trivial_forecasters, with_skill, without_climatology
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout
from ssno.forecasting.scores import EVERY, ForecasterScorer, Scores, batches, score
from ssno.models.operator import count_parameters
from ssno.models.pretrained import results_folder
from ssno.native.engine import Precision
from ssno.runs.load import run_folder_of
from ssno.runs.open import RunFolder, open_run

TIMED = 8  # trajectories forecast together when a forecast is timed
UNITLESS = tuple(name for name in EVERY if name != "rel_l2_normalised")
"""Metrics of baselines, which have no normalised units of their own."""


@dataclass(frozen=True)
class ScoreRow:
    """One forecaster's name, size and scores."""

    name: str
    parameters: int
    scores: Scores


def compare(forecasters: Mapping[str, Forecaster], data: Trajectories) -> list[ScoreRow]:
    """Score every forecaster on the same trajectories, best first."""
    rows = [ScoreRow(name, count_parameters(f.model), score(f, data)) for name, f in forecasters.items()]
    return sorted(rows, key=lambda row: row.scores.means["rel_l2"])


def as_table(rows: list[ScoreRow], *, title: str) -> Table:
    """A table for the terminal: a line per forecaster, its error beside that of the best."""
    best = rows[0].scores.means["rel_l2"]
    lines = []
    for row in rows:
        rollout, onestep = (row.scores.means[name] for name in ("rel_l2", "rel_l2_onestep"))
        ratio = rollout / best if best else float("nan")
        lines.append((row.name, f"{row.parameters:,}", f"{rollout:.4f}", f"{onestep:.4f}", f"{ratio:.1f}"))
    headings = ("forecast by", "parameters", "rel_l2", "rel_l2_onestep", "error, best = 1")
    return ResultTable(title, headings, tuple(lines)).terminal()


def metric_table(rows: Sequence[ScoreRow], *, title: str) -> ResultTable:
    """All metrics: a line per metric, a column per forecaster."""
    names = dict.fromkeys(name for row in rows for name in row.scores.means)
    lines = [("parameters", *(number(row.parameters) for row in rows))]
    lines += [(name, *(number(row.scores.means.get(name)) for row in rows)) for name in names]
    lines.append(("diverged forecasts", *(str(len(row.scores.divergences)) for row in rows)))
    return ResultTable(title, ("", *(row.name for row in rows)), tuple(lines))


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
    climatology: Climatology | None = None,
) -> Evaluation:
    """Score a run and the trivial forecasts (`ssno.evaluation.trivial`) with every metric, and write the result to the
    run's folder.

    Args:
        run: folder of a run or of one of its checkpoints; name of a bundled checkpoint; an opened run
            (`ssno.runs.open_run`, which takes your own module); or a forecaster, for which nothing is written.
        data: trajectories, their options, or a name, file or folder, which is read with the options of the run's own
            data; by default the run's data.
        split: train, valid or test.
        resolution: grid points along the first axis, or along each: every n-th point where that fits, else the
            band-limited part of periodic fields; by default the training grid.
        time_index: frames to use, START:STOP:STEP; by default those of training.
        trajectories: use only the first ones, this many.
        solver: also score the numerical solver, on the model's grid and within the model's time, and find break-even.
        batch_size: trajectories at once; changes memory, not results.
        device: auto, cpu, cuda[:N] or mps.
        precision: float32, bf16 or float64; by default that of the weights.
        write: store the result in the folder, as `file_name(...)`.
        climatology: of training data (`Climatology.of`); by default that of the run.
    """
    write = write and not isinstance(run, Forecaster)
    run = opened(run, device=device, precision=precision)
    chosen = choose(run, data, split, resolution=resolution, time_index=time_index, trajectories=trajectories)
    described = run if data is None or isinstance(data, Trajectories) else replace(run, data=described_by(run, data))
    evaluation = evaluate_forecaster(
        described,
        run.forecaster,
        chosen,
        split=split,
        solver=solver,
        batch_size=batch_size,
        climatology=climatology or climatology_of_run(run, chosen),
    )
    if solver and described.data is not None and evaluation.seconds is not None:
        found = break_even(
            run, described.data, chosen, run.forecaster.window, scores=evaluation.scores, seconds=evaluation.seconds
        )
        evaluation = replace(evaluation, break_even=found)
    if write:
        name = file_name(run, chosen, split, foreign=data is not None, time_index=time_index, trajectories=trajectories)
        write_evaluation(evaluation, results_folder(run_folder_of(run.folder)) / name)
    return evaluation


def opened(
    run: str | Path | RunFolder | Forecaster, *, device: str | torch.device = "auto", precision: Precision | None = None
) -> RunFolder:
    """Open a run, if it is not open yet; a forecaster becomes a run without folder and data."""
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
    """The trajectories that the arguments of `evaluate` select."""
    if not isinstance(data, Trajectories):
        described = run if data is None else replace(run, data=described_by(run, data))
        return described.load(split, resolution=resolution, time_index=time_index, trajectories=trajectories)
    if (resolution, time_index, trajectories) != (None, None, None):
        raise ValueError(
            "`resolution`, `time_index` and `trajectories` do not apply to `Trajectories` in `data`; use `data.select`."
        )
    return data


def described_by(run: RunFolder, data: DataOptions | str | Path) -> DataOptions:
    """Data options; a name is read with the options of the run's own data."""
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
    climatology: Climatology | str | None = None,
) -> Evaluation:
    """Score a forecaster of a run and the baselines on these trajectories; writes nothing.

    `climatology` is that of the training data, by default the run's, or says why there is none.
    """
    if climatology is None:
        climatology = climatology_of_run(run, data)
    missing = without_climatology(data, climatology)
    known = None if isinstance(climatology, str) else climatology
    usual = None if missing or known is None else known.at(data)
    window = forecaster.window
    plan = window.plan(len(data.times))
    seconds = forecast_seconds(forecaster, data)
    scorers = {
        name: ForecasterScorer(trivial, data, metrics=UNITLESS, climatology=usual)
        for name, trivial in trivial_forecasters(data, window, climatology=known).items()
    }
    own = ForecasterScorer(forecaster, data, metrics=EVERY, climatology=usual)
    digest = Fingerprint(data, window)
    for rows, frames in batches(data, batch_size):  # the data are read once
        digest.add(frames)
        for scorer in (own, *scorers.values()):
            scorer.add(rows, frames)
    baselines = {name: scorer.scores() for name, scorer in scorers.items()}
    if solver:
        if run.data is None:
            raise ValueError(
                f"`solver` needs the options of the data, but {run.folder} was started from Python without them."
            )
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
        fingerprint=digest.text(),
        scores=with_skill(own.scores(), baselines),
        baselines={name: with_skill(scores, baselines) for name, scores in baselines.items()},
        no_climatology=missing,
        seconds=seconds,
        config={**run.config, "evaluated_in": forecaster.precision},
        provenance=provenance(),
    )


def rows_of(evaluation: Evaluation) -> list[ScoreRow]:
    """The run and its baselines, as rows of a table."""
    timed = {} if evaluation.seconds is None else {"seconds": evaluation.seconds}
    if evaluation.break_even is not None and (forecasts := evaluation.break_even.forecasts) is not None:
        timed["break_even"] = forecasts
    scores = replace(evaluation.scores, means={**evaluation.scores.means, **timed})
    own = ScoreRow(evaluation.name, evaluation.parameters, scores)
    return [own, *(ScoreRow(name, 0, scores) for name, scores in evaluation.baselines.items())]


class Fingerprint:
    """sha256 of the true frames that are scored, with their fields and times."""

    def __init__(self, data: Trajectories, window: Window):
        self.scored = window.plan(len(data.times)).scored
        self.digest = hashlib.sha256(repr((data.fields, data.times[list(self.scored)].tolist())).encode())

    def add(self, frames: Frames) -> None:
        """The next trajectories."""
        truth = frames.state[:, self.scored.start : self.scored.stop]
        self.digest.update(np.ascontiguousarray(truth.numpy()).tobytes())

    def text(self) -> str:
        """The digest of all that were added."""
        return self.digest.hexdigest()


def fingerprint(data: Trajectories, window: Window, *, batch_size: int = 32) -> str:
    """The `Fingerprint` of a dataset."""
    found = Fingerprint(data, window)
    for _, frames in batches(data, batch_size):
        found.add(frames)
    return found.text()


def forecast_seconds(forecaster: Forecaster | Ensemble, data: Trajectories, *, together: int = TIMED) -> float:
    """Seconds per trajectory, when a few are forecast together."""
    count = min(together, len(data))
    return quick_seconds(first_forecasts(forecaster, data, count)) / count


def first_forecasts(forecaster: Forecaster | Ensemble, data: Trajectories, count: int) -> Callable[[], Tensor]:
    """A function that forecasts the first `count` trajectories, which are read beforehand."""
    frames = data.read(range(count))
    plan = forecaster.window.plan(len(data.times))
    given, context = plan.inputs(*frames)
    return lambda: rollout(forecaster, given, len(plan.predicted), context=context, spacing=data.spacing)


def evaluate_ensemble(
    runs: Sequence[str | Path | RunFolder],
    *,
    data: Trajectories | DataOptions | str | Path | None = None,
    split: str = "test",
    resolution: Points | None = None,
    time_index: str | None = None,
    trajectories: int | None = None,
    batch_size: int = 32,
    device: str | torch.device = "auto",
    precision: Precision | None = None,
    write: bool = True,
) -> Evaluation:
    """As `evaluate`, for the mean forecast of several runs, with its calibration; written to the first run's folder.

    The runs must share units, window and grid, as seeds of one model on the same data do.
    """
    members = [opened(run, device=device, precision=precision) for run in runs]
    ensemble = Ensemble([member.forecaster for member in members])
    first = members[0]
    chosen = choose(first, data, split, resolution=resolution, time_index=time_index, trajectories=trajectories)
    name = f"ensemble of {len(runs)}"
    evaluation = replace(
        evaluate_forecaster(first, ensemble, chosen, split=split, name=name, batch_size=batch_size),
        model=", ".join(dict.fromkeys(member.model for member in members)),
        seed=None,
        calibration=calibrate_ensemble(ensemble, chosen, batch_size=batch_size),
        config={**first.config, "members": [member.name for member in members]},
    )
    if write:
        changed = {"foreign": data is not None, "time_index": time_index, "trajectories": trajectories}
        file = file_name(first, chosen, split, ensemble=len(runs), **changed)  # type: ignore[arg-type]
        write_evaluation(evaluation, results_folder(run_folder_of(first.folder)) / file)
    return evaluation


def calibrate_ensemble(ensemble: Ensemble, data: Trajectories, *, batch_size: int = 32) -> Calibration:
    """Coverage and spread of the members' rollouts over all scored frames, in normalised units."""
    plan = ensemble.window.plan(len(data.times))
    sums = []
    for _, frames in batches(data, batch_size):
        given, context = plan.inputs(*frames)
        units = ensemble.units(given)
        forecasts = [
            units.encode(rollout(member, given, len(plan.predicted), context=context, spacing=data.spacing))
            for member in ensemble.forecasters
        ]
        members = torch.stack(forecasts)[:, :, plan.scored.start - plan.predicted.start :]
        sums.append(batch_sums(members, units.encode(frames.state[:, plan.scored.start : plan.scored.stop])))
    return finish(sums)
