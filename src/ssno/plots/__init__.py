"""Pictures: every function takes numbers and gives a matplotlib figure; saving is the caller's business."""

from ssno.plots.animation import animate
from ssno.plots.bands import Band, ensemble_bands, error_bands
from ssno.plots.calibration import calibration_plot
from ssno.plots.curves import error_over_time, loss_curves
from ssno.plots.foils import flow_pictures, pressure_curve, pressure_panels
from ssno.plots.gallery import gallery
from ssno.plots.globe import animate_globe, sphere_panels
from ssno.plots.kernels import kernel_panels, memory_weights
from ssno.plots.modes import mode_ridges
from ssno.plots.panels import frame_panels
from ssno.plots.pareto import pareto_figure
from ssno.plots.spacetime import forecast_panels
from ssno.plots.spectra import spectra
from ssno.plots.style import dark, look, save
from ssno.plots.summary import learning_curves, seed_dots, seed_lines

__all__ = [
    "Band",
    "animate",
    "animate_globe",
    "calibration_plot",
    "dark",
    "ensemble_bands",
    "error_bands",
    "error_over_time",
    "flow_pictures",
    "forecast_panels",
    "frame_panels",
    "gallery",
    "kernel_panels",
    "learning_curves",
    "look",
    "loss_curves",
    "memory_weights",
    "mode_ridges",
    "pareto_figure",
    "pressure_curve",
    "pressure_panels",
    "save",
    "seed_dots",
    "seed_lines",
    "spectra",
    "sphere_panels",
]
