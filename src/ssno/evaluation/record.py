"""The result of an evaluation, and its file.

`evaluation.json` is in the folder of the run (`file_name` for other splits and grids), with the run's config, commit,
versions and hardware; for a bundled checkpoint, in ./runs/pretrained/NAME.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base import DocumentError, description_from_json, read_document, write_document
from ssno.base.device import float64
from ssno.base.formatting import as_file_name
from ssno.data.trajectories import Trajectories
from ssno.forecasting.divergence import TOO_LARGE
from ssno.forecasting.scores import Scores
from ssno.models.pretrained import with_new_sections
from ssno.runs.checkpoint import evaluation_file
from ssno.runs.load import run_folder_of
from ssno.runs.open import RunFolder

# Calibration of an ensemble: coverage of its intervals, and spread against error.
#
# An ensemble of m members gives a mean and a standard deviation s (with m - 1) at every point. If truth and members
# were draws from one Gaussian, then
#
#     (truth - mean) / (s sqrt(1 + 1/m))  has Student's t distribution with m - 1 degrees of freedom,
#     E (truth - mean)^2 = (1 + 1/m) E s^2.
#
# So the central interval  mean +- t_p s sqrt(1 + 1/m)  holds the truth with probability p (coverage), for any number of
# members, and  spread = sqrt((1 + 1/m) <s^2>)  equals the error of the mean (spread-skill). An ensemble whose observed
# coverage is below the nominal one, or whose ratio is below 1, is overconfident.
#
# Axes: m member, b trajectory, t frame, c field, then the grid.

NOMINAL = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Calibration:
    """Calibration of an ensemble.

    The central interval of probability `nominal[i]` holds the fraction `observed[i]` of the true values. `spread[t]` is
    the predicted and `error[t]` the actual error of frame t (both root mean squares, normalised units).
    """

    nominal: tuple[float, ...]
    observed: tuple[float, ...]
    spread: tuple[float, ...]
    error: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Spread over error of all frames: 1 is calibrated, below 1 overconfident."""
        spread, error = (sum(value**2 for value in values) for values in (self.spread, self.error))
        return (spread / error) ** 0.5 if error else float("inf")


@dataclass(frozen=True)
class CalibrationSums:
    """Sums over a batch of trajectories, which add up to a calibration."""

    inside: Float[Tensor, " p"]
    values: int
    variance: Float[Tensor, " t"]
    square: Float[Tensor, " t"]


def batch_sums(members: Float[Tensor, "m b t c *grid"], truth: Float[Tensor, "b t c *grid"]) -> CalibrationSums:
    """Sums over one batch of members' forecasts."""
    count = len(members)
    if count < 2:
        raise ValueError(f"`members` must hold at least 2 forecasts to have a spread, got {count}.")
    from scipy.special import stdtrit  # takes a seventh of a second to import

    members, truth = float64(members), float64(truth)
    difference = (truth - members.mean(0)).abs()
    variance = members.var(0) * (1 + 1 / count)
    widths = torch.tensor(stdtrit(count - 1, [(1 + level) / 2 for level in NOMINAL]))  # quantiles of Student's t
    # A difference that is not finite is in no interval: comparisons with NaN are false.
    inside = torch.stack([(difference <= width * variance.sqrt()).sum() for width in widths]).double()
    others = tuple(dim for dim in range(truth.ndim) if dim != 1)
    return CalibrationSums(inside, truth.numel(), variance.sum(others), difference.square().sum(others))


def finish(batches: Sequence[CalibrationSums]) -> Calibration:
    """Add batches up."""
    inside, variance, square = (
        torch.stack([getattr(batch, name) for batch in batches]).sum(0) for name in ("inside", "variance", "square")
    )
    values = sum(batch.values for batch in batches)
    per_frame = values / len(square)
    return Calibration(
        nominal=NOMINAL,
        observed=tuple((inside / values).tolist()),
        spread=tuple((variance / per_frame).sqrt().tolist()),
        error=tuple((square / per_frame).sqrt().tolist()),
    )


# Break-even: after how many forecasts a model has cost less than the solver of equal error (arXiv 2605.15399).
#
#     n* = (training + data) / (solver - model)     seconds; solver and model per forecast of one trajectory
#
# If the solver is as fast as the model or faster, never. A part that is not known makes n* unknown, not smaller.


