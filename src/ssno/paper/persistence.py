"""The forecast that nothing changes: a row of every table of forecasts, which a model must stay below."""

from functools import cache

from torch.linalg import vector_norm

from ssno.data.load import DataOptions
from ssno.data.normalise import Normalisers, fit
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window, dataset_conventions
from ssno.evaluation.evaluate import trivial_forecasters
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.scores import TRAINING, score
from ssno.paper.trial import Trial
from ssno.runs.open import load_chosen

# The paper scales data to [0, 1] and may have printed errors in those units. What that does to a relative error:
#
#     |p - u| / |u - low|  =  |p - u| / |u|  *  |u| / |u - low|            low: the smallest value of the training data
#
# An affine map leaves differences alone up to its slope, but moves the zero that a relative error is relative to.

LOOKED_AT = 64  # trajectories are enough for a ratio of norms


@cache
def unit_interval_factor(options: DataOptions, window: Window) -> float:
    """By what a relative error of forecasts of one field is multiplied when it is scaled to [0, 1]."""
    train, test = options.load("train"), options.load("test")
    low = fit(train, "minmax").state.shift[0]
    scored = window.plan(len(test.times)).scored
    truth = test.read(range(min(LOOKED_AT, len(test)))).state[:, scored.start : scored.stop].flatten(1)
    return float((vector_norm(truth, dim=1) / vector_norm(truth - low, dim=1)).mean())


# The forecast that nothing changes: a row of every table of forecasts, which a model must stay below.

PERSISTENCE = "persistence"
SCORED = (*TRAINING, "spectral_error")


def persistence_error(trial: Trial, metric: str) -> float | None:
    """The error of persistence on the test trajectories of a trial; None where there is none, or no data any more."""
    if dataset_conventions(trial.run.data.name).geometry.is_steady:
        return None
    try:
        return _errors(trial).get(metric)
    except FileNotFoundError:
        return None


def persistence_cell(trial: Trial, metric: str) -> str:
    """The same as an entry of a table, empty where there is none."""
    error = persistence_error(trial, metric)
    return "" if error is None else f"{error:.3g}"


def persistence_scores(
    data: Trajectories, window: Window, *, normalisers: Normalisers | None = None
) -> dict[str, float]:
    """Errors of persistence on given trajectories, by metric; those in normalised units only if there are any."""
    still = trivial_forecasters(data, window)[PERSISTENCE]
    if normalisers is not None:
        still = Forecaster(still.model, normalisers=normalisers, window=window)
    return dict(score(still, data, metrics=SCORED).means)


@cache
def _errors(trial: Trial) -> dict[str, float]:
    run = trial.run
    data = load_chosen(run.data, "test", trajectories=trial.tested)
    found = persistence_scores(data, run.window)
    if len(data.fields) == 1:
        found["rel_l2_unit_interval"] = found["rel_l2"] * unit_interval_factor(run.data, run.window)
    return found
