"""Who is ahead after how much training: SS-NO and FFNO with budgets that grow by factors, each a training of its own.

Points of one long run say little about short ones, because its learning rate is still high when a short run has
finished. Here every budget has its own schedule. A straight line through the logarithms of error and of trajectories
seen, over all seeds, says what the published 500 epochs would give if nothing changed on the way.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from ssno.evaluation.statistics import PowerLaw, fit_power_law
from ssno.evaluation.tables import ResultTable
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Results, Verdict, fact, shown
from ssno.paper.table import METRICS
from ssno.paper.table_1d import PLAIN, PRINTED, Headline
from ssno.paper.trial import BURGERS, CPU, KS, PAPER, Benchmark, Budget, Trial
from ssno.plots.curves import Rung, budget_curves

MODELS = ("SS-NO", "FFNO")
METRIC = "rel_l2_unit_interval"
"""What the printed numbers most likely are."""
WITHIN = 1.5
"""Of the printed number after a tenth of the published training, if we read the paper rightly."""


def row(model: str, budget: str) -> str:
    """How tables call a line."""
    return f"{model}, {budget}"


@dataclass(frozen=True, kw_only=True)
class TrainingBudget(Experiment):
    """SS-NO and FFNO on KS 0.1 and Burgers, 64 points, with our recipe."""

    name: ClassVar[str] = "budget"
    title: ClassVar[str] = "SS-NO and FFNO as training grows"
    paper_location: ClassVar[str] = "Nowhere: how far our short trainings carry"
    published: ClassVar[str] = "After 500 epochs, SS-NO at 64 points: KS 0.1 0.0048, Burgers 0.0121."
    cpu_seeds: ClassVar[int] = 3
    cpu: ClassVar[Budget] = CPU

    def recipes(self) -> list[Experiment]:
        """Ours only: `headline` has the paper's beside it."""
        return [self]

    def ladder(self) -> dict[str, Budget]:
        """The budgets, smallest first."""
        return self.by_scale(
            tiny={"1 epoch": self.budget},
            cpu={f"{n} trajectories": replace(self.budget, train=n) for n in (128, 512, 2048)},
            tenth={f"{n} epoch{'s' if n > 1 else ''}": replace(self.budget, epochs=n) for n in (1, 7, 50)},
            paper={"500 epochs": self.budget},
        )

    @property
    def longest(self) -> str:
        """The largest budget."""
        return list(self.ladder())[-1]

    def problems(self, budget: str, seed: int) -> tuple[Benchmark, ...]:
        """With the largest budget of scale `tenth`, the first seed also has the other viscosities."""
        more = self.scale == "tenth" and budget == self.longest and not seed
        return (KS[0.1], BURGERS, *((KS[0.075], KS[0.125]) if more else ()))

    def runs(self) -> list[Trial]:
        """Small budgets first."""
        return [
            self.cell(name, problem, budget, seed)
            for seed in self.seed_range()
            for budget in self.ladder()
            for problem in self.problems(budget, seed)
            for name in self.models(problem, budget)
        ]

    def models(self, problem: Benchmark, budget: str) -> tuple[str, ...]:
        """SS-NO and FFNO; with the largest budget of scale `tenth`, on KS 0.1, also SS-NO as the paper starts it."""
        more = self.scale == "tenth" and budget == self.longest and problem == KS[0.1]
        return (*MODELS, PLAIN) if more else MODELS

    def cell(self, name: str, problem: Benchmark, budget: str, seed: int) -> Trial:
        """One run: of `headline`, with this budget."""
        made = Headline(scale=self.scale, recipe=self.budget.recipe).cell(
            name, problem, seed, budget=self.ladder()[budget]
        )
        return replace(made, label=row(name, budget))

    def judge(self, results: Results) -> Finding:
        sheets = [
            results.sheet(f"{metric}: {what}; mean ± standard deviation over seeds", metric=metric)
            for metric, what in METRICS.items()
        ]
        laws = {
            problem: {name: law for name in MODELS if (law := self.law(results, name, problem))}
            for problem in (KS[0.1], BURGERS)
        }
        drawn = {problem.title: {name: self.rungs(results, name, problem) for name in MODELS} for problem in laws}
        ends = {problem.title: (self.seen(PAPER, problem), found) for problem, found in laws.items() if found}
        return Finding(
            (*sheets, *([self.extrapolated(laws)] if any(laws.values()) else [])),
            tuple(self.verdicts(results)),
            {"budget": lambda: budget_curves(drawn, ends, ylabel="rel_l2 of rollouts, [0, 1] units", printed=PRINTED)},
            tuple(results.records()),
            ("Seconds are wall time of one thread on a shared machine.",),
        )

    def rungs(self, results: Results, name: str, problem: Benchmark) -> list[Rung]:
        """Trajectories seen, seconds of training and errors of each budget, of those that are there."""
        return [
            Rung(self.seen(budget, problem), outcome.seconds, outcome.values[METRIC])
            for words, budget in self.ladder().items()
            for _, outcome in results.find(row(name, words), problem.title)
        ]

    def seen(self, budget: Budget, problem: Benchmark) -> int:
        """Trajectories that a run sees, repetitions counted."""
        there = problem.available(budget.preset)["train"]
        return budget.epochs * min(budget.train or there, there)

    def law(self, results: Results, name: str, problem: Benchmark) -> PowerLaw | None:
        """The line through all budgets and seeds; None with fewer than three budgets, or a run that diverged."""
        found = self.rungs(results, name, problem)
        if len({rung.trajectories for rung in found}) < 3 or not all(math.isfinite(rung.error) for rung in found):
            return None
        return fit_power_law([rung.trajectories for rung in found], [rung.error for rung in found])

    def extrapolated(self, laws: dict[Benchmark, dict[str, PowerLaw]]) -> ResultTable:
        """What 500 epochs would give."""
        rows = []
        for problem, found in laws.items():
            for name, law in found.items():
                ahead = law.at(self.seen(PAPER, problem))
                told = f"{ahead.value:.2g} ({ahead.low:.2g} to {ahead.high:.2g})"
                printed = f"{PRINTED[problem.title]:g}" if name == "SS-NO" else ""
                rows.append((problem.title, name, f"{law.exponent:.3f} ± {law.exponent_error:.3f}", told, printed))
        headings = ("", "", "error ~ trajectories to the power", "at 500 epochs (95 % interval)", "paper")
        return ResultTable(f"{METRIC} extrapolated by a power law through all budgets and seeds", headings, tuple(rows))

    def verdicts(self, results: Results) -> Iterator[Verdict]:
        """Who is ahead at each budget, and how far from the printed number the largest one ends."""
        for problem in (KS[0.1], BURGERS, KS[0.075], KS[0.125]):
            for budget in self.ladder():
                cells = ((row(name, budget), problem.title) for name in MODELS)
                yield from results.below(f"{problem.title}, {budget}: SS-NO below FFNO", *cells)
        last = self.longest
        cells = ((row(name, last), KS[0.1].title) for name in ("SS-NO", PLAIN))
        yield from results.below(f"KS 0.1, {last}: SS-NO below SS-NO with the paper's start and boundary", *cells)
        for problem in (KS[0.1], BURGERS):
            if self.scale == "tenth" and results.find(row("SS-NO", last), problem.title):
                ours, printed = results.summary(row("SS-NO", last), problem.title, METRIC), PRINTED[problem.title]
                claim = (
                    f"{problem.title}, {last}: SS-NO within {WITHIN:g} times of the printed {printed:g} ([0, 1] units)"
                )
                told = f"{shown(ours)}: {ours.mean / printed:.3g} times"
                yield fact(claim, ours.mean <= WITHIN * printed, told)