@dataclass(frozen=True, kw_only=True)
class BreakEven:
    """The parts of break-even in wall-clock seconds; None where a part is not known, `remarks` say why and how."""

    training: float | None
    """Seconds of training, from the log of the run."""
    data: float | None
    """Seconds to solve the trajectories of training and validation."""
    model: float
    """Seconds of the model per forecast."""
    solver: float | None
    """Seconds of the solver per forecast, on the cheapest grid with at most the error of the model."""
    solver_points: int | None = None
    """Points per side of that grid."""
    remarks: tuple[str, ...] = ()
    """How parts were found, and which are missing."""

    @property
    def forecasts(self) -> float | None:
        """n*; infinite if the model never costs less, None if a part is missing."""
        if self.solver is not None and self.solver <= self.model:
            return math.inf  # whatever the other parts are
        if self.training is None or self.data is None or self.solver is None:
            return None
        return (self.training + self.data) / (self.solver - self.model)

    def result(self) -> str:
        """n* in words."""
        if self.forecasts is None:
            return "unknown"
        return "never" if math.isinf(self.forecasts) else f"after {math.ceil(self.forecasts):,} forecasts"

    def sentence(self) -> str:
        """The result, its parts, and what to know about them."""
        known = {"training": self.training, "data": self.data, "solver at equal error": self.solver}
        parts = [f"{name} {'unknown' if value is None else f'{value:.3g} s'}" for name, value in known.items()]
        on = "" if self.solver_points is None else f" on {self.solver_points} points per side"
        costs = f"{', '.join(parts)}{on}, model {self.model:.3g} s per forecast"
        return " ".join([f"Break-even: {self.result()} ({costs}).", *(f"{remark}." for remark in self.remarks)])


FORMAT, VERSION = "ssno-evaluation", 1
RENAMED = {"runaways": "divergences", "runaway": TOO_LARGE}
"""In scores, since version 0.2."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Scores of a run and its baselines on one set of trajectories."""

    name: str
    """The run."""
    model: str
    """Name of the model."""
    parameters: int
    """Real parameters of the model."""
    seed: int | None = None
    """Seed of the run, if recorded."""
    dataset: str
    """Name of the data."""
    split: str
    """train, valid or test."""
    points: tuple[int, ...]
    """Grid points along each axis."""
    copies: tuple[int, ...] = ()
    """Number of interleaved copies of the training grid that the forecasts consist of, along each axis."""
    trajectories: int
    """Number of trajectories."""
    given_until: float
    """Time of the last input frame."""
    times: tuple[float, ...]
    """Times of the scored frames, those of `scores.step_errors`."""
    fields: tuple[str, ...]
    """Names of the predicted fields."""
    fingerprint: str
    """sha256 of the scored true frames: evaluations can be compared if it is equal."""
    scores: Scores
    """Scores of the model."""
    baselines: Mapping[str, Scores] = field(default_factory=dict)
    """Scores of trivial forecasts (`ssno.evaluation.trivial`) and of the solver."""
    no_climatology: str = ""
    """Why climatology is not among the baselines, if it is not."""
    seconds: float | None = None
    """Measured seconds per forecast of one trajectory."""
    break_even: BreakEven | None = None
    """After how many forecasts the model has cost less than the solver, if that was scored."""
    calibration: Calibration | None = None
    """Calibration, of an ensemble."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The run's config.json: model, units, data, training."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Versions, commit and hardware of the evaluation."""

    def is_of(self, run: RunFolder) -> bool:
        """Whether this is an evaluation of `run` with its current config and precision."""
        config = dict(self.config)
        computed_in = config.pop("evaluated_in", run.precision)
        return (config, computed_in) == (run.config, run.forecaster.precision)

    def to_json(self) -> dict[str, Any]:
        """Plain values; some may not be finite. `break_even.forecasts` is a number, "never", or None if unknown."""
        values = {"format": FORMAT, "version": VERSION, **asdict(self)}
        if self.break_even is not None:
            forecasts = self.break_even.forecasts
            values["break_even"]["forecasts"] = "never" if forecasts == math.inf else forecasts
        return values


