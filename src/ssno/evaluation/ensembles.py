"""Evaluate several runs as one ensemble: the mean of their forecasts, and whether their spread is honest.

    evaluation = evaluate_ensemble(["runs/ks-0", "runs/ks-1", "runs/ks-2"])
    evaluation.scores.means["rel_l2"], evaluation.calibration.ratio

The runs must share units, window and grid, as seeds of one model on the same data do.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from ssno.data.grids import Points
from ssno.data.options import DataOptions
from ssno.data.trajectories import Trajectories
from ssno.evaluation.evaluate import choose, evaluate_forecaster, opened
from ssno.evaluation.record import Calibration, CalibrationSums, Evaluation, batch_sums, file_name, finish, store
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.rollout import rollout
from ssno.forecasting.scores import batches
from ssno.models.pretrained import results_folder
from ssno.native.engine import Precision
from ssno.runs.load import run_folder_of
from ssno.runs.open import RunFolder


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
    """As `evaluate`, for the mean forecast of several runs, with its calibration; written to the first run's folder."""
    members = [opened(run, device=device, precision=precision) for run in runs]
    ensemble = Ensemble([member.forecaster for member in members])
    first = members[0]
    chosen = choose(first, data, split, resolution=resolution, time_index=time_index, trajectories=trajectories)
    name = f"ensemble of {len(runs)}"
    evaluation = replace(
        evaluate_forecaster(first, ensemble, chosen, split=split, name=name, batch_size=batch_size),
        seed=None,
        calibration=calibrate_ensemble(ensemble, chosen, batch_size=batch_size),
        config={**first.config, "members": [member.name for member in members]},
    )
    if write:
        changed = {"foreign": data is not None, "time_index": time_index, "trajectories": trajectories}
        file = file_name(first, chosen, split, ensemble=len(runs), **changed)  # type: ignore[arg-type]
        store(evaluation, results_folder(run_folder_of(first.folder)) / file)
    return evaluation


def calibrate_ensemble(ensemble: Ensemble, data: Trajectories, *, batch_size: int = 32) -> Calibration:
    """Coverage and spread of the members' rollouts over all scored frames, in normalised units."""
    plan = ensemble.window.plan(len(data.times))
    sums: list[CalibrationSums] = []
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
