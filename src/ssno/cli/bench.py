"""`ssno bench`: what every model costs, measured here: the paper's cost table, and the same in 2D.

ssno bench --quick
ssno bench --dry-run
ssno bench --roofline                     predicts a training step on GPUs from what it executes
ssno bench --errors errors.csv            also draws error against cost
ssno bench --stored-costs runs/bench/cost.json --errors errors.csv
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table

from ssno.base import cost_words, duration, to_text
from ssno.base.memory import physical_memory
from ssno.base.terminal import Console
from ssno.evaluation.cost import BenchmarkCase, Workload, benchmark_models, estimated_seconds, run_benchmark
from ssno.evaluation.cost_table import (
    Row,
    fastest,
    join,
    operations_table,
    read_costs,
    read_errors,
    task_tables,
    time_table,
    write_costs,
)
from ssno.evaluation.flops import GPUS, predicted_seconds, training_calls
from ssno.models.registry import model_config
from ssno.native.engine import Precision
from ssno.plots.curves import pareto_figure
from ssno.plots.style import save

LEAST_ROUNDS = 3
TASKS: tuple[Workload, ...] = ("cold", "warm", "stream", "forward", "train", "rollout")
SHORT = ("cold", "warm", "stream")
"""Tasks of a few milliseconds: a quarter of the time gives rounds enough."""
BYTES_PER_ROW = 2000


def bench(
    *,
    quick: bool = False,
    models: tuple[str, ...] = (),
    seconds: float = 60.0,
    memory_gib: float | None = None,
    precision: Precision = "float32",
    out: Path = Path("runs/bench"),
    errors: Path | None = None,
    stored_costs: Path | None = None,
    dry_run: bool = False,
    roofline: bool = False,
    json: bool = False,
) -> None:
    """Measure parameters, operations, memory and time of all models, in turns, and store the tables.

    1D at 32 to 512 points with batch 1, and 64 x 64 points with batch 1 and 32: a prediction by a model just loaded
    (cold), another one (warm), one more frame while streaming, one training step, a rollout of 22 frames, and the
    forward pass whose operations are counted. Use an otherwise idle machine; the number of threads is torch's
    (OMP_NUM_THREADS).

    Args:
        quick: coarse grids, short rollouts, few rounds: does it work, in about a minute.
        models: only these models; all that learn by default.
        seconds: time to spend on each of the cases, at least three rounds.
        memory_gib: run larger batches in parts that stay below this; by default half of the machine's memory.
        precision: numbers the models compute in: float32, bf16 or float64.
        out: folder for cost.csv, cost.json and pareto.png.
        errors: JSON or CSV with `name`, `rel_l2` and perhaps `grid` of evaluated runs: draws error against cost.
        stored_costs: take the costs from this cost.json instead of measuring.
        roofline: instead count bytes and operations of a training step and predict its time on named GPUs; measures
            nothing. Of SS-NO, FFNO, FNO and the U-Net unless `models` names others.
        dry_run: say what would be measured and how long it takes; write nothing.
        json: print the rows as JSON.
    """
    if roofline:
        show_roofline(models or ("ssno", "ffno", "fno", "unet"), as_json=json)
        return
    points = read_errors(errors) if errors is not None else None
    limit = int((memory_gib or physical_memory() / 2**31) * 2**30)
    if dry_run:
        show_plan(cases(quick, precision), models, seconds=seconds, limit=limit, as_json=json)
        return
    if stored_costs is not None:
        rows = read_costs(stored_costs)
    else:
        rows = []
        for case in cases(quick, precision):
            print(f"ssno: {case}", file=sys.stderr)
            configs = benchmark_models(case.grid, models)
            budget = 0.0 if quick else budget_of(case, seconds)
            costs = run_benchmark(case, configs, budget=budget, least_rounds=LEAST_ROUNDS, memory_limit=limit)
            rows += [cost.to_json() for cost in costs]
            write_costs(rows, out)  # after every case: what is measured is kept
    if points is not None:
        print(f"ssno: {save(pareto_figure(join(points, rows)), out / 'pareto.png')}", file=sys.stderr)
    if json:
        print(to_text(rows, indent=1))
    else:
        show(rows)


def cases(quick: bool, precision: Precision = "float32") -> Iterator[BenchmarkCase]:
    """All cases, cheapest grids first."""
    lines, square, batches, frames = ((32, 64), 16, (1, 2), 3) if quick else ((32, 64, 128, 256, 512), 64, (1, 32), 22)
    for grid, batch in [((points,), 1) for points in lines] + [((square, square), batch) for batch in batches]:
        for task in TASKS:
            yield BenchmarkCase(task, grid, batch, frames, precision)


def budget_of(case: BenchmarkCase, seconds: float) -> float:
    """Seconds for one case."""
    return seconds / 4 if case.task in SHORT else seconds


def show(rows: list[Row]) -> None:
    """The tables, and who was fastest where."""
    console = Console()
    for task in dict.fromkeys(row["task"] for row in rows):
        console.print(time_table(rows, task=task))
    console.print(operations_table(rows))
    for grid, batch in dict.fromkeys((row["grid"], row["batch"]) for row in rows if "x" in row["grid"]):
        console.print(*task_tables(rows, grid=grid, batch=batch))
    for line in fastest(rows):
        console.print(line, highlight=False)


ROOFLINE_STEPS = {(32,): (32, 25), (64,): (32, 25), (128,): (32, 25), (64, 64): (4, 4)}
"""Trajectories and frames of a training step on each grid, those of `make bench`."""


def show_roofline(models: Sequence[str], *, as_json: bool) -> None:
    """Counts of every model and grid, and what GPUs would take: a prediction."""
    rows: list[Row] = []
    for grid, (batch, frames) in ROOFLINE_STEPS.items():
        for name in models:
            calls = training_calls(
                model_config(name, n_dims=len(grid)).for_grid(grid), grid, batch=batch, frames=frames
            )
            rows.append(
                {"grid": "x".join(map(str, grid)), "batch": batch, "frames": frames, "model": name}
                | {"operations": sum(c.operations for c in calls), "bytes": sum(c.bytes for c in calls)}
                | {"launches": len(calls), "predicted_seconds": {g.name: predicted_seconds(calls, g) for g in GPUS}}
            )
    if as_json:
        print(to_text(rows, indent=1))
        return
    table = Table(title="A training step, float32: counted, and predicted ms: fused ... separate", title_justify="left")
    for column in ("grid", "model", "GFLOP", "GB", "launches", *(gpu.name for gpu in GPUS)):
        table.add_column(column, justify="left" if column in ("grid", "model") else "right")
    for row in rows:
        times = [f"{1e3 * fused:.2f} ... {1e3 * separate:.2f}" for separate, fused in row["predicted_seconds"].values()]
        counts = f"{row['operations'] / 1e9:.1f}", f"{row['bytes'] / 1e9:.2f}", str(row["launches"])
        table.add_row(row["grid"], row["model"], *counts, *times)
    console = Console()
    console.print(table)
    console.print("Predictions by a roofline, not measurements: peaks of data sheets, without launches and optimiser.")


def show_plan(
    planned: Iterator[BenchmarkCase], models: tuple[str, ...], *, seconds: float, limit: int, as_json: bool
) -> None:
    """What would be measured, how long, how much memory and disk."""
    times = {}
    for case in planned:
        configs = benchmark_models(case.grid, models)
        budget = budget_of(case, seconds)
        times[case] = estimated_seconds(case, configs, budget=budget, least_rounds=LEAST_ROUNDS), len(configs)
    total, rows = sum(time for time, _ in times.values()), sum(count for _, count in times.values())
    if as_json:
        plan = [{"case": str(case), "models": count, "seconds": time} for case, (time, count) in times.items()]
        sizes = {"memory_bytes": limit, "disk_bytes": rows * BYTES_PER_ROW}
        print(to_text({"cases": plan, "seconds": total, **sizes}, indent=1))
        return
    table = Table("case", title="ssno bench would measure", title_justify="left")
    table.add_column("models", justify="right")
    table.add_column("about", justify="right")
    for case, (time, count) in times.items():
        table.add_row(str(case), str(count), duration(time))
    console = Console()
    console.print(table)
    console.print(f"In all {cost_words(total, limit, rows * BYTES_PER_ROW)}.")
