"""Which peak learning rate suits each model of the 2D table: equal trials for all, judged on validation trajectories.

Every model is trained on TorusLi with each rate for half of the time that it has in the table. `fluids.RATES` are the
best of each row.
"""

from dataclasses import dataclass
from typing import ClassVar

from ssno.evaluation.statistics import summarise
from ssno.experiments.experiment import Conclusion, Experiment
from ssno.experiments.fluids import EPOCHS, RATES, FluidTable
from ssno.experiments.results import Results
from ssno.experiments.trial import TORUS_LI, Benchmark, Trial
from ssno.experiments.verdicts import fact
from ssno.plots.summary import seed_dots

TRIED = (1e-3, 3e-3, 1e-2)
BEST = "rel_l2_best_valid"


@dataclass(frozen=True, kw_only=True)
class LearningRates(FluidTable):
    """Three rates for every model. There is no published setting: other scales train all alike."""

    name: ClassVar[str] = "learning-rates"
    title: ClassVar[str] = "Peak learning rates in 2D, on validation data"
    place: ClassVar[str] = "Nowhere: how the rates of the 2D table were chosen"
    published: ClassVar[str] = "Nothing; all of its models train at 1e-3."
    problems: ClassVar[tuple[Benchmark, ...]] = (TORUS_LI,)
    seeded: ClassVar[tuple[str, ...]] = ("SS-NO", "FFNO")

    def recipes(self) -> list[Experiment]:
        """Rates are what is compared: one list of runs at every scale."""
        return [self]

    def cells(self) -> list[Trial]:
        return [
            self.cell(name, TORUS_LI, seed, epochs=max(1, EPOCHS[name] // 2), rate=rate, case=f"{rate:g}")
            for seed in self.seed_range()
            for name in self.models()
            for rate in (TRIED[:1] if self.scale == "tiny" else TRIED)
        ]

    def judge(self, results: Results) -> Conclusion:
        labels = dict.fromkeys(trial.label for trial in results.outcomes)
        cases = dict.fromkeys(trial.case for trial in results.outcomes)
        drawn = {
            label: {case: results.values(label, case, BEST) for case in cases if results.find(label, case)}
            for label in labels
        }
        sheet = results.sheet(f"{BEST}: rollouts of validation trajectories, peak rate in columns", metric=BEST)
        figures = {self.name: lambda: seed_dots(drawn, ylabel=BEST)}
        verdicts = []
        for label, errors in drawn.items():
            means = {case: summarise(values).mean for case, values in errors.items()}
            best = min(means, key=lambda case: means[case])
            used = f"{RATES[label]:g}"
            told = ", ".join(f"{case}: {mean:.3g}" for case, mean in means.items())
            verdicts.append(
                fact(f"{label}: {used}, the rate of the table, is the best of those tried", best == used, told)
            )
        return Conclusion((sheet,), tuple(verdicts), figures, tuple(results.records()))
