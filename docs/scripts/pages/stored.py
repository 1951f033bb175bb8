"""What stored results say about datasets and models: results/reproduce, trials of equal time and the cost tables.

A `Cell` is one model in one column of an experiment: its metrics per seed, the size of the training, and the error of
persistence where the experiment stored it. Experiments scored on validation data choose options and are left out.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ssno.data.datasets import DATASETS, split_name
from ssno.evaluation import SeedSummary, summarise
from ssno.models import known_models
from ssno.paper.page import OLDER, of_older_recipe

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results"
REPRODUCE = RESULTS / "reproduce"
DESIGN = RESULTS / "design.jsonl"
CONTEST = RESULTS / "contest.jsonl"
"""Trials of benchmarks/contest.py: the best models, equal processor time, test data."""
ON_VALIDATION = "on validation data"


@dataclass(frozen=True)
class Cell:
    """A model in one column of an experiment."""

    file: str
    """Below results/."""
    scale: str
    """Of `ssno reproduce`: cpu, tenth or paper; or how long was trained."""
    dataset: str
    case: str
    model: str
    label: str
    resolution: int | None
    epochs: int | None
    trajectories: int | None
    parameters: int
    values: Mapping[str, Sequence[float]]
    """By metric, one number per seed."""
    persistence: Mapping[str, float]
    """Errors of persistence on the same data, by metric."""

    def summary(self, metric: str) -> SeedSummary | None:
        """Mean and spread over seeds; None if the metric was not stored."""
        found = self.values.get(metric)
        return summarise(found) if found else None


@cache
def findings() -> dict[str, dict[str, Any]]:
    """Every stored result of `ssno reproduce` by its file below results/."""
    paths = sorted([*REPRODUCE.glob("*.json"), *REPRODUCE.glob("*/*.json")])
    return {str(path.relative_to(RESULTS)): json.loads(path.read_text()) for path in paths}


def older_recipe(files: Iterable[str]) -> str:
    """A sentence if some of these findings were trained before SOAP was the optimiser of recipe `fast`."""
    old = any(file in findings() and of_older_recipe(findings()[file]) for file in files)
    return f"Results of `ssno reproduce`: {OLDER[0].lower()}{OLDER[1:]}\n" if old else ""


@cache
def cells() -> tuple[Cell, ...]:
    """All models in all columns of all experiments, and trials of equal processor time with three or more seeds."""
    found = [cell for file, finding in findings().items() for cell in _cells_of(file, finding)]
    return (*found, *_design_cells(), *_contest_cells())


def comparisons(dataset: str) -> dict[tuple[str, str], list[Cell]]:
    """Columns that compare at least two models on a dataset, by file and case."""
    columns: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells():
        if cell.dataset == dataset:
            columns[cell.file, cell.case].append(cell)
    return {place: column for place, column in columns.items() if len({cell.model for cell in column}) > 1}


def _cells_of(file: str, finding: Mapping[str, Any]) -> list[Cell]:
    columns = finding["runs"].get("columns", [])
    if not {"model", "label", "case", "run", "rel_l2"} <= set(columns) or ON_VALIDATION in finding["title"]:
        return []
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in finding["runs"]["rows"]:
        known = dict(zip(columns, row, strict=True))
        groups[known["model"], known["label"], known["case"]].append(known)
    made = []
    for (model, label, case), runs in groups.items():
        first = runs[0]
        data = finding["settings"][first["run"].rpartition("-seed")[0]]["data"]
        values = {name: [run[name] for run in runs] for name in columns if name.startswith("rel_l2")}
        values = {name: list(map(float, found)) for name, found in values.items() if None not in found}
        made.append(
            Cell(
                file,
                finding["scale"],
                split_name(data["name"])[0],
                case,
                model,
                label,
                first["points"],
                first["epochs"],
                first["trajectories"],
                first["parameters"],
                values,
                _persistence(finding, case),
            )
        )
    return made


def _persistence(finding: Mapping[str, Any], case: str) -> dict[str, float]:
    """The row of persistence in the tables whose title begins with a metric."""
    found = {}
    for table in finding["tables"]:
        metric = table["title"].replace(":", " ").split(" ")[0]
        rows = [row for row in table["rows"] if row[0] == "persistence"]
        if rows and case in table["headings"] and metric not in found and " of " not in table["title"]:
            cell = rows[0][table["headings"].index(case)]
            found.update({metric: float(cell)} if cell else {})
    return found


def _design_cells() -> list[Cell]:
    """Trials of a registered model that were not changed, with three seeds or more."""
    groups: dict[tuple[str, str, float], list[dict[str, Any]]] = defaultdict(list)
    for trial in _trials(DESIGN):
        if "rel_l2" in trial and trial["label"].partition(",")[0] in known_models() and trial["code"] != "scratch":
            groups[trial["dataset"], trial["label"], trial["seconds"]].append(trial)
    return [
        _trial_cell(DESIGN, trials, label.partition(",")[0], label, f", {ON_VALIDATION}")
        for (_, label, _), trials in groups.items()
        if len({trial["seed"] for trial in trials}) >= 3
    ]


def _contest_cells() -> list[Cell]:
    """Every problem and model of the contest; a training that failed has an infinite error."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for trial in _trials(CONTEST):
        groups[trial["dataset"], trial["entry"]].append(trial)
    return [_trial_cell(CONTEST, trials, model, model, "") for (_, model), trials in groups.items()]


