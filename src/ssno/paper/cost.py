"""The cost table: latency and operations of one prediction of every 1D model, measured here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ssno.base.formatting import number
from ssno.evaluation.cost import BenchmarkCase, contestants, run_contest
from ssno.evaluation.tables import ResultTable
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.reference import GFLOPS, LATENCIES, PARAMETERS_2D
from ssno.paper.results import OPEN, Results, Verdict, fact
from ssno.paper.trial import Trial
from ssno.plots.summary import seed_dots, seed_lines

TITLES = {"ssno": "SS-NO", "ffno": "FFNO", "unet": "U-Net", "gkt": "GKT", "factformer": "Factformer"}
LEAST_ROUNDS = 5
MEMORY_LIMIT = 4 * 2**30
Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class CostTable(Experiment):
    """Milliseconds and GFLOP of one prediction with batch 1. The paper's times are of a GPU; ours of this machine."""

    name: ClassVar[str] = "cost"
    title: ClassVar[str] = "Cost of a prediction, 1D"
    paper_location: ClassVar[str] = "Appendix, table and figure of computational cost"
    published: ClassVar[str] = (
        "On a GPU SS-NO takes 0.81 ms at every resolution, FFNO 1.35, U-Net 1.24, GKT 2.26, Factformer 3.4; GKT needs "
        "the fewest operations."
    )

    def grids(self) -> tuple[int, ...]:
        return (32,) if self.scale == "tiny" else (32, 64, 128, 256, 512)

    def runs(self) -> list[Trial]:
        return []

    def judge(self, results: Results) -> Finding:
        rows = [
            row for points in self.grids() for task in ("forward", "rollout") for row in self.measured(task, points)
        ]
        lines = {
            {"forward": "one prediction from four frames", "rollout": "22 frames, streamed"}[task]: {
                TITLES[name]: {
                    float(row["grid"]): [row["ms"]] for row in rows if (row["task"], row["model"]) == (task, name)
                }
                for name in TITLES
            }
            for task in ("forward", "rollout")
        }
        return Finding(
            tuple(self.sheets(rows)),
            tuple(self.verdicts(rows)),
            {
                "cost": lambda: seed_lines(
                    lines, xlabel="points", ylabel="ms, batch 1", xscale="log", ticks=[float(n) for n in self.grids()]
                )
            },
            tuple({key: value for key, value in row.items() if key != "config"} for row in rows),
            ("Times are of this machine's processor and depend on what else runs on it; `ssno bench` measures more.",),
        )

    def measured(self, task: str, points: int) -> list[dict[str, Any]]:
        """All models in turn on one grid."""
        contest = BenchmarkCase(task, (points,), 1, 2 if self.scale == "tiny" else 22)  # type: ignore[arg-type]
        budget = 0.0 if self.scale == "tiny" else 15.0
        least = 1 if self.scale == "tiny" else LEAST_ROUNDS
        configs = contestants((points,), tuple(TITLES))
        return [
            c.to_json()
            for c in run_contest(contest, configs, budget=budget, least_rounds=least, memory_limit=MEMORY_LIMIT)
        ]

    def sheets(self, rows: list[dict[str, Any]]) -> Iterator[ResultTable]:
        """Time and operations, ours beside the printed ones."""
        by = {(row["model"], row["task"], int(row["grid"])): row for row in rows}
        headings = ["", *(heading for n in self.grids() for heading in (f"{n}", "paper"))]

        def sheet(title: str, task: str, key: str, printed: Mapping[str, tuple[float, ...]]) -> ResultTable:
            lines = []
            for name, label in TITLES.items():
                cells = [label]
                for place, n in enumerate(self.grids()):
                    value = by[name, task, n][key]
                    cells += [number(value), f"{printed[name][place]:g}" if task == "forward" else ""]
                lines.append(tuple(cells))
            return ResultTable(title, tuple(headings), tuple(lines))

        yield sheet("ms of one prediction, batch 1 (paper: on an A6000)", "forward", "ms", LATENCIES)
        yield sheet("ms of a rollout of 22 frames, batch 1", "rollout", "ms", LATENCIES)
        yield sheet("GFLOP of one prediction, plain PyTorch, all counted alike", "forward", "gflop", GFLOPS)
        yield sheet(
            "GFLOP of one prediction by the rules behind the published table", "forward", "gflop_published", GFLOPS
        )

    def verdicts(self, rows: list[dict[str, Any]]) -> Iterator[Verdict]:
        """The paper's three statements."""
        for task, what in (("forward", "one prediction"), ("rollout", "a rollout")):
            times = {n: {r["model"]: r for r in rows if (r["task"], int(r["grid"])) == (task, n)} for n in self.grids()}
            best = {n: min(entered, key=lambda name, e=entered: e[name]["ms"]) for n, entered in times.items()}  # type: ignore[misc]
            told = ", ".join(f"{n}: {TITLES[name]} ({times[n][name]['ms']:.3g} ms)" for n, name in best.items())
            verdict = fact(
                f"SS-NO has the lowest time of {what} at every resolution", set(best.values()) == {"ssno"}, told
            )
            yield Verdict(verdict.claim, OPEN, f"one round; {told}") if self.scale == "tiny" else verdict
        counted = {
            n: {r["model"]: r["gflop"] for r in rows if (r["task"], int(r["grid"])) == ("forward", n)}
            for n in self.grids()
        }
        fewest = {n: min(values, key=values.__getitem__) for n, values in counted.items()}
        told = ", ".join(f"{n}: {TITLES[name]}" for n, name in fewest.items())
        yield fact("GKT needs the fewest operations at every resolution", set(fewest.values()) == {"gkt"}, told)
        differ = [
            f"{TITLES[row['model']]} {n}: {row['gflop_published']:.3f} for {GFLOPS[row['model']][place]:g}"
            for place, n in enumerate(self.grids())
            for row in rows
            if (row["task"], int(row["grid"])) == ("forward", n)
            and abs(row["gflop_published"] - GFLOPS[row["model"]][place]) > 0.0015
        ]
        yield fact(
            "the printed operation counts follow from the models", not differ, "; ".join(differ) or "all of them"
        )


