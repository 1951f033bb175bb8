"""A table as data: models in rows, problems in columns, claims "this cell below that one"; the usual experiment.

    rows       what is compared: a model, its size, its training options
    columns    on what: a problem, its grid
    claims     which cell's error should be below which
    published  what the paper prints, by row and column

What differs between scales is in the rows (`narrow`, `budget`), in `points`, and in `chosen`, which says which cells
a scale has. What is not there, or not yet trained, is left out of tables and claims.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from matplotlib.figure import Figure

from ssno.data.windows import Protocol
from ssno.native.engine import Precision
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Cell, Results, Verdict
from ssno.paper.trial import Benchmark, Scale, Trial
from ssno.paper.trial import trial as make_trial
from ssno.plots.summary import learning_curves, seed_dots, seed_lines

METRICS = {
    "rel_l2": "rollouts, physical units",
    "skill": "1 - rel_l2 / that of the best trivial forecast in its column",
    "rel_l2_unit_interval": "rollouts in the paper's [0, 1] units",
    "rel_l2_onestep": "one step from true frames",
}
NARROW = {"hidden_channels": 32, "head_channels": 128}
"""Half of SS-NO's width."""

Figures = Callable[[Experiment, Results], Mapping[str, Callable[[], Figure]]]


@dataclass(frozen=True)
class Claim:
    """One cell's error is below another's, by a factor."""

    text: str
    smaller: Cell
    larger: Cell
    factor: float = 1.0
    paired: bool = False
    """Whether both are one network, so that equal seeds share first weights and batches."""


def below_in(case: str, smaller: str, larger: str, *, factor: float = 1.0, paired: bool = False) -> Claim:
    """A claim about two rows in one column."""
    by = "" if factor == 1 else f"at least {factor:g} times "
    return Claim(f"{case}: {smaller} {by}below {larger}", (smaller, case), (larger, case), factor, paired)


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """A model and how it is trained."""

    model: str = "ssno"
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Of the model, at every scale."""
    narrow: Mapping[str, Any] = field(default_factory=dict)
    """More of them at scale `cpu`, where models are smaller."""
    budget: Mapping[Scale, Mapping[str, Any]] = field(default_factory=dict)
    """Changes of the experiment's budget, by scale."""
    train: Mapping[str, Any] = field(default_factory=dict)
    """Training options where the recipe is ours."""
    periodic: bool | None = True
    """What our recipe takes the domain for; None leaves the model as the paper has it."""
    precision: Precision | None = None
    """None for that of the budget."""
    memory_window: int | None = None
    points: int | None = None
    forcing: float | None = None


@dataclass(frozen=True, kw_only=True)
class TableColumn:
    """A problem. Points, the share of teacher forcing and training options of a column hold for all its runs."""

    problem: Benchmark
    points: int | None = None
    forcing: float | None = None
    train: Mapping[str, Any] = field(default_factory=dict)


def columns_of(*problems: Benchmark) -> dict[str, TableColumn]:
    """A column for each problem, named after it."""
    return {problem.title: TableColumn(problem=problem) for problem in problems}


def every_cell(at: Experiment, label: str, case: str, seed: int) -> bool:
    """All rows in all columns with all seeds."""
    return True


