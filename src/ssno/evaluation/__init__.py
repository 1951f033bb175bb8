"""Rollouts against truth, tables, cost, baselines that need no training."""

from ssno.evaluation.calibration import Calibration
from ssno.evaluation.comparison import compare, trivial_forecasters
from ssno.evaluation.ensembles import calibrate_ensemble, evaluate_ensemble
from ssno.evaluation.evaluate import evaluate, evaluate_forecaster, fingerprint
from ssno.evaluation.examples import Examples, make_examples
from ssno.evaluation.findings import RunInspection, inspect_run
from ssno.evaluation.record import Evaluation, read_evaluation
from ssno.evaluation.seeds import SeedGroup, group_by_seed
from ssno.evaluation.statistics import Comparison, Ranking, SeedSummary, compare_seeds, rank, summarise
from ssno.evaluation.tables import ResultTable

__all__ = [
    "Calibration",
    "Comparison",
    "Evaluation",
    "Examples",
    "Ranking",
    "ResultTable",
    "RunInspection",
    "SeedGroup",
    "SeedSummary",
    "calibrate_ensemble",
    "compare",
    "compare_seeds",
    "evaluate",
    "evaluate_ensemble",
    "evaluate_forecaster",
    "fingerprint",
    "group_by_seed",
    "inspect_run",
    "make_examples",
    "rank",
    "read_evaluation",
    "summarise",
    "trivial_forecasters",
]
