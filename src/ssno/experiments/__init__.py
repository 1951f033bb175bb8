"""Whole experiments, from data to pictures, each one frozen dataclass."""

from ssno.experiments.campaign import run_trials
from ssno.experiments.catalogue import EXPERIMENTS, find_experiment
from ssno.experiments.experiment import Experiment, Finding
from ssno.experiments.results import Results, TrialResult
from ssno.experiments.trial import Benchmark, Budget, Scale, Trial
from ssno.experiments.verdicts import Verdict

__all__ = [
    "EXPERIMENTS",
    "Benchmark",
    "Budget",
    "Experiment",
    "Finding",
    "Results",
    "Scale",
    "Trial",
    "TrialResult",
    "Verdict",
    "find_experiment",
    "run_trials",
]
