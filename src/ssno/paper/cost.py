"""The cost tables: parameters, operations and time of one prediction of every model, in 1D and on 64 x 64 points."""

from collections.abc import Iterator, Mapping
from typing import Any

from ssno.base.formatting import number
from ssno.evaluation.cost import BenchmarkCase, benchmark_models, run_benchmark
from ssno.evaluation.tables import ResultTable
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.reference import GFLOPS, LATENCIES, PARAMETERS_2D
from ssno.paper.results import OPEN, Results, Verdict, fact
from ssno.paper.trial import Trial
from ssno.plots.summary import seed_dots, seed_lines

TITLES = {"ssno": "SS-NO", "ffno": "FFNO", "unet": "U-Net", "gkt": "GKT", "factformer": "Factformer"}
TITLES_2D = {
    "ssno": "SS-NO",
    "ffno": "FFNO",
    "fno": "FNO2D",
    "unet": "U-Net",
    "gkt": "GKT",
    "factformer": "Factformer",
    "ssno-vm": "SS-NO-VM",
    "ssno-ff": "SS-NO-FF",
    "fno-r": "FNO2D-R",
}
TASKS = {"forward": "one prediction from four frames", "rollout": "22 frames, streamed"}
MEMORY_LIMIT = 4 * 2**30
NOTE = "Times are of this machine's processor and depend on what else runs on it; `ssno bench` measures more."


def measured(
    at: Experiment, task: str, grid: tuple[int, ...], titles: Mapping[str, str], *, seconds: float
) -> dict[str, dict[str, Any]]:
    """The models in turn on one grid, batch 1; at scale `tiny` a single round."""
    tiny = at.scale == "tiny"
    case = BenchmarkCase(task, grid, 1, 2 if tiny else 22)  # type: ignore[arg-type]
    configs = {name: config for name, config in benchmark_models(grid, tuple(titles)).items() if name in titles}
    budget, rounds = (0.0, 1) if tiny else (seconds, 5)
    costs = run_benchmark(case, configs, budget=budget, least_rounds=rounds, memory_limit=MEMORY_LIMIT)
    return {cost.model: cost.to_json() for cost in costs}


def without_config(row: Mapping[str, Any]) -> dict[str, Any]:
    """A measurement as a record."""
    return {key: value for key, value in row.items() if key != "config"}


Costs = dict[tuple[str, int], dict[str, dict[str, Any]]]
"""By task and points, then by model."""


