"""The cost of all models as tables and files, and joined with errors: which models are Pareto-optimal.

`cost.json` holds {"format": "ssno-cost", "version": 1, "provenance": {...}, "rows": [...]}; `cost.csv` the same rows
without configurations, each with commit, versions and hardware, so that rows of several machines can be put together.
"""

import csv
import datetime
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ssno.base import DocumentError, provenance, read_document, read_json, read_regular, write_document
from ssno.evaluation.tables import csv_text, write_text

FORMAT, VERSION = "ssno-cost", 1
Row = dict[str, Any]

# Errors come from a file, JSON or CSV, with a row per evaluated run:
#
#     [{"name": "ssno", "rel_l2": 0.012, "grid": "64"}, ...]            or            name,rel_l2,grid
#
# `name` is the model, `grid` the resolution it was evaluated on ("64", "64x64"); without it the model must have been
# measured on one grid only.

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
    """Read and check the rows of an error file."""
    if path.suffix == ".csv":
        rows: Any = list(csv.DictReader(read_regular(path).decode().splitlines()))
    else:
        rows = read_json(path, remedy="Give a list of rows with `name` and `rel_l2`.")
    if not isinstance(rows, list) or not rows:
        raise ValueError(
            f"{path} must have a row for every evaluated run, with `name`, `rel_l2` and optionally `grid`."
        )
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


def write_costs(rows: list[Row], folder: Path) -> None:
    """Write `cost.json` and `cost.csv` atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    made_by = {
        **provenance(),
        "threads": torch.get_num_threads(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    flat = [{**{key: value for key, value in row.items() if key != "config"}, **made_by} for row in rows]
    document = {"provenance": made_by, "rows": rows}
    write_document(folder / "cost.json", document, format=FORMAT, version=VERSION)
    write_text(folder / "cost.csv", csv_text(flat))


def read_costs(path: Path) -> list[Row]:
    """The rows of a `cost.json`."""
    remedy = "Measure again with: ssno bench"
    rows = read_document(path, format=FORMAT, versions=[VERSION], remedy=remedy).get("rows")
    needed = [
        "model",
        "task",
        "grid",
        "batch",
        "part",
        "parameters",
        "gflop",
        "memory_mib",
        "ms",
        "ms_lower",
        "ms_upper",
    ]
    if not isinstance(rows, list) or not all(isinstance(row, dict) and set(needed) <= set(row) for row in rows):
        raise DocumentError(f"{path} has rows without some of {', '.join(needed)}. {remedy}")
    return rows


def time_table(rows: Iterable[Row], *, task: str) -> Table:
    """Time of one task in 1D with batch 1: a row per model, a column per resolution."""
    titles = {
        "forward": "Four frames",
        "cold": "First prediction (cold)",
        "warm": "One prediction (warm)",
        "stream": "One frame (streaming)",
        "train": "One training step",
        "rollout": "One rollout",
    }
    title = f"{titles[task]} in 1D, batch 1: median in ms ± half the interquartile range"
    return _by_resolution(rows, task=task, title=title, cell=_ms)


def operations_table(rows: Iterable[Row]) -> Table:
    """Operations of one prediction in 1D: counted in plain PyTorch, and as the published table counts them."""
    title = "One prediction in 1D, GFLOP: counted in plain PyTorch | as the published table counts"

    def cell(row: Row) -> str:
        published = row["gflop_published"]
        return f"{row['gflop']:.3f} | {'-' if published is None else f'{published:.3f}'}"

    return _by_resolution(rows, task="forward", title=title, cell=cell)


def _by_resolution(rows: Iterable[Row], *, task: str, title: str, cell: Callable[[Row], str]) -> Table:
    chosen = [row for row in rows if row["task"] == task and "x" not in row["grid"] and row["batch"] == 1]
    table = Table("model", title=title, title_justify="left", box=SIMPLE_HEAD)
    grids = list(dict.fromkeys(row["grid"] for row in chosen))
    for grid in grids:
        table.add_column(f"N = {grid}", justify="right")
    for name in dict.fromkeys(row["model"] for row in chosen):
        cells = {row["grid"]: cell(row) for row in chosen if row["model"] == name}
        table.add_row(name, *(cells.get(grid, "") for grid in grids))
    return table


def task_tables(rows: Iterable[Row], *, grid: str, batch: int) -> tuple[Table, Table]:
    """For one grid and batch: times, and operations and memory. "/8": the batch ran in eight parts."""
    chosen = [row for row in rows if row["grid"] == grid and row["batch"] == batch]
    where = f"{grid} points, batch {batch}"
    times = Table("model", title=f"{where}: ms", title_justify="left", box=SIMPLE_HEAD)
    needs = Table("model", title=f"{where}: operations and memory", title_justify="left", box=SIMPLE_HEAD)
    tasks = list(dict.fromkeys(row["task"] for row in chosen))
    for heading in ("parameters", *tasks):
        times.add_column(heading, justify="right")
    for heading in (f"{task}\n{unit}" for unit in ("GFLOP", "MiB") for task in tasks):
        needs.add_column(heading, justify="right")
    for name in dict.fromkeys(row["model"] for row in chosen):
        mine = [row for row in chosen if row["model"] == name]
        times.add_row(name, f"{mine[0]['parameters']:,}", *map(_ms, mine))
        operations = (f"{row['gflop']:.3g}" for row in mine)
        needs.add_row(name, *operations, *(f"{row['memory_mib']:.0f}{_parts(row)}" for row in mine))
    return times, needs


def fastest(rows: Iterable[Row]) -> list[str]:
    """A line per case: the fastest model, and how far behind SS-NO was. Overlapping quartiles tie."""
    lines = []
    cases: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        cases.setdefault((row["task"], row["grid"], row["batch"]), []).append(row)
    for (task, grid, batch), entered in cases.items():
        best = min(entered, key=lambda row: row["ms"])
        ours = next((row for row in entered if row["model"] == "ssno"), None)
        if ours is None:
            continue
        where = f"{task}, {grid} points, batch {batch}"
        if ours is best:
            lines.append(f"{where}: ssno is fastest ({best['ms']:.3g} ms).")
        elif ours["ms_lower"] <= best["ms_upper"]:
            lines.append(f"{where}: ssno ties with {best['model']} ({ours['ms']:.3g} and {best['ms']:.3g} ms).")
        else:
            behind = f"ssno takes {ours['ms'] / best['ms']:.1f} times that"
            lines.append(f"{where}: {best['model']} is fastest ({best['ms']:.3g} ms), {behind}.")
    return lines


def _ms(row: Row) -> str:
    spread = (row["ms_upper"] - row["ms_lower"]) / 2 / row["ms"]
    return f"{row['ms']:.3g} ±{100 * spread:.0f}%"


def _parts(row: Row) -> str:
    return f"/{row['batch'] // row['part']}" if row["part"] < row["batch"] else ""
