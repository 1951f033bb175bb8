"""Rollouts against truth, tables, cost, baselines that need no training."""

from ssno.evaluation.cost import (
    BenchmarkCase,
    BenchmarkEntry,
    Cost,
    Timing,
    contestants,
    published_flops,
    quick_seconds,
    run_contest,
    time_interleaved,
)
from ssno.evaluation.cost_table import Point, front, join, read_errors
from ssno.evaluation.ensembles import calibrate_ensemble, evaluate_ensemble
from ssno.evaluation.evaluate import compare, evaluate, evaluate_forecaster, fingerprint, trivial_forecasters
from ssno.evaluation.examples import Examples, make_examples
from ssno.evaluation.flops import Flops, count_flops
from ssno.evaluation.inspection import RunInspection, inspect_run
from ssno.evaluation.record import Calibration, Evaluation, read_evaluation
from ssno.evaluation.seeds import SeedGroup, group_by_seed
from ssno.evaluation.statistics import Comparison, Ranking, SeedSummary, compare_seeds, rank, summarise
from ssno.evaluation.tables import ResultTable

__all__ = [
    "BenchmarkCase",
    "BenchmarkEntry",
    "Calibration",
    "Comparison",
    "Cost",
    "Evaluation",
    "Examples",
    "Flops",
    "Point",
    "Ranking",
    "ResultTable",
    "RunInspection",
    "SeedGroup",
    "SeedSummary",
    "Timing",
    "calibrate_ensemble",
    "compare",
    "compare_seeds",
    "contestants",
    "count_flops",
    "evaluate",
    "evaluate_ensemble",
    "evaluate_forecaster",
    "fingerprint",
    "front",
    "group_by_seed",
    "inspect_run",
    "join",
    "make_examples",
    "published_flops",
    "quick_seconds",
    "rank",
    "read_errors",
    "read_evaluation",
    "run_contest",
    "summarise",
    "time_interleaved",
    "trivial_forecasters",
]