# What a prediction costs in 2D: parameters, operations and time of every model on 64 x 64 points.

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


@dataclass(frozen=True, kw_only=True)
class Cost2D(Experiment):
    """Milliseconds and GFLOP with batch 1, published counts of parameters beside ours; of one field, TorusLi's."""

    name: ClassVar[str] = "cost-2d"
    title: ClassVar[str] = "Cost of a prediction, 2D"
    paper_location: ClassVar[str] = "Parameters in the tables of 2D results"
    published: ClassVar[str] = "SS-NO has the fewest parameters: 369,665, FFNO 2,192,897, FNO2D 67,197,700 (on CE-RM)."

    def runs(self) -> list[Trial]:
        return []

    def judge(self, results: Results) -> Finding:
        rows = {task: self.measured(task) for task in TASKS}
        lines = tuple(
            (
                TITLES_2D[name],
                f"{rows['forward'][name]['parameters']:,}",
                f"{PARAMETERS_2D[name]:,}",
                number(rows["forward"][name]["gflop"]),
                *(number(rows[task][name]["ms"]) for task in TASKS),
            )
            for name in rows["forward"]
        )
        headings = ("", "parameters", "paper", "GFLOP of a prediction", "ms of a prediction", "ms of 22 frames")
        counts = {name: row["parameters"] for name, row in rows["forward"].items()}
        fewest = min(counts, key=counts.__getitem__)
        drawn = {
            what: {TITLES_2D[name]: [row["ms"]] for name, row in rows[task].items()} for task, what in TASKS.items()
        }
        side = self.side()
        return Finding(
            (ResultTable(f"{side} x {side} points, batch 1", headings, lines),),
            (fact("SS-NO has the fewest parameters", fewest == "ssno", f"{TITLES_2D[fewest]}: {counts[fewest]:,}"),),
            {self.name: lambda: seed_dots(drawn, ylabel="ms, batch 1")},
            tuple({k: v for k, v in row.items() if k != "config"} for task in TASKS for row in rows[task].values()),
            ("Times are of this machine's processor and depend on what else runs on it; `ssno bench` measures more.",),
        )

    def side(self) -> int:
        """Points along an axis."""
        return 16 if self.scale == "tiny" else 64

    def measured(self, task: str) -> dict[str, dict[str, Any]]:
        """All models in turn."""
        tiny = self.scale == "tiny"
        contest = BenchmarkCase(task, (self.side(), self.side()), 1, 2 if tiny else 22)  # type: ignore[arg-type]
        configs = {
            name: config for name, config in contestants(contest.grid, tuple(TITLES_2D)).items() if name in TITLES_2D
        }
        costs = run_contest(
            contest,
            configs,
            budget=0.0 if tiny else 60.0,
            least_rounds=1 if tiny else LEAST_ROUNDS,
            memory_limit=MEMORY_LIMIT,
        )
        return {cost.model: cost.to_json() for cost in costs}
