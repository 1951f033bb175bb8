"""Whole experiments, from data to pictures, each one frozen dataclass."""

from ssno.paper.catalogue import EXPERIMENTS, find_experiment
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Results, TrialResult, Verdict
from ssno.paper.runner import run_trials
from ssno.paper.trial import Benchmark, Budget, Scale, Trial

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
