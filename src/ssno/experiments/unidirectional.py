"""One direction or two, on Burgers: as many parameters, eight one-way layers against four two-way ones."""

from dataclasses import dataclass, replace
from typing import ClassVar

from ssno.experiments.experiment import Conclusion, Experiment
from ssno.experiments.paper import UNIDIRECTIONAL
from ssno.experiments.results import Results
from ssno.experiments.trial import BURGERS, CPU, Budget, Trial, trial
from ssno.experiments.verdicts import below
from ssno.models.ssno import ScanConfig, SSNOConfig
from ssno.models.variants import SSNOUniConfig
from ssno.plots.summary import learning_curves, seed_dots

KINDS: dict[str, type[ScanConfig]] = {"two-way": SSNOConfig, "one-way": SSNOUniConfig}


@dataclass(frozen=True, kw_only=True)
class Unidirectional(Experiment):
    """Two-way against one-way scans on Burgers. Scans begin with zeros at the edge of the grid, as the paper's do."""

    name: ClassVar[str] = "unidirectional"
    title: ClassVar[str] = "One-way against two-way scans, Burgers"
    published: ClassVar[str] = "One-way stagnates at 0.075, two-way reaches 0.007: more than ten times lower."
    cpu_seeds: ClassVar[int] = 3
    cpu: ClassVar[Budget] = replace(CPU, train=512, epochs=4)

    def cells(self) -> list[Trial]:
        return [
            trial(
                label,
                BURGERS,
                self.model(kind) if self.published_recipe else self.model(kind).recommended(periodic=False),
                points=self.points(self.by_scale(cpu=64, paper=128)),
                seed=seed,
                budget=self.budget,
            )
            for seed in self.seed_range()
            for label, kind in KINDS.items()
        ]

    def judge(self, results: Results) -> Conclusion:
        case = BURGERS.title
        printed = {(label, case): UNIDIRECTIONAL[kind.name] for label, kind in KINDS.items()}
        sheets = tuple(
            results.sheet(f"{metric}, mean ± standard deviation over seeds", metric=metric, published=printed)
            for metric in ("rel_l2", "rel_l2_unit_interval", "rel_l2_onestep")
        )
        two, one = (results.values(label, case) for label in KINDS)
        curves = {
            f"seed {seed}": {label: results.find(label)[seed][1].curve for label in KINDS}
            for seed in range(len(results.find("two-way")))
        }
        return Conclusion(
            sheets,
            (
                below("two-way below one-way", two, one),
                below("two-way at least ten times below one-way", two, one, factor=10.0),
            ),
            {
                "unidirectional": lambda: seed_dots(
                    {case: {"two-way": two, "one-way": one}}, ylabel="rel_l2 of rollouts"
                ),
                "unidirectional-curves": lambda: learning_curves(curves, ylabel="validation rel_l2"),
            },
            tuple(results.records()),
        )
