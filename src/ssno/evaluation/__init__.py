"""Evaluation of runs and ensembles, baselines without training, inspection of models, cost, tables."""

from ssno.evaluation.cost import BenchmarkCase, BenchmarkEntry, Cost, benchmark_models, run_benchmark
from ssno.evaluation.evaluate import compare, evaluate, evaluate_ensemble, evaluate_forecaster
from ssno.evaluation.examples import Examples, make_examples
from ssno.evaluation.flops import Flops, count_flops, published_flops
from ssno.evaluation.horizon import LongForecast, long_forecasts
from ssno.evaluation.inspection import RunInspection, inspect_run
from ssno.evaluation.record import Calibration, Evaluation, read_evaluation
from ssno.evaluation.seeds import SeedGroup, group_by_seed
from ssno.evaluation.statistics import Comparison, Ranking, SeedSummary, compare_seeds, rank, summarise
from ssno.evaluation.tables import ResultTable
from ssno.evaluation.trivial import skill, trivial_forecasters

__all__ = [
    "BenchmarkCase",
    "BenchmarkEntry",
    "Calibration",
    "Comparison",
    "Cost",
    "Evaluation",
    "Examples",
    "Flops",
    "LongForecast",
    "Ranking",
    "ResultTable",
    "RunInspection",
    "SeedGroup",
    "SeedSummary",
    "benchmark_models",
    "compare",
    "compare_seeds",
    "count_flops",
    "evaluate",
    "evaluate_ensemble",
    "evaluate_forecaster",
    "group_by_seed",
    "inspect_run",
    "long_forecasts",
    "make_examples",
    "published_flops",
    "rank",
    "read_evaluation",
    "run_benchmark",
    "skill",
    "summarise",
    "trivial_forecasters",
]
