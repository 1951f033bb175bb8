"""How to sweep two axes: SS-NO's one after the other, both in parallel (FF), the grid as one line (VM), or Fourier."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

from ssno.paper.experiment import Experiment, Finding
from ssno.paper.reference import FACTORISED
from ssno.paper.results import Results
from ssno.paper.table import Claim, compared
from ssno.paper.trial import CPU_2D, TORUS_LI, Budget, Trial, trial

MODELS = {"SS-NO": "ssno", "SS-NO-FF": "ssno-ff", "SS-NO-VM": "ssno-vm", "FNO2D-R": "fno-r"}
"""From the best to the worst, as printed."""
EPOCHS = {"SS-NO": 6, "SS-NO-FF": 4, "SS-NO-VM": 3, "FNO2D-R": 6}
"""At scale `cpu`, for equal time: a step of four trajectories takes 0.59, 0.91, 1.16 and 0.58 s of an idle core."""
RATE = 1e-2
"""Peak learning rate of our recipe: best for SS-NO and FNO on these data (`ssno reproduce learning-rates`)."""


@dataclass(frozen=True, kw_only=True)
class Factorised(Experiment):
    """Factorised variants on TorusLi."""

    name: ClassVar[str] = "factorised"
    title: ClassVar[str] = "Factorised variants, TorusLi"
    paper_location: ClassVar[str] = "Appendix, table of factorised variants"
    published: ClassVar[str] = "SS-NO 0.0345 < SS-NO-FF 0.0403 < SS-NO-VM 0.0495 < FNO2D-R 0.0718."
    cpu_seeds: ClassVar[int] = 3
    cpu: ClassVar[Budget] = CPU_2D

    def runs(self) -> list[Trial]:
        changes: dict[str, Any] = {} if self.published_recipe else {"learning_rate": RATE}
        points = self.points(self.by_scale(cpu=32, tenth=64, paper=64))
        configs = {name: self.model(kind, n_dims=2, **self.narrow()) for name, kind in MODELS.items()}
        return [
            trial(
                name,
                TORUS_LI,
                self.recommended(self.with_modes(config, TORUS_LI, [points, points])),
                points=points,
                seed=seed,
                budget=self.budget if self.scale != "cpu" else replace(self.budget, epochs=EPOCHS[name]),
                **changes,
            )
            for seed in self.seed_range()
            for name, config in configs.items()
        ]

    def judge(self, results: Results) -> Finding:
        claims = [Claim(TORUS_LI.title, better, worse) for better, worse in pairwise(MODELS)]
        printed = {(name, TORUS_LI.title): value for name, value in FACTORISED.items()}
        return compared(self.name, results, claims=claims, printed=printed)
