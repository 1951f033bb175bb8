"""Error against resolution: every model trained anew on every grid, 32 to 512 points (Burgers to 128)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ssno.evaluation.tables import ResultTable
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.persistence import PERSISTENCE, persistence_cell
from ssno.paper.reference import FORCED_PROBLEMS, TEACHER_FORCING
from ssno.paper.results import Results, Verdict
from ssno.paper.table_1d import MODELS, RATES
from ssno.paper.trial import BURGERS, CPU, KS, Benchmark, Budget, Trial, trial
from ssno.plots.summary import seed_lines


@dataclass(frozen=True, kw_only=True)
class Resolution(Experiment):
    """The resolution figure. At scale `cpu` SS-NO and FFNO only, of half the width, on 512 trajectories, once."""

    name: ClassVar[str] = "resolution"
    title: ClassVar[str] = "Error against resolution"
    paper_location: ClassVar[str] = "Figure of resolutions"
    published: ClassVar[str] = (
        "SS-NO lowest at every resolution, at its floor from 128 points on; SS-NO (KS 0.1): 0.0162, 0.0048, 0.0027 at "
        "32, 64, 128 points; 30 % below FFNO at 32, 42 % at 128."
    )
    cpu: ClassVar[Budget] = replace(CPU, train=512, tested=128)

    def models(self) -> tuple[str, ...]:
        return tuple(MODELS) if self.scale == "paper" else ("SS-NO", "FFNO")

    def grids(self) -> dict[Benchmark, tuple[int, ...]]:
        if self.scale == "tiny":
            return {KS[0.1]: (32, 64)}
        return {**dict.fromkeys(KS.values(), (32, 64, 128, 256, 512)), BURGERS: (32, 64, 128)}

    def runs(self) -> list[Trial]:
        return [
            trial(
                name,
                problem,
                self.recommended(self.with_modes(self.model(MODELS[name], **self.width(name)), problem, [points])),
                points=points,
                seed=seed,
                budget=self.budget,
                case=f"{problem.title}, {points}",
                **self.rate(name),
            )
            for seed in self.seed_range()
            for problem, grids in self.grids().items()
            for points in grids
            for name in self.models()
        ]

    def width(self, name: str) -> dict[str, Any]:
        """Half the width at scale `cpu`; SS-NO's head is four times as wide as the network, FFNO's twice."""
        heads = {"SS-NO": 128, "FFNO": 64}
        return {"hidden_channels": 32, "head_channels": heads[name]} if self.scale == "cpu" else {}

    def rate(self, name: str) -> dict[str, Any]:
        """A model's own peak learning rate, where the recipe is ours."""
        return {} if self.published_recipe else {"learning_rate": RATES[name]}

    def judge(self, results: Results) -> Finding:
        sheets = tuple(
            self.sheet(results, problem, metric)
            for metric in ("rel_l2", "rel_l2_unit_interval", "rel_l2_onestep")
            for problem in self.grids()
        )
        lines = {
            problem.title: {
                name: results.there({float(n): (name, f"{problem.title}, {n}") for n in grids})
                for name in self.models()
            }
            for problem, grids in self.grids().items()
        }
        ticks = sorted({float(n) for grids in self.grids().values() for n in grids})
        return Finding(
            sheets,
            tuple(self.verdicts(results)),
            {
                "resolution": lambda: seed_lines(
                    lines, xlabel="points", ylabel="rel_l2 of rollouts", xscale="log", ticks=ticks
                )
            },
            tuple(results.records()),
        )

    def sheet(self, results: Results, problem: Benchmark, metric: str) -> ResultTable:
        """The errors of one problem, models in rows, grids in columns; in [0, 1] units also what the paper prints."""
        grids = self.grids()[problem]
        rows = [
            (name, *(results.told(name, f"{problem.title}, {points}", metric) for points in grids))
            for name in self.models()
        ]
        if metric == "rel_l2_unit_interval":
            column = FORCED_PROBLEMS.index(problem.title)
            printed = [TEACHER_FORCING.get((points, True)) for points in grids]
            rows.append(("SS-NO, paper", *("" if values is None else f"{values[column]:g}" for values in printed)))
        of_case = {trial.case: trial for trial in results.outcomes}
        first = [of_case.get(f"{problem.title}, {points}") for points in grids]
        rows.append((PERSISTENCE, *("" if trial is None else persistence_cell(trial, metric) for trial in first)))
        return ResultTable(
            f"{problem.title}: {metric} on test trajectories, mean ± standard deviation over seeds",
            ("", *(f"{points} points" for points in grids)),
            tuple(rows),
        )

    def verdicts(self, results: Results) -> Iterator[Verdict]:
        """SS-NO below FFNO on every grid."""
        for problem, grids in self.grids().items():
            for points in grids:
                cells = ((name, f"{problem.title}, {points}") for name in ("SS-NO", "FFNO"))
                yield from results.below(f"{problem.title}, {points} points: SS-NO below FFNO", *cells)
