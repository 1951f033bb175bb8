"""Accuracy against cost: errors of evaluated runs joined with measured cost, and which models are worth their price.

Errors come from a file, JSON or CSV, with a row per evaluated run:

    [{"name": "ssno", "rel_l2": 0.012, "grid": "64"}, ...]            or            name,rel_l2,grid

`name` is the model, `grid` the resolution it was evaluated on ("64", "64x64"); without it the model must have been
measured on one grid only.
"""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ssno.base import read_json, read_regular

CostKind = Literal["gflop", "ms"]


@dataclass(frozen=True)
class Point:
    """One model on one grid: its error and what a prediction costs."""

    name: str
    grid: str
    rel_l2: float
    gflop: float
    ms: float


def read_errors(path: Path) -> list[dict[str, Any]]:
    """The rows of an error file, checked."""
    if path.suffix == ".csv":
        rows: Any = list(csv.DictReader(read_regular(path).decode().splitlines()))
    else:
        rows = read_json(path, remedy="Give a list of rows with `name` and `rel_l2`.")
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"{path} must hold a row for every evaluated run, with `name`, `rel_l2` and perhaps `grid`.")
    for number, row in enumerate(rows, start=1):
        try:
            error = float(row["rel_l2"])
            name = str(row["name"])
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{path}, row {number}: expected `name` and a number `rel_l2`, got {row!r}.") from None
        if not 0 < error < math.inf:
            raise ValueError(f"{path}, row {number}: `rel_l2` of {name} must be positive and finite, got {error}.")
    return rows


def join(errors: Iterable[dict[str, Any]], costs: Iterable[dict[str, Any]]) -> list[Point]:
    """Errors with the measured cost of one prediction, batch 1, of the same model on the same grid."""
    measured: dict[str, dict[str, dict[str, Any]]] = {}
    for row in costs:
        if row["task"] == "forward" and row["batch"] == 1:
            measured.setdefault(row["model"], {})[row["grid"]] = row
    points = []
    for row in errors:
        name, grids = row["name"], measured.get(row["name"], {})
        grid = row.get("grid") or (next(iter(grids)) if len(grids) == 1 else "")
        if str(grid) not in grids:
            known = ", ".join(f"{model} on {'/'.join(on)}" for model, on in measured.items())
            raise ValueError(f"No cost was measured for {name} on grid {grid or '(not given)'}; measured: {known}.")
        cost = grids[str(grid)]
        points.append(Point(name, str(grid), float(row["rel_l2"]), cost["gflop"], cost["ms"]))
    return points


def front(points: Sequence[Point], kind: CostKind) -> list[Point]:
    """The points that no other beats in both error and cost, cheapest first."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (getattr(point, kind), point.rel_l2)):
        if not best or point.rel_l2 < best[-1].rel_l2:
            best.append(point)
    return best
