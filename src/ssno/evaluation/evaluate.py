"""An evaluation: one run, one set of trajectories, all metrics, and what any model must beat on the same trajectories.

    evaluation = evaluate("runs/ks-ssno", split="test")
    evaluation.scores.means["rel_l2"], evaluation.baselines["persistence"].means["rel_l2"]

It lives on disk as `evaluation.json` in the folder of the run (`file_name` for other splits and grids), whole or not
at all, with the run's config, commit, versions and hardware. Metrics are explained in docs/evaluation.md.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ssno.files.whole import write_whole
from ssno.forecasting.scores import Runaway, Scores

FORMAT, VERSION = "ssno-evaluation", 1


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
            for key in ("points", "times", "fields"):
                known[key] = tuple(known[key])
            return Evaluation(**known)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"The evaluation is damaged or was edited by hand ({error}). Make it again.") from None


def file_name(split: str = "test", points: tuple[int, ...] | None = None) -> str:
    """evaluation.json for the test split on the run's own grid; `evaluation-valid-128x128.json` for another."""
    grid = "" if points is None else "-" + "x".join(map(str, points))
    return f"evaluation{'' if split == 'test' and not grid else f'-{split}'}{grid}.json"


def store(evaluation: Evaluation, path: Path) -> Path:
    """Write an evaluation, whole or not at all."""
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


def _scores(values: Mapping[str, Any]) -> Scores:
    def number(value: float | None) -> float:
        return math.inf if value is None else float(value)

    lower, upper = values["step_quartiles"]
    return Scores(
        means={name: number(value) for name, value in values["means"].items()},
        step_errors=tuple(map(number, values["step_errors"])),
        trajectory_errors=tuple(map(number, values["trajectory_errors"])),
        step_quartiles=(tuple(map(number, lower)), tuple(map(number, upper))),
        runaways=tuple(Runaway(**runaway) for runaway in values["runaways"]),
    )
