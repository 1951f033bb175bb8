"""The forecast that nothing changes: a row of every table of forecasts, which a model must stay below."""

from functools import cache

from ssno.data.defaults import dataset_conventions
from ssno.data.normalise import Normalisers
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.evaluation.comparison import trivial_forecasters
from ssno.experiments.trial import Trial
from ssno.experiments.units import unit_interval_factor
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.scores import TRAINING, score
from ssno.runs.folder import load_chosen

PERSISTENCE = "persistence"
SCORED = (*TRAINING, "spectral_error")


def persistence_error(trial: Trial, metric: str) -> float | None:
    """The error of persistence on the test trajectories of a trial; None where there is none, or no data any more."""
    if dataset_conventions(trial.run.data.name).cloud:
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
