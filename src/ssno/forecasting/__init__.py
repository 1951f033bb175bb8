"""A model together with its normalisation: forecasts in physical units, their errors, and files of them."""

from ssno.forecasting.cloud_scores import contour_force, lift_coefficient, rank_correlation, volume_and_surface
from ssno.forecasting.divergence import (
    Departure,
    Divergence,
    EnergyGuard,
    ForecastDiverged,
    ForecastWatch,
    divergence_step,
)
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.metrics import (
    correlation_time,
    energy_drift,
    energy_spectrum,
    frame_errors,
    mean_drift,
    nrmse,
    pearson,
    rmse,
    spectral_errors,
    trajectory_errors,
    valid_time,
    vrmse,
)
from ssno.forecasting.predict import Prediction, plan_prediction, predict
from ssno.forecasting.rollout import rollout, stream
from ssno.forecasting.scores import Scores, score, score_forecasts

__all__ = [
    "Departure",
    "Divergence",
    "EnergyGuard",
    "Ensemble",
    "ForecastDiverged",
    "ForecastWatch",
    "Forecaster",
    "Prediction",
    "Scores",
    "contour_force",
    "correlation_time",
    "divergence_step",
    "energy_drift",
    "energy_spectrum",
    "frame_errors",
    "lift_coefficient",
    "mean_drift",
    "nrmse",
    "pearson",
    "plan_prediction",
    "predict",
    "rank_correlation",
    "rmse",
    "rollout",
    "score",
    "score_forecasts",
    "spectral_errors",
    "stream",
    "trajectory_errors",
    "valid_time",
    "volume_and_surface",
    "vrmse",
]
