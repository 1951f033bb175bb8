"""Who is ahead after how much training: SS-NO and FFNO with budgets that grow by factors, each a training of its own.

Points of one long run say little about short ones, because its learning rate is still high when a short run has
finished. Here every budget has its own schedule. A straight line through the logarithms of error and of trajectories
seen, over all seeds, says what the published 500 epochs would give if nothing changed on the way.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ssno.evaluation.tables import ResultTable
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Results, Verdict, fact, shown
from ssno.paper.table import Claim, Table, TableRow
from ssno.paper.tables_1d import HEADLINE_COLUMNS, HEADLINE_ROWS, PLAIN, PRINTED
from ssno.paper.trial import BURGERS, CPU, KS, PAPER, Benchmark, Budget, Scale, Trial
from studies.power_law import PowerLaw, Rung, budget_curves, fit_power_law

MODELS = ("SS-NO", "FFNO")
METRIC = "rel_l2_unit_interval"
"""What the printed numbers most likely are."""
WITHIN = 1.5
"""Of the printed number after a tenth of the published training, if we read the paper rightly."""
LADDER: Mapping[Scale, Mapping[str, Mapping[str, int]]] = {
    "tiny": {"1 epoch": {}},
    "cpu": {f"{n} trajectories": {"train": n} for n in (128, 512, 2048)},
    "tenth": {f"{n} epoch{'s' if n > 1 else ''}": {"epochs": n} for n in (1, 7, 50)},
    "paper": {"500 epochs": {}},
}
"""Changes of the budget, smallest first."""


def row(model: str, budget: str) -> str:
    """A row: a model with a budget."""
    return f"{model}, {budget}"


ROWS: dict[str, TableRow] = {}
for scale, ladder in LADDER.items():
    for budget, changes in ladder.items():
        for model in (*MODELS, PLAIN):
            known = ROWS.get(row(model, budget), replace(HEADLINE_ROWS[model], budget={}))
            ROWS[row(model, budget)] = replace(known, budget={**known.budget, scale: changes})


def longest(at: Experiment) -> str:
    """The largest budget."""
    return list(LADDER[at.scale])[-1]


def in_study(at: Experiment, label: str, case: str, seed: int) -> bool:
    """SS-NO and FFNO on KS 0.1 and Burgers.

    With the largest budget of scale `tenth` the first seed has the other viscosities too, and KS 0.1 also SS-NO as the
    paper starts it.
    """
    model, _, budget = label.rpartition(", ")
    if budget not in LADDER[at.scale]:
        return False
    more = at.scale == "tenth" and budget == longest(at)
    if model == PLAIN:
        return more and case == "KS 0.1"
    return case in ("KS 0.1", "Burgers") or (more and not seed)


def trajectories_seen(budget: Budget, problem: Benchmark) -> int:
    """Trajectories that a run sees, repetitions counted."""
    there = problem.available(budget.preset)["train"]
    return budget.epochs * min(budget.train or there, there)


@dataclass(frozen=True)
class GrowingBudgets:
    """The table of all budgets, and power laws through them."""

    table: Table

    def runs(self, at: Experiment) -> list[Trial]:
        """Small budgets first."""
        place = {budget: number for number, budget in enumerate(LADDER[at.scale])}
        return sorted(self.table.runs(at), key=lambda trial: (trial.seed, place[trial.label.rpartition(", ")[2]]))

    def judge(self, at: Experiment, results: Results) -> Finding:
        finding = self.table.judge(at, results)
        laws = {
            problem: {model: law for model in MODELS if (law := law_of(at, results, model, problem))}
            for problem in (KS[0.1], BURGERS)
        }
        drawn = {problem.title: {model: rungs(at, results, model, problem) for model in MODELS} for problem in laws}
        ends = {problem.title: (trajectories_seen(PAPER, problem), found) for problem, found in laws.items() if found}
        ylabel = "rel_l2 of rollouts, [0, 1] units"
        return replace(
            finding,
            tables=(*finding.tables, *([extrapolated(laws)] if any(laws.values()) else [])),
            figures={"budget": lambda: budget_curves(drawn, ends, ylabel=ylabel, printed=PRINTED)},
        )


def rungs(at: Experiment, results: Results, model: str, problem: Benchmark) -> list[Rung]:
    """Trajectories seen, seconds of training and errors of each budget, of those that are there."""
    return [
        Rung(trajectories_seen(replace(at.budget, **changes), problem), outcome.seconds, outcome.values[METRIC])
        for budget, changes in LADDER[at.scale].items()
        for _, outcome in results.find(row(model, budget), problem.title)
    ]


def law_of(at: Experiment, results: Results, model: str, problem: Benchmark) -> PowerLaw | None:
    """The line through all budgets and seeds; None with fewer than three budgets, or a run that diverged."""
    found = rungs(at, results, model, problem)
    if len({rung.trajectories for rung in found}) < 3 or not all(math.isfinite(rung.error) for rung in found):
        return None
    return fit_power_law([rung.trajectories for rung in found], [rung.error for rung in found])


def extrapolated(laws: Mapping[Benchmark, Mapping[str, PowerLaw]]) -> ResultTable:
    """What 500 epochs would give."""
    rows = []
    for problem, found in laws.items():
        for model, law in found.items():
            ahead = law.at(trajectories_seen(PAPER, problem))
            told = f"{ahead.value:.2g} ({ahead.low:.2g} to {ahead.high:.2g})"
            printed = f"{PRINTED[problem.title]:g}" if model == "SS-NO" else ""
            rows.append((problem.title, model, f"{law.exponent:.3f} ± {law.exponent_error:.3f}", told, printed))
    headings = ("", "", "error ~ trajectories to the power", "at 500 epochs (95 % interval)", "paper")
    return ResultTable(f"{METRIC} extrapolated by a power law through all budgets and seeds", headings, tuple(rows))


def near_the_printed(at: Experiment, results: Results) -> Iterator[Verdict]:
    """How SS-NO with the largest budget compares with the paper's start, and with the printed number."""
    last = longest(at)
    cells = ((row(model, last), "KS 0.1") for model in ("SS-NO", PLAIN))
    yield from results.below(f"KS 0.1, {last}: SS-NO below SS-NO with the paper's start and boundary", *cells)
    for case in ("KS 0.1", "Burgers"):
        if at.scale == "tenth" and results.find(row("SS-NO", last), case):
            ours, printed = results.summary(row("SS-NO", last), case, METRIC), PRINTED[case]
            claim = f"{case}, {last}: SS-NO within {WITHIN:g} times of the printed {printed:g} ([0, 1] units)"
            yield fact(claim, ours.mean <= WITHIN * printed, f"{shown(ours)}: {ours.mean / printed:.3g} times")


BUDGET = Experiment(
    name="budget",
    title="SS-NO and FFNO as training grows",
    paper_location="Nowhere: how far our short trainings carry",
    published="After 500 epochs, SS-NO at 64 points: KS 0.1 0.0048, Burgers 0.0121.",
    cpu=CPU,
    cpu_seeds=3,
    compare_recipes=False,  # `headline` has the paper's beside it
    content=GrowingBudgets(
        Table(
            rows=ROWS,
            columns=HEADLINE_COLUMNS,
            chosen=in_study,
            claims=tuple(
                Claim(f"{case}, {budget}: SS-NO below FFNO", *((row(model, budget), case) for model in MODELS))
                for case in HEADLINE_COLUMNS
                for budget in dict.fromkeys(budget for ladder in LADDER.values() for budget in ladder)
            ),
            more_verdicts=near_the_printed,
            costs=False,
            notes=("Seconds are wall time of one thread on a shared machine.",),
        )
    ),
)
