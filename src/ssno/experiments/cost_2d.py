"""What a prediction costs in 2D: parameters, operations and time of every model on 64 x 64 points."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ssno.base.amounts import number
from ssno.costs.cost import BenchmarkCase, contestants, run_contest
from ssno.evaluation.tables import ResultTable
from ssno.experiments.cost import LEAST_ROUNDS, MEMORY_LIMIT
from ssno.experiments.experiment import Experiment, Finding
from ssno.experiments.paper import PARAMETERS_2D
from ssno.experiments.results import Results
from ssno.experiments.trial import Trial
from ssno.experiments.verdicts import fact
from ssno.plots.summary import seed_dots

TITLES = {
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
                TITLES[name],
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
        drawn = {what: {TITLES[name]: [row["ms"]] for name, row in rows[task].items()} for task, what in TASKS.items()}
        side = self.side()
        return Finding(
            (ResultTable(f"{side} x {side} points, batch 1", headings, lines),),
            (fact("SS-NO has the fewest parameters", fewest == "ssno", f"{TITLES[fewest]}: {counts[fewest]:,}"),),
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
        configs = {name: config for name, config in contestants(contest.grid, tuple(TITLES)).items() if name in TITLES}
        costs = run_contest(
            contest,
            configs,
            budget=0.0 if tiny else 60.0,
            least_rounds=1 if tiny else LEAST_ROUNDS,
            memory_limit=MEMORY_LIMIT,
        )
        return {cost.model: cost.to_json() for cost in costs}
