"""Figures: every function takes numbers and returns a matplotlib figure; `save` writes it."""

from ssno.plots.animation import animate, animate_globe
from ssno.plots.curves import Band, calibration_plot, ensemble_bands, error_bands, loss_curves, pareto_figure, spectra
from ssno.plots.fields import forecast_panels, frame_panels, gallery
from ssno.plots.geometries import flow_pictures, pressure_curve, pressure_panels, sphere_panels
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
