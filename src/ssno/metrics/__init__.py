"""Errors and spectra of fields: functions on tensors."""

from ssno.metrics.conserved import energy_drift, mean_drift
from ssno.metrics.correlation import correlation_time, pearson, valid_time
from ssno.metrics.lift import contour_force, lift_coefficient
from ssno.metrics.ranks import rank_correlation
from ssno.metrics.relative import frame_errors, trajectory_errors
from ssno.metrics.root_mean_square import nrmse, rmse, vrmse
from ssno.metrics.runaway import runaway_step
from ssno.metrics.spectral import spectral_errors
from ssno.metrics.spectrum import energy_spectrum
from ssno.metrics.surface import volume_and_surface

__all__ = [
    "contour_force",
    "correlation_time",
    "energy_drift",
    "energy_spectrum",
    "frame_errors",
    "lift_coefficient",
    "mean_drift",
    "nrmse",
    "pearson",
    "rank_correlation",
    "rmse",
    "runaway_step",
    "spectral_errors",
    "trajectory_errors",
    "valid_time",
    "volume_and_surface",
    "vrmse",
]
