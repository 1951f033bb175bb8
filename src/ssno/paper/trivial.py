"""Errors of forecasts that learn no dynamics: rows of every table of forecasts, which a model must stay below."""

from collections.abc import Mapping
from functools import cache

from torch.linalg import vector_norm

from ssno.data.envelope import Climatology
from ssno.data.load import DataOptions
from ssno.data.normalise import Normalisers, fit
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window, dataset_conventions
from ssno.evaluation.trivial import RULES, trivial_forecasters, without_climatology
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.scores import TRAINING, score
from ssno.paper.trial import Trial
from ssno.runs.open import load_chosen

# The paper scales data to [0, 1] and may have printed errors in those units. What that does to a relative error:
#
#     |p - u| / |u - low|  =  |p - u| / |u|  *  |u| / |u - low|            low: the smallest value of the training data
#
# An affine map leaves differences alone up to its slope, but moves the zero that a relative error is relative to.

PERSISTENCE = RULES[0]
LOOKED_AT = 64  # trajectories are enough for a ratio of norms


@cache
def unit_interval_factor(options: DataOptions, window: Window) -> float:
    """By what a relative error of forecasts of one field is multiplied when it is scaled to [0, 1]."""
    train, test = options.load("train"), options.load("test")
    low = fit(train, "minmax").state.shift[0]
    scored = window.plan(len(test.times)).scored
    truth = test.read(range(min(LOOKED_AT, len(test)))).state[:, scored.start : scored.stop].flatten(1)
    return float((vector_norm(truth, dim=1) / vector_norm(truth - low, dim=1)).mean())


SCORED = (*TRAINING, "spectral_error")
Errors = Mapping[str, Mapping[str, float]]
"""By forecast and metric."""


def trivial_errors(trial: Trial) -> Errors:
    """Errors of trivial forecasts on the test trajectories of a trial; none of steady flows, or without the data."""
    if dataset_conventions(trial.run.data.name).geometry.is_steady:
        return {}
    try:
        return _errors(trial.run.data, trial.run.window, trial.tested)
    except FileNotFoundError:
        return {}


def best_trivial_error(trial: Trial, metric: str) -> float | None:
    """The smallest error of a trivial forecast, if there are any in this metric."""
    return min((errors[metric] for errors in trivial_errors(trial).values() if metric in errors), default=None)


def persistence_scores(
    data: Trajectories, window: Window, *, normalisers: Normalisers | None = None
) -> dict[str, float]:
    """Errors of persistence on given trajectories, by metric; those in normalised units only if there are any."""
    still = trivial_forecasters(data, window)[PERSISTENCE]
    if normalisers is not None:
        still = Forecaster(still.model, normalisers=normalisers, window=window)
    return dict(score(still, data, metrics=SCORED).means)


@cache
def _errors(options: DataOptions, window: Window, tested: int | None) -> Errors:
    data, climatology = load_chosen(options, "test", trajectories=tested), Climatology.of(options.load("train"))
    usual = None if without_climatology(data, climatology) else climatology.at(data)
    found = {
        name: dict(score(forecaster, data, metrics=SCORED, climatology=usual).means)
        for name, forecaster in trivial_forecasters(data, window, climatology=climatology).items()
    }
    if len(data.fields) == 1:
        factor = unit_interval_factor(options, window)
        for errors in found.values():
            errors["rel_l2_unit_interval"] = errors["rel_l2"] * factor
    return found
