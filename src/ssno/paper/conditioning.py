"""How a number that belongs to a trajectory should enter: the viscosity of TorusVis as a plane, by film, or not at all.

The force is a field and is given to all. Film takes the viscosity out of the input: it scales and shifts the features
after every block (`ssno.layers.pointwise`). All train with the same batches for the same number of steps.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from ssno.models.ssno import Conditioning, SSNOConfig
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Results
from ssno.paper.table import Claim, compared
from ssno.paper.trial import CPU_2D, TORUS_VIS, Budget, Trial, trial

PLANE, FILM, UNTOLD = "viscosity as a plane", "viscosity by film", "viscosity not told"
WAYS: dict[str, tuple[tuple[str, ...], Conditioning]] = {
    PLANE: (("force", "viscosity"), "planes"),
    FILM: (("force", "viscosity"), "film"),
    UNTOLD: (("force",), "planes"),
}
"""Known fields, as `data.context` names them, and how numbers among them enter."""


@dataclass(frozen=True, kw_only=True)
class ConditioningStudy(Experiment):
    """Three ways to treat the viscosity, with the smallest SS-NO at every scale."""

    name: ClassVar[str] = "conditioning"
    title: ClassVar[str] = "A parameter as a plane, by film, or not told, TorusVis"
    paper_location: ClassVar[str] = "Nowhere: our own study"
    published: ClassVar[str] = "Nothing; all context enters as planes."
    cpu_seeds: ClassVar[int] = 3
    cpu: ClassVar[Budget] = replace(CPU_2D, epochs=12)

    def recipes(self) -> list[Experiment]:
        """Nothing is compared with a published training: one list of runs at every scale."""
        return [self]

    def runs(self) -> list[Trial]:
        return [self.cell(way, seed) for seed in self.seed_range() for way in WAYS]

    def cell(self, way: str, seed: int) -> Trial:
        """One run."""
        fields, conditioning = WAYS[way]
        problem = replace(TORUS_VIS, context=fields)
        model = SSNOConfig.tiny(n_dims=problem.n_dims, conditioning=conditioning).recommended(periodic=True)
        return trial(way, problem, model, points=self.points(32), seed=seed, budget=self.budget)

    def judge(self, results: Results) -> Finding:
        pairs = ((FILM, PLANE), (PLANE, UNTOLD), (FILM, UNTOLD))
        claims = [Claim(TORUS_VIS.title, better, worse) for better, worse in pairs]
        return compared(self.name, results, claims=claims)
