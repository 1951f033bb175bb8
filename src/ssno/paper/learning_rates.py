"""Which peak learning rate suits each model: equal trials for all, judged on validation data.

Models of the 2D table are trained on TorusLi with each rate for half of the time that they have in the table, mixings
of slices on kt-foil and models on the sphere for half of their epochs. Rollouts after so short a training scatter by a
tenth from one epoch to the next, single steps do not, but rank unstable models too high; so rates are judged by the
geometric mean of both errors, the lowest of all epochs; on the sphere by the error over ten steps in z-scored units.
`RATES` of `fluids`, `airfoils` and `swe` come from here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import geometric_mean
from typing import ClassVar

from ssno.evaluation.statistics import summarise
from ssno.evaluation.tables import ResultTable
from ssno.paper import airfoils, fluids, swe
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Results, fact, shown
from ssno.paper.trial import TORUS_LI, Benchmark, Budget, Scale, Trial
from ssno.plots.summary import seed_dots
from ssno.runs.log import read_log

TRIED = (1e-3, 3e-3, 1e-2)
JUDGED = ("rel_l2", "rel_l2_onestep")
"""Errors whose geometric mean decides."""


@dataclass(frozen=True, kw_only=True)
class LearningRates(fluids.FluidTable):
    """Three rates for every model. There is no published setting: other scales train all alike."""

    name: ClassVar[str] = "learning-rates"
    title: ClassVar[str] = "Peak learning rates in 2D, on validation data"
    paper_location: ClassVar[str] = "Nowhere: how the rates of the 2D table were chosen"
    published: ClassVar[str] = "Nothing; all of its models train at 1e-3."
    problems: ClassVar[tuple[Benchmark, ...]] = (TORUS_LI,)
    seeded: ClassVar[tuple[str, ...]] = ("SS-NO", "FFNO")

    def recipes(self) -> list[Experiment]:
        """Rates are what is compared: one list of runs at every scale."""
        return [self]

    def runs(self) -> list[Trial]:
        return [
            self.cell(name, TORUS_LI, seed, epochs=max(1, fluids.EPOCHS[name] // 2), rate=rate, case=f"{rate:g}")
            for seed, name, rate in product(self.seed_range(), self.models(), tried(self.scale))
        ]

    def judge(self, results: Results) -> Finding:
        return rates_judged(self.name, results, used=fluids.RATES)


@dataclass(frozen=True, kw_only=True)
class AirfoilRates(airfoils.Airfoils):
    """Three rates for everything that may happen among slices."""

    name: ClassVar[str] = "airfoil-rates"
    title: ClassVar[str] = "Peak learning rates on aerofoils, on validation data"
    paper_location: ClassVar[str] = "Nowhere: how the rates of the table of aerofoils were chosen"
    published: ClassVar[str] = "Nothing; Transolver trains at 1e-3."
    cpu_seeds: ClassVar[int] = 1
    cpu: ClassVar[Budget] = replace(airfoils.Airfoils.cpu, epochs=airfoils.Airfoils.cpu.epochs // 2)

    def runs(self) -> list[Trial]:
        return [
            self.cell(name, seed, rate=rate, case=f"{rate:g}")
            for seed, name, rate in product(self.seed_range(), self.models(), tried(self.scale))
        ]

    def judge(self, results: Results) -> Finding:
        return rates_judged(self.name, results, used=airfoils.RATES)


@dataclass(frozen=True, kw_only=True)
class SphereRates(swe.ShallowWaterExperiment):
    """Three rates for every model on the sphere, on both datasets."""

    name: ClassVar[str] = "sphere-rates"
    title: ClassVar[str] = "Peak learning rates on the sphere, on validation data"
    paper_location: ClassVar[str] = "Nowhere: how the rates of the table of shallow water were chosen"
    published: ClassVar[str] = "Nothing."
    cpu_seeds: ClassVar[int] = 1

    def runs(self) -> list[Trial]:
        return [
            replace(self.cell(name, case, seed, share=0.5, rate=rate), label=f"{name}; {case}", case=f"{rate:g}")
            for seed, case, name, rate in product(self.seed_range(), self.cases(), self.models(), tried(self.scale))
        ]

    def judge(self, results: Results) -> Finding:
        used = {f"{name}; {case}": swe.RATES[name] for name in self.models() for case in self.cases()}
        return rates_judged(self.name, results, used=used, metrics=("rel_l2_normalised",))


def tried(scale: Scale) -> tuple[float, ...]:
    """The rates to try; at scale `tiny` one."""
    return TRIED[:1] if scale == "tiny" else TRIED


def rates_judged(name: str, results: Results, *, used: Mapping[str, float], metrics: Sequence[str] = JUDGED) -> Finding:
    """The errors of every rate, and whether the rates in use are the best of those tried."""
    judged_by = metrics[0] if len(metrics) == 1 else f"geometric mean of {' and '.join(metrics)}"
    errors: dict[str, dict[str, list[float]]] = {}
    for trial in results.outcomes:
        error = lowest_error(results.folder / trial.name, metrics)
        errors.setdefault(trial.label, {}).setdefault(trial.case, []).append(error)
    rates = tuple(dict.fromkeys(trial.case for trial in results.outcomes))
    rows, verdicts = [], []
    for label, found in errors.items():
        means = {case: summarise(values).mean for case, values in found.items()}
        rows.append((label, *(shown(summarise(found[case])) if case in found else "" for case in rates)))
        best, rate = min(means, key=lambda case: means[case]), f"{used[label]:g}"
        told = ", ".join(f"{case}: {mean:.3g}" for case, mean in means.items())
        verdicts.append(fact(f"{label}: {rate}, the rate of the table, is the best of those tried", best == rate, told))
    sheet = ResultTable(f"{judged_by} on validation data, peak rate in columns", ("", *rates), tuple(rows))
    figures = {name: lambda: seed_dots(errors, ylabel=judged_by)}
    return Finding((sheet,), tuple(verdicts), figures, tuple(results.records()))


def lowest_error(folder: Path, metrics: Sequence[str]) -> float:
    """The lowest error of a run's epochs, the geometric mean of some metrics; infinite if it has none."""
    lines = [[line[name] for name in metrics] for line in read_log(folder) if set(metrics) <= set(line)]
    return min((geometric_mean(errors) for errors in lines), default=math.inf)
