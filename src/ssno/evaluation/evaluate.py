"""An evaluation: one run, one set of trajectories, all metrics, and what any model must beat on the same trajectories.

    evaluation = evaluate("runs/ks-ssno", split="test")
    evaluation.scores.means["rel_l2"], evaluation.baselines["persistence"].means["rel_l2"]

It lives on disk as `evaluation.json` in the folder of the run (`file_name` for other splits and grids), whole or not
at all, with the run's config, commit, versions and hardware; for a checkpoint that comes with the package, in
./runs/pretrained/NAME. Metrics are explained in docs/evaluation.md.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ssno.base.provenance import provenance
from ssno.base.whole import write_whole
from ssno.costs.timing import quick_seconds
from ssno.data.options import DataOptions
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.evaluation.calibration import Calibration
from ssno.evaluation.comparison import Row, trivial_forecasters
from ssno.evaluation.solver import solver_baselines
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout
from ssno.forecasting.scores import EVERY, Runaway, Scores, batches, score
from ssno.models.bundled import results_folder
from ssno.models.count import count_parameters
from ssno.runs.folder import RunFolder, open_run
from ssno.runs.saved import run_folder_of

FORMAT, VERSION = "ssno-evaluation", 1
TIMED = 8  # trajectories forecast together when a forecast is timed


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What a run's forecasts are worth on one set of trajectories."""

    name: str
    """The run."""
    model: str
    """The model, as commands call it."""
    parameters: int
    """Real parameters of the model."""
    seed: int | None = None
    """Seed of the run, if it says."""
    dataset: str
    """Name of the data."""
    split: str
    """Which part of them: train, valid, test."""
    points: tuple[int, ...]
    """Grid points along each axis."""
    trajectories: int
    """How many were forecast."""
    given_until: float
    """Time of the last given frame."""
    times: tuple[float, ...]
    """Times of the scored frames; `scores.step_errors` belong to them."""
    fields: tuple[str, ...]
    """Names of the predicted fields."""
    fingerprint: str
    """sha256 of the scored true frames: two evaluations may be compared if it is the same."""
    scores: Scores
    """Of the model."""
    baselines: Mapping[str, Scores] = field(default_factory=dict)
    """Of forecasts that need no learning: persistence, linear, the solver."""
    seconds: float | None = None
    """Of one forecast of one trajectory, measured; None if it was not."""
    calibration: Calibration | None = None
    """Of an ensemble: whether its spread is honest."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The run's config.json: model, units, data, training."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Versions, commit and hardware of the evaluation."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; a number that is not finite becomes None."""
        return {"format": FORMAT, "version": VERSION, **_plain(asdict(self))}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> "Evaluation":
        """The inverse of `to_json`."""
        if not isinstance(values, Mapping) or (values.get("format"), values.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"Not an evaluation of this ssno: expected format {FORMAT!r}, version {VERSION}.")
        known = {key: value for key, value in values.items() if key not in ("format", "version")}
        try:
            known["scores"] = _scores(known["scores"])
            known["baselines"] = {name: _scores(scores) for name, scores in known["baselines"].items()}
            if known.get("calibration") is not None:
                lists = known["calibration"].items()
                known["calibration"] = Calibration(**{key: tuple(map(_number, list_)) for key, list_ in lists})
            for key in ("points", "times", "fields"):
                known[key] = tuple(known[key])
            return Evaluation(**known)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"The evaluation is damaged or was edited by hand ({error}). Make it again.") from None


