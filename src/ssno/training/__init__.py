"""The training loop: from a description or a model and its data to a forecaster, with exact resume."""

from ssno.runs.log import Reporter, Silent
from ssno.training.checks import ResumeCheck, check_resume
from ssno.training.estimate import Estimate, estimate
from ssno.training.loop import run_task
from ssno.training.processes import TrainingDiverged, TrainingInterrupted
from ssno.training.task import Task, task_for
from ssno.training.train import train

__all__ = [
    "Estimate",
    "Reporter",
    "ResumeCheck",
    "Silent",
    "Task",
    "TrainingDiverged",
    "TrainingInterrupted",
    "check_resume",
    "estimate",
    "run_task",
    "task_for",
    "train",
]
