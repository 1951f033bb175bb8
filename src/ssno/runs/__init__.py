"""Runs on disk: their description, options, folder, checkpoints, log, and the forecasters they leave behind."""

from ssno.models.pretrained import ReportedMetrics, reported_metrics
from ssno.runs.checkpoint import Progress, has_checkpoint, load_checkpoint, read_progress, save_checkpoint
from ssno.runs.load import load_forecaster
from ssno.runs.log import read_log
from ssno.runs.open import RunFolder, open_run
from ssno.runs.options import Recipe, Stage, TrainOptions, Unrolling, recipe
from ssno.runs.run import Run, read_run

__all__ = [
    "Progress",
    "Recipe",
    "ReportedMetrics",
    "Run",
    "RunFolder",
    "Stage",
    "TrainOptions",
    "Unrolling",
    "has_checkpoint",
    "load_checkpoint",
    "load_forecaster",
    "open_run",
    "read_log",
    "read_progress",
    "read_run",
    "recipe",
    "reported_metrics",
    "save_checkpoint",
]