@dataclass(frozen=True, kw_only=True)
class Table:
    """Errors of every row in every column."""

    rows: Mapping[str, TableRow]
    columns: Mapping[str, TableColumn]
    claims: tuple[Claim, ...] = ()
    points: tuple[int, int, int] = (64, 64, 64)
    """Of the grid at scales `cpu`, `tenth` and `paper`, where neither row nor column has its own."""
    tiny_points: int = 32
    """At scale `tiny`."""
    protocol: Protocol = "first_k"
    cell: Callable[[Experiment, str, str, int], Trial] | None = None
    """How a run is built (experiment, row, column, seed), where rows and columns cannot describe it."""
    chosen: Callable[[Experiment, str, str, int], bool] = every_cell
    """Whether a scale has a cell: experiment, row, column, seed."""
    metrics: Mapping[str, str] = field(default_factory=lambda: METRICS)
    """A table for each that was measured, and what it is."""
    judged_by: Mapping[Scale, str] = field(default_factory=dict)
    """The metric of claims and of the figure, where it is not `rel_l2`."""
    published: Mapping[Cell, float] = field(default_factory=dict)
    table_per_problem: bool = False
    costs: bool = True
    """Whether tables have columns of parameters and seconds of training."""
    figures: tuple[Figures, ...] | None = None
    """None for dots of all seeds."""
    more_verdicts: Callable[[Experiment, Results], Iterable[Verdict]] = lambda at, results: ()
    notes: tuple[str, ...] = ()

    def runs(self, at: Experiment) -> list[Trial]:
        """All chosen cells of a seed before the next seed."""
        return [
            self.trial(at, label, case, seed)
            for seed in at.seed_range()
            for case in self.columns
            for label in self.rows
            if self.chosen(at, label, case, seed)
        ]

    def trial(self, at: Experiment, label: str, case: str, seed: int) -> Trial:
        """One run."""
        if self.cell is not None:
            return self.cell(at, label, case, seed)
        row, column = self.rows[label], self.columns[case]
        problem = column.problem
        usual = dict(zip(("cpu", "tenth", "paper"), self.points, strict=True)).get(at.scale, self.tiny_points)
        points = row.points or column.points or usual
        fields = {**row.fields, **(row.narrow if at.scale == "cpu" else {})}
        model: Any = at.model(row.model, n_dims=problem.n_dims, **fields)
        if row.memory_window is not None:
            model = replace(model, memory=replace(model.memory, window=row.memory_window))
        model = at.with_modes(model, problem, [points] * problem.n_dims)
        ours = not at.published_recipe
        if ours and row.periodic is not None:
            model = model.recommended(periodic=row.periodic)
        changes = {**(row.train if ours else {}), **column.train}
        if row.precision is not None:
            changes["precision"] = row.precision
        forcing = row.forcing if column.forcing is None else column.forcing
        if forcing is not None:
            changes["unroll"] = at.unrolling(forcing)
        return make_trial(
            label,
            problem,
            model,
            points=points,
            seed=seed,
            budget=replace(at.budget, **row.budget.get(at.scale, {})),
            case=case,
            protocol=self.protocol,
            **changes,
        )

    def judge(self, at: Experiment, results: Results) -> Finding:
        """Tables of every metric with parameters and seconds, a verdict per claim with runs, and figures."""
        metric = self.metric(at)
        groups = {"": results}
        if self.table_per_problem:
            titles = dict.fromkeys(self.columns[trial.case].problem.title for trial in results.outcomes)
            groups = {
                f"{title}: ": results.only([t for t in results.outcomes if self.columns[t.case].problem.title == title])
                for title in titles
            }
        costs = {"parameters": results.parameters(), "seconds of training": results.seconds()} if self.costs else {}
        tables = [
            group.table(
                f"{prefix}{metric}: {what}; mean ± standard deviation over seeds",
                metric=metric,
                published=self.published,
                extra=costs,
            )
            for metric, what in self.metrics.items()
            if results.measured(metric)
            for prefix, group in groups.items()
        ]
        verdicts = [verdict for claim in self.claims for verdict in self.verdict(claim, results, metric)]
        figures = self.figures if self.figures is not None else (dots(metric),)
        return Finding(
            tuple(tables),
            (*verdicts, *self.more_verdicts(at, results)),
            {name: draw for part in figures for name, draw in part(at, results).items()},
            tuple(results.records()),
            self.notes,
        )

    def metric(self, at: Experiment) -> str:
        """What claims are about."""
        return self.judged_by.get(at.scale, "rel_l2")

    def verdict(self, claim: Claim, results: Results, metric: str) -> Iterable[Verdict]:
        """The verdict on a claim, if there are runs of both cells."""
        return results.below(
            claim.text, claim.smaller, claim.larger, metric=metric, factor=claim.factor, paired=claim.paired
        )


def dots(metric: str) -> Figures:
    """A dot for every seed, rows beside each other, a panel for every column."""
    ylabel = "rel_l2 of rollouts" if metric == "rel_l2" else metric

    def draw(at: Experiment, results: Results) -> Mapping[str, Callable[[], Figure]]:
        panels: dict[str, dict[str, list[float]]] = {}
        for trial, outcome in results.outcomes.items():
            values = panels.setdefault(trial.case, {}).setdefault(trial.label, [])
            values.append(outcome.values.get(metric, math.inf))
        return {at.name: lambda: seed_dots(panels, ylabel=ylabel)}

    return draw


def lines(place: Callable[[Trial], tuple[str, str, float | None]], *, xlabel: str, log: bool = False) -> Figures:
    """Errors of rollouts along an axis; `place` gives the panel, the line and the position of a run."""

    def draw(at: Experiment, results: Results) -> Mapping[str, Callable[[], Figure]]:
        panels: dict[str, dict[str, dict[float, list[float]]]] = {}
        ticks: set[float] = set()
        for trial in sorted(results.outcomes, key=lambda trial: place(trial)[2] or 0):
            panel, line, x = place(trial)
            ticks.add(float(x or 0))
            values = panels.setdefault(panel, {}).setdefault(line, {}).setdefault(float(x or 0), [])
            values.append(results.outcomes[trial].values.get("rel_l2", math.inf))
        axis: dict[str, Any] = {"xscale": "log", "ticks": sorted(ticks)} if log else {}
        return {at.name: lambda: seed_lines(panels, xlabel=xlabel, ylabel="rel_l2 of rollouts", **axis)}

    return draw


def curves(panel: Callable[[Trial], str]) -> Figures:
    """Validation errors while training, a line for every row; of the first seed in each panel."""

    def draw(at: Experiment, results: Results) -> Mapping[str, Callable[[], Figure]]:
        panels: dict[str, dict[str, tuple[tuple[int, float], ...]]] = {}
        for trial, outcome in results.outcomes.items():
            panels.setdefault(panel(trial), {}).setdefault(trial.label, outcome.curve)
        return {f"{at.name}-curves": lambda: learning_curves(panels, ylabel="validation rel_l2")}

    return draw
