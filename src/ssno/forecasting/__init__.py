"""A model together with its units: forecasts in the fields the user knows, their errors, and files of them."""

from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.predict import Prediction, plan_prediction, predict
from ssno.forecasting.rollout import rollout, stream
from ssno.forecasting.runaway import Divergence, ForecastDiverged
from ssno.forecasting.scores import Scores, score, score_forecasts
from ssno.forecasting.watch import Departure, ForecastWatch

__all__ = [
    "Departure",
    "Divergence",
    "Ensemble",
    "ForecastDiverged",
    "ForecastWatch",
    "Forecaster",
    "Prediction",
    "Scores",
    "plan_prediction",
    "predict",
    "rollout",
    "score",
    "score_forecasts",
    "stream",
]