def evaluate(
    folder: str | Path,
    *,
    data: Trajectories | DataOptions | None = None,
    split: str = "test",
    points: int | None = None,
    time_index: str | None = None,
    trajectories: int | None = None,
    solver: bool = False,
    batch_size: int = 32,
    write: bool = True,
) -> Evaluation:
    """Score a run, persistence and linear extrapolation with every metric, and write the result to the run's folder.

    Args:
        folder: of a run, or of one of its checkpoints; or the name of a bundled checkpoint.
        data: trajectories to evaluate on, or their description; by default those that the run describes.
        split: which part of the run's data.
        points: read the data on a grid with this many points along the first axis; by default the training grid.
        time_index: frames to use, START:STOP:STEP; by default those of training.
        trajectories: only the first so many.
        solver: also score the solver on the model's grid, and the best one that is as fast as the model.
        batch_size: trajectories at once; changes memory, not results.
        write: store `file_name(...)` in the folder.
    """
    run = open_run(folder)
    chosen = choose(run, data, split, points=points, time_index=time_index, trajectories=trajectories)
    described = replace(run, data=data) if isinstance(data, DataOptions) else run
    evaluation = evaluate_forecaster(
        described, run.forecaster, chosen, split=split, solver=solver, batch_size=batch_size
    )
    if write:
        name = file_name(run, chosen, split, foreign=data is not None, time_index=time_index, trajectories=trajectories)
        store(evaluation, results_folder(run_folder_of(run.folder)) / name)
    return evaluation


def choose(
    run: RunFolder,
    data: Trajectories | DataOptions | None,
    split: str,
    *,
    points: int | None,
    time_index: str | None,
    trajectories: int | None,
) -> Trajectories:
    """The trajectories that the arguments of `evaluate` mean."""
    if not isinstance(data, Trajectories):
        described = run if data is None else replace(run, data=data)
        return described.load(split, points=points, time_index=time_index, trajectories=trajectories)
    if (points, time_index, trajectories) != (None, None, None):
        raise ValueError("`points`, `time_index` and `trajectories` do not change given `data`; use its `select`.")
    return data


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
        name: score(trivial, data, batch_size=batch_size, metrics=EVERY)
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
        points=tuple(axis.points for axis in data.axes),
        trajectories=len(data),
        given_until=float(data.times[plan.start]),
        times=tuple(float(data.times[frame]) for frame in plan.scored),
        fields=data.fields,
        fingerprint=fingerprint(data, window, batch_size=batch_size),
        scores=score(forecaster, data, batch_size=batch_size, metrics=EVERY),
        baselines=baselines,
        seconds=seconds,
        config=run.config,
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
    given = frames.state[:, plan.given.start : plan.given.stop]
    context = frames.context[:, plan.given.start :] if data.context_fields else None
    return lambda: rollout(forecaster, given, len(plan.predicted), context=context, spacing=data.spacing)


def file_name(
    run: RunFolder,
    data: Trajectories,
    split: str = "test",
    *,
    foreign: bool = False,
    time_index: str | None = None,
    trajectories: int | None = None,
    ensemble: int = 0,
) -> str:
    """evaluation.json for the run's best weights on its whole test split; others say what is different about them.

    `evaluation-valid-128x128.json`, `evaluation-last-first10.json`; `foreign` data add their name.
    """
    different = [
        f"ensemble{ensemble}" if ensemble else "",
        run.folder.name if run_folder_of(run.folder) != run.folder else "",
        re.sub(r"[^A-Za-z0-9.]+", "_", data.name) if foreign and run.data is not None else "",
        split if split != "test" else "",
        "x".join(str(axis.points) for axis in data.axes) if run.forecaster.spacing not in (None, data.spacing) else "",
        "" if time_index is None else "frames" + time_index.replace(":", "_"),
        "" if trajectories is None else f"first{trajectories}",
    ]
    return "-".join(filter(None, ["evaluation", *different])) + ".json"


def store(evaluation: Evaluation, path: Path) -> Path:
    """Write an evaluation, whole or not at all, in a folder that is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(evaluation.to_json(), indent=1, allow_nan=False).encode())
    return path


def read_evaluation(path: Path) -> Evaluation:
    """Read what `store` wrote."""
    try:
        return Evaluation.from_json(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no {path}. Make it with: ssno evaluate {path.parent}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _number(value: float | None) -> float:
    return math.inf if value is None else float(value)


def _scores(values: Mapping[str, Any]) -> Scores:
    lower, upper = values["step_quartiles"]
    return Scores(
        means={name: _number(value) for name, value in values["means"].items()},
        step_errors=tuple(map(_number, values["step_errors"])),
        trajectory_errors=tuple(map(_number, values["trajectory_errors"])),
        step_quartiles=(tuple(map(_number, lower)), tuple(map(_number, upper))),
        runaways=tuple(Runaway(**runaway) for runaway in values["runaways"]),
    )
