"""One direction or two: as many parameters, eight one-way layers against four two-way ones, in 1D and 2D.

Scans begin with zeros at the edge of the grid, as the paper's do.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from ssno.paper.experiment import Experiment, Finding
from ssno.paper.reference import UNIDIRECTIONAL
from ssno.paper.results import Results
from ssno.paper.table import Claim, compared
from ssno.paper.trial import BURGERS, CPU, CPU_2D, TORUS_LI, Benchmark, Budget, Trial, trial
from ssno.plots.summary import learning_curves

KINDS = {"two-way": "ssno", "one-way": "ssno-uni"}


class Directions(Experiment):
    """Two-way against one-way scans on one problem."""

    problem: ClassVar[Benchmark]
    grids: ClassVar[tuple[int, int]]
    """Points at scale `cpu` (and `tenth`), and as published."""

    def runs(self) -> list[Trial]:
        few, many = self.grids
        models = {name: self.model(kind, n_dims=self.problem.n_dims) for name, kind in KINDS.items()}
        return [
            trial(
                label,
                self.problem,
                model if self.published_recipe else model.recommended(periodic=False),
                points=self.points(self.by_scale(cpu=few, paper=many)),
                seed=seed,
                budget=self.budget,
                **(self.precision() if self.problem.n_dims == 2 else {}),
            )
            for seed in self.seed_range()
            for label, model in models.items()
        ]

    def judge(self, results: Results) -> Finding:
        case = self.problem.title
        printed = {(label, BURGERS.title): UNIDIRECTIONAL[kind] for label, kind in KINDS.items()}
        claims = [Claim(case, "two-way", "one-way"), Claim(case, "two-way", "one-way", factor=10.0)]
        conclusion = compared(self.name, results, claims=claims, printed=printed)
        curves: dict[str, dict[str, tuple[tuple[int, float], ...]]] = {}
        for label in KINDS:
            for one, outcome in results.find(label):
                curves.setdefault(f"seed {one.seed}", {})[label] = outcome.curve
        drawn = {f"{self.name}-curves": lambda: learning_curves(curves, ylabel="validation rel_l2")}
        return replace(conclusion, figures={**conclusion.figures, **drawn})


@dataclass(frozen=True, kw_only=True)
class Unidirectional(Directions):
    """On Burgers, as the paper's text has it."""

    name: ClassVar[str] = "unidirectional"
    title: ClassVar[str] = "One-way against two-way scans, Burgers"
    paper_location: ClassVar[str] = "Appendix, text on one-way scans"
    published: ClassVar[str] = "One-way stagnates at 0.075, two-way reaches 0.007: more than ten times lower."
    cpu_seeds: ClassVar[int] = 3
    cpu: ClassVar[Budget] = replace(CPU, train=512, epochs=4)
    problem: ClassVar[Benchmark] = BURGERS
    grids: ClassVar[tuple[int, int]] = (64, 128)


@dataclass(frozen=True, kw_only=True)
class Unidirectional2D(Directions):
    """On TorusLi, as the caption of the paper's figure has it."""

    name: ClassVar[str] = "unidirectional-2d"
    title: ClassVar[str] = "One-way against two-way scans, TorusLi"
    paper_location: ClassVar[str] = "Appendix, figure on one-way scans"
    published: ClassVar[str] = "Curves without numbers: one-way stops improving early."
    cpu_seeds: ClassVar[int] = 3
    cpu: ClassVar[Budget] = replace(CPU_2D, train=64)
    problem: ClassVar[Benchmark] = TORUS_LI
    grids: ClassVar[tuple[int, int]] = (32, 64)
