"""A model together with its units: forecasts in the fields the user knows, their errors, and files of them."""

from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.predict import Prediction, plan_prediction, predict
from ssno.forecasting.rollout import rollout, stream
from ssno.forecasting.scores import Runaway, Scores, score, score_forecasts

__all__ = [
    "Ensemble",
    "Forecaster",
    "Prediction",
    "Runaway",
    "Scores",
    "plan_prediction",
    "predict",
    "rollout",
    "score",
    "score_forecasts",
    "stream",
]
