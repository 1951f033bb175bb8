"""What models cost: parameters, operations, memory, time."""

from ssno.costs.cost import BenchmarkCase, BenchmarkEntry, Cost, contestants, run_contest
from ssno.costs.flops import Flops, count_flops
from ssno.costs.pareto import Point, front, join, read_errors
from ssno.costs.published import published_flops
from ssno.costs.timing import Timing, quick_seconds, time_interleaved

__all__ = [
    "BenchmarkCase",
    "BenchmarkEntry",
    "Cost",
    "Flops",
    "Point",
    "Timing",
    "contestants",
    "count_flops",
    "front",
    "join",
    "published_flops",
    "quick_seconds",
    "read_errors",
    "run_contest",
    "time_interleaved",
]