def _trials(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def _trial_cell(file: Path, trials: Sequence[dict[str, Any]], model: str, label: str, split: str) -> Cell:
    """Trials of one setting, the latest of every seed."""
    latest = list({trial["seed"]: trial for trial in trials}.values())
    data, scale = latest[0]["dataset"], f"{latest[0]['seconds']:g} s of CPU{split}"
    name = data.rstrip("0123456789.").rstrip("-")
    sphere = DATASETS[name].problem.geometry.name == "sphere"
    values = {"rel_l2_normalised" if sphere else "rel_l2": [float(one.get("rel_l2", "inf")) for one in latest]}
    if all("rel_l2_onestep" in one for one in latest):
        values["rel_l2_onestep"] = [one["rel_l2_onestep"] for one in latest]
    size = next((one["parameters"] for one in latest if "parameters" in one), 0)
    return Cell(file.name, scale, name, data, model, label, None, None, None, size, values, {})


@dataclass(frozen=True)
class Timing:
    """What one prediction costs: median milliseconds, operations and memory, and where that is stored."""

    file: str
    model: str
    task: str
    grid: str
    batch: int
    ms: float
    gflop: float
    memory_mib: float


@cache
def timings() -> tuple[Timing, ...]:
    """Stored benchmarks of predictions, the newest of every (model, task, grid, batch)."""
    rows: dict[tuple[str, str, str, int], Timing] = {}
    for name in ("cost/cost.csv", "reproduce/cost.json", "reproduce/cost-2d.json"):  # older ones first
        for row in _rows(RESULTS / name):
            where = (row["model"], row["task"], _grid(row["grid"]), int(row["batch"]))
            rows[where] = Timing(name, *where, float(row["ms"]), float(row["gflop"]), float(row["memory_mib"] or "nan"))
    return tuple(rows.values())


def _rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    runs = json.loads(path.read_text())["runs"]
    return [dict(zip(runs["columns"], row, strict=True)) for row in runs["rows"]]


def _grid(grid: Any) -> str:
    return "x".join(map(str, grid)) if isinstance(grid, list) else str(grid)


@cache
def generation_seconds() -> dict[str, dict[str, float]]:
    """Processor seconds per trajectory by dataset and preset (docs/scripts/dataset_costs.py)."""
    return json.loads((RESULTS / "dataset-costs.json").read_text())["seconds"]