class LineCosts:
    """Milliseconds and GFLOP of one prediction. The paper's times are of a GPU; ours of this machine."""

    def runs(self, at: Experiment) -> list[Trial]:
        return []

    def judge(self, at: Experiment, results: Results) -> Finding:
        grids = (32,) if at.scale == "tiny" else (32, 64, 128, 256, 512)
        costs: Costs = {(task, n): measured(at, task, (n,), TITLES, seconds=15.0) for n in grids for task in TASKS}
        lines = {
            what: {
                label: {float(n): [costs[task, n][name]["ms"]] for n in grids if name in costs[task, n]}
                for name, label in TITLES.items()
            }
            for task, what in TASKS.items()
        }
        axis = {"xscale": "log", "ticks": [float(n) for n in grids]}
        return Finding(
            tuple(self.tables(costs, grids)),
            tuple(self.verdicts(at, costs, grids)),
            {"cost": lambda: seed_lines(lines, xlabel="points", ylabel="ms, batch 1", **axis)},  # type: ignore[arg-type]
            tuple(without_config(row) for rows in costs.values() for row in rows.values()),
            (NOTE,),
        )

    def tables(self, costs: Costs, grids: tuple[int, ...]) -> Iterator[ResultTable]:
        """Time and operations, ours beside the printed ones."""
        for title, task, key, printed in (
            ("ms of one prediction, batch 1 (paper: on an A6000)", "forward", "ms", LATENCIES),
            ("ms of a rollout of 22 frames, batch 1", "rollout", "ms", {}),
            ("GFLOP of one prediction, plain PyTorch, all counted alike", "forward", "gflop", GFLOPS),
            ("GFLOP of one prediction by the rules behind the published table", "forward", "gflop_published", GFLOPS),
        ):
            rows = []
            for name, label in TITLES.items():
                values = (number(costs[task, n][name][key]) for n in grids)
                paper = (f"{value:g}" for value in printed[name]) if printed else ("" for _ in grids)
                rows.append((label, *(cell for pair in zip(values, paper, strict=False) for cell in pair)))
            headings = ("", *(heading for n in grids for heading in (f"{n}", "paper")))
            yield ResultTable(title, headings, tuple(rows))

    def verdicts(self, at: Experiment, costs: Costs, grids: tuple[int, ...]) -> Iterator[Verdict]:
        """The paper's three statements."""

        def lowest(task: str, key: str) -> dict[int, str]:
            return {n: min(costs[task, n], key=lambda name: costs[task, n][name][key]) for n in grids}

        for task, what in (("forward", "one prediction"), ("rollout", "a rollout")):
            best = lowest(task, "ms")
            told = ", ".join(f"{n}: {TITLES[name]} ({costs[task, n][name]['ms']:.3g} ms)" for n, name in best.items())
            claim = f"SS-NO has the lowest time of {what} at every resolution"
            verdict = fact(claim, set(best.values()) == {"ssno"}, told)
            yield Verdict(claim, OPEN, f"one round; {told}") if at.scale == "tiny" else verdict
        fewest = lowest("forward", "gflop")
        told = ", ".join(f"{n}: {TITLES[name]}" for n, name in fewest.items())
        yield fact("GKT needs the fewest operations at every resolution", set(fewest.values()) == {"gkt"}, told)
        differ = [
            f"{TITLES[name]} {n}: {row['gflop_published']:.3f} for {GFLOPS[name][place]:g}"
            for place, n in enumerate(grids)
            for name, row in costs["forward", n].items()
            if abs(row["gflop_published"] - GFLOPS[name][place]) > 0.0015
        ]
        claim = "the printed operation counts follow from the models"
        yield fact(claim, not differ, "; ".join(differ) or "all of them")


class PlaneCosts:
    """Milliseconds and GFLOP of one field, TorusLi's, and published counts of parameters beside ours."""

    def runs(self, at: Experiment) -> list[Trial]:
        return []

    def judge(self, at: Experiment, results: Results) -> Finding:
        side = 16 if at.scale == "tiny" else 64
        costs = {task: measured(at, task, (side, side), TITLES_2D, seconds=60.0) for task in TASKS}
        rows = tuple(
            (
                TITLES_2D[name],
                f"{row['parameters']:,}",
                f"{PARAMETERS_2D[name]:,}",
                number(row["gflop"]),
                *(number(costs[task][name]["ms"]) for task in TASKS),
            )
            for name, row in costs["forward"].items()
        )
        headings = ("", "parameters", "paper", "GFLOP of a prediction", "ms of a prediction", "ms of 22 frames")
        counts = {name: row["parameters"] for name, row in costs["forward"].items()}
        fewest = min(counts, key=counts.__getitem__)
        dots = {
            what: {TITLES_2D[name]: [row["ms"]] for name, row in costs[task].items()} for task, what in TASKS.items()
        }
        return Finding(
            (ResultTable(f"{side} x {side} points, batch 1", headings, rows),),
            (fact("SS-NO has the fewest parameters", fewest == "ssno", f"{TITLES_2D[fewest]}: {counts[fewest]:,}"),),
            {at.name: lambda: seed_dots(dots, ylabel="ms, batch 1")},
            tuple(without_config(row) for task in TASKS for row in costs[task].values()),
            (NOTE,),
        )


COST = Experiment(
    name="cost",
    title="Cost of a prediction, 1D",
    paper_location="Appendix, table and figure of computational cost",
    published=(
        "On a GPU SS-NO takes 0.81 ms at every resolution, FFNO 1.35, U-Net 1.24, GKT 2.26, Factformer 3.4; GKT needs "
        "the fewest operations."
    ),
    content=LineCosts(),
)
COST_2D = Experiment(
    name="cost-2d",
    title="Cost of a prediction, 2D",
    paper_location="Parameters in the tables of 2D results",
    published="SS-NO has the fewest parameters: 369,665, FFNO 2,192,897, FNO2D 67,197,700 (on CE-RM).",
    content=PlaneCosts(),
)
