"""Which peak learning rate suits each model: equal trials for all, judged on validation data.

Models of the 2D table are trained on TorusLi with each rate for half of the time that they have in the table, mixings
of slices on kt-foil and models on the sphere for half of their epochs. Rollouts after so short a training scatter by a
tenth from one epoch to the next, single steps do not, but rank unstable models too high; so rates are judged by the
geometric mean of both errors, the lowest of all epochs; on the sphere by the error over ten steps in z-scored units.
`RATES` of `tables_2d`, `airfoils` and `sphere` in `ssno.paper` come from here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import geometric_mean

from ssno.evaluation.statistics import summarise
from ssno.evaluation.tables import ResultTable
from ssno.paper import airfoils, sphere, tables_2d
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Results, fact, shown
from ssno.paper.table import Table, TableColumn
from ssno.paper.trial import TORUS_LI, Trial
from ssno.plots.summary import seed_dots
from ssno.runs.log import read_log

RATES = (1e-3, 3e-3, 1e-2)


@dataclass(frozen=True)
class TriedRates:
    """Runs with every rate, and whether the rates in use are the best of those tried."""

    trials: Callable[[Experiment, Sequence[float]], list[Trial]]
    """The runs with some rates."""
    used: Mapping[str, float]
    """By row."""
    metrics: tuple[str, ...] = ("rel_l2", "rel_l2_onestep")
    """Errors whose geometric mean decides."""

    def runs(self, at: Experiment) -> list[Trial]:
        return self.trials(at, RATES[:1] if at.scale == "tiny" else RATES)

    def judge(self, at: Experiment, results: Results) -> Finding:
        mean_of = " and ".join(self.metrics)
        judged_by = mean_of if len(self.metrics) == 1 else f"geometric mean of {mean_of}"
        errors: dict[str, dict[str, list[float]]] = {}
        for trial in results.outcomes:
            error = lowest_error(results.folder / trial.name, self.metrics)
            errors.setdefault(trial.label, {}).setdefault(trial.case, []).append(error)
        rates = tuple(dict.fromkeys(trial.case for trial in results.outcomes))
        rows, verdicts = [], []
        for label, found in errors.items():
            means = {case: summarise(values).mean for case, values in found.items()}
            rows.append((label, *(shown(summarise(found[case])) if case in found else "" for case in rates)))
            best, rate = min(means, key=means.__getitem__), f"{self.used[label]:g}"
            told = ", ".join(f"{case}: {mean:.3g}" for case, mean in means.items())
            claim = f"{label}: {rate}, the rate of the table, is the best of those tried"
            verdicts.append(fact(claim, best == rate, told))
        table = ResultTable(f"{judged_by} on validation data, peak rate in columns", ("", *rates), tuple(rows))
        figures = {at.name: lambda: seed_dots(errors, ylabel=judged_by)}
        return Finding((table,), tuple(verdicts), figures, tuple(results.records()))


def lowest_error(folder: Path, metrics: Sequence[str]) -> float:
    """The lowest error of a run's epochs, the geometric mean of some metrics; infinite if it has none."""
    lines = [[line[name] for name in metrics] for line in read_log(folder) if set(metrics) <= set(line)]
    return min((geometric_mean(errors) for errors in lines), default=math.inf)


def fluid_trials(at: Experiment, rates: Sequence[float]) -> list[Trial]:
    """Models of the 2D table on TorusLi, for half of their epochs."""
    table = Table(
        rows={name: tables_2d.fluid_row(name, max(1, n // 2)) for name, n in tables_2d.EPOCHS.items()},
        columns={f"{rate:g}": TableColumn(problem=TORUS_LI, train={"learning_rate": rate}) for rate in rates},
        points=tables_2d.GRID,
    )
    names = tables_2d.MODELS if at.scale in ("cpu", "paper") else ("SS-NO", "FFNO")
    return [table.trial(at, name, case, seed) for seed, name, case in product(at.seed_range(), names, table.columns)]


def airfoil_trials(at: Experiment, rates: Sequence[float]) -> list[Trial]:
    """Everything that may happen among slices."""
    mixings = airfoils.Mixings()
    cells = product(at.seed_range(), mixings.models(at), rates)
    return [mixings.trial(at, name, seed, rate=rate, case=f"{rate:g}") for seed, name, rate in cells]


def sphere_trials(at: Experiment, rates: Sequence[float]) -> list[Trial]:
    """Every model on the sphere, on both datasets."""
    models = sphere.SphereModels()
    cells = product(at.seed_range(), sphere.cases_of(at), models.models(at), rates)
    return [
        replace(models.trial(at, name, case, seed, rate=rate), label=f"{name}; {case}", case=f"{rate:g}")
        for seed, case, name, rate in cells
    ]


LEARNING_RATES = Experiment(
    name="learning-rates",
    title="Peak learning rates in 2D, on validation data",
    paper_location="Nowhere: how the rates of the 2D table were chosen",
    published="Nothing; all of its models train at 1e-3.",
    cpu=tables_2d.BF16,
    compare_recipes=False,
    content=TriedRates(fluid_trials, tables_2d.RATES),
)
AIRFOIL_RATES = replace(
    airfoils.AIRFOILS,
    name="airfoil-rates",
    title="Peak learning rates on aerofoils, on validation data",
    paper_location="Nowhere: how the rates of the table of aerofoils were chosen",
    published="Nothing; Transolver trains at 1e-3.",
    cpu=replace(airfoils.CPU, epochs=airfoils.CPU.epochs // 2),
    tenth=replace(airfoils.CPU, preset="paper", epochs=airfoils.CPU.epochs // 2),
    cpu_seeds=1,
    content=TriedRates(airfoil_trials, airfoils.RATES),
)
SPHERE_RATES = replace(
    sphere.SHALLOW_WATER,
    name="sphere-rates",
    title="Peak learning rates on the sphere, on validation data",
    paper_location="Nowhere: how the rates of the table of shallow water were chosen",
    published="Nothing.",
    cpu_seeds=1,
    content=TriedRates(
        sphere_trials,
        {f"{name}; {case}": rate for name, rate in sphere.RATES.items() for case in sphere.CASES},
        metrics=("rel_l2_normalised",),
    ),
)