def write_evaluation(evaluation: Evaluation, path: Path) -> Path:
    """Write an evaluation atomically and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_document(path, evaluation.to_json(), format=FORMAT, version=VERSION)
    return path


def read_evaluation(path: Path) -> Evaluation:
    """Read what `write_evaluation` wrote; refuse a file whose parts contradict each other."""
    if not path.exists():
        raise FileNotFoundError(f"There is no {path}. Make it with: ssno evaluate {path.parent}")
    remedy = f"Make it again with: ssno evaluate {path.parent}"
    content = read_document(path, format=FORMAT, versions=[VERSION], remedy=remedy)
    known = {name: value for name, value in content.items() if name not in ("format", "version")}
    for name in ("scores", "baselines", "calibration"):
        if known.get(name) is not None:
            known[name] = _restored(known[name])
    if isinstance(parts := known.get("break_even"), dict):
        parts.pop("forecasts", None)  # follows from the others
    try:
        if isinstance(config := known.get("config"), dict):
            known["config"] = with_new_sections(config)
        evaluation = description_from_json(Evaluation, known)
        _check(evaluation)
        return evaluation
    except (ValueError, TypeError, OverflowError) as error:
        raise DocumentError(f"{path} is damaged or was edited by hand ({error}). {remedy}") from None


def _restored(value: Any) -> Any:
    """Values before they were written, with today's names: None stands for a number that was not finite."""
    if isinstance(value, Mapping):
        if value.get("skill", 0.0) is None:
            value = {**value, "skill": -math.inf}
        return {RENAMED.get(name, name): _restored(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_restored(inner) for inner in value]
    return math.inf if value is None else RENAMED.get(value, value) if isinstance(value, str) else value


def _check(evaluation: Evaluation) -> None:
    """Refuse an evaluation whose parts contradict each other: tables and figures rely on them."""
    frames, run = len(evaluation.times), evaluation.config.get("run", {})
    if not frames or not evaluation.fields or not evaluation.points:
        raise ValueError("`times`, `fields` and `points` must not be empty")
    if not all(0 <= count < 2**63 for count in (evaluation.parameters, evaluation.trajectories, *evaluation.points)):
        raise ValueError("`parameters`, `trajectories` and `points` must be counts")
    if not isinstance(run, Mapping) or not isinstance(run.get("train", {}), Mapping):
        raise ValueError("`config.run` must be an object with an object `train`")
    for name, scores in {"scores": evaluation.scores, **evaluation.baselines}.items():
        if "rel_l2" not in scores.means:
            raise ValueError(f"`{name}.means` lacks rel_l2")
        if len(scores.step_errors) != frames or len(scores.trajectory_errors) != evaluation.trajectories:
            raise ValueError(f"`{name}` must have one error per frame and one per trajectory")
        if any(len(quartile) not in (0, frames) for quartile in scores.step_quartiles):
            raise ValueError(f"`{name}.step_quartiles` must have one value per frame")
    calibration = evaluation.calibration
    if calibration is not None:
        pairs = ((calibration.nominal, calibration.observed), (calibration.spread, calibration.error))
        if any(len(one) != len(two) or not one for one, two in pairs):
            raise ValueError("`calibration` must have equally many nominal and observed, spread and error")


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
    """evaluation.json for the best weights on the complete test split; otherwise the name lists the differences.

    Examples: `evaluation-valid-128x128.json`, `evaluation-last-first10.json`. `foreign` data add their name, another
    precision than that of the weights its own.
    """
    different = [
        f"ensemble{ensemble}" if ensemble else "",
        run.folder.name if run_folder_of(run.folder) != run.folder else "",
        as_file_name(data.name) if foreign and run.data is not None else "",
        split if split != "test" else "",
        "x".join(str(axis.points) for axis in data.axes) if run.forecaster.spacing not in (None, data.spacing) else "",
        "" if time_index is None else "frames" + time_index.replace(":", "_"),
        "" if trajectories is None else f"first{trajectories}",
        run.forecaster.precision if run.forecaster.precision != run.precision else "",
    ]
    return evaluation_file([word for word in different if word])
