"""The paper's experiments as data: what is trained, in which table it stands, and which claims it decides."""

from ssno.paper.catalogue import experiments, find_experiment
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Results, TrialResult, Verdict
from ssno.paper.runner import run_trials
from ssno.paper.table import Claim, Table, TableColumn, TableRow
from ssno.paper.trial import Benchmark, Budget, Scale, Trial

__all__ = [
    "Benchmark",
    "Budget",
    "Claim",
    "Experiment",
    "Finding",
    "Results",
    "Scale",
    "Table",
    "TableColumn",
    "TableRow",
    "Trial",
    "TrialResult",
    "Verdict",
    "experiments",
    "find_experiment",
    "run_trials",
]
