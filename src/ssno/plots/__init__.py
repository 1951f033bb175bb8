"""Pictures: every function takes numbers and gives a matplotlib figure; saving is the caller's business."""

from ssno.plots.animation import animate
from ssno.plots.curves import (
    Band,
    calibration_plot,
    ensemble_bands,
    error_bands,
    error_over_time,
    loss_curves,
    pareto_figure,
    spectra,
)
from ssno.plots.fields import forecast_panels, frame_panels, gallery
from ssno.plots.foils import flow_pictures, pressure_curve, pressure_panels
from ssno.plots.globe import animate_globe, sphere_panels
from ssno.plots.modes import kernel_panels, memory_weights, mode_ridges
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
