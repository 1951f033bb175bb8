"""Training on true frames or on the model's own predictions, on the three tori: the 2D table."""

from dataclasses import dataclass, replace
from typing import ClassVar

from ssno.experiments.compared import Claim, compared
from ssno.experiments.experiment import Experiment, Finding
from ssno.experiments.paper import TEACHER_FORCING_2D
from ssno.experiments.results import Results
from ssno.experiments.trial import CPU_2D, TORUS_LI, TORUS_VIS, TORUS_VIS_FORCE, Benchmark, Budget, Trial, trial
from ssno.models.ssno import SSNOConfig

MODES = {"teacher forcing": 1.0, "unrolled": 0.0}
"""How a run is trained: the share of true frames it sees."""


@dataclass(frozen=True, kw_only=True)
class TeacherForcing2D(Experiment):
    """With and without teacher forcing in two dimensions."""

    name: ClassVar[str] = "teacher-forcing-2d"
    title: ClassVar[str] = "Teacher forcing, 2D"
    paper_location: ClassVar[str] = "Appendix, table of teacher forcing in 2D"
    published: ClassVar[str] = (
        "Teacher forcing better on all three: TorusLi 0.0345 against 0.0546, TorusVis 0.0218 against 0.0385, "
        "TorusVisForce 0.0263 against 0.0371."
    )
    cpu_seeds: ClassVar[int] = 3
    cpu: ClassVar[Budget] = replace(CPU_2D, train=48)
    problems: ClassVar[tuple[Benchmark, ...]] = (TORUS_LI, TORUS_VIS, TORUS_VIS_FORCE)

    def runs(self) -> list[Trial]:
        points = self.points(self.by_scale(cpu=32, tenth=64, paper=64))
        model = self.recommended(self.model(SSNOConfig, n_dims=2, **self.narrow()))
        return [
            trial(
                mode,
                problem,
                model,
                points=points,
                seed=seed,
                budget=self.budget,
                rollout=self.unrolling(forcing),
                **self.precision(),
            )
            for seed in self.seed_range()
            for problem in (self.problems[:1] if self.scale == "tiny" else self.problems)
            for mode, forcing in MODES.items()
        ]

    def judge(self, results: Results) -> Finding:
        claims = [Claim(problem.title, "teacher forcing", "unrolled", paired=True) for problem in self.problems]
        return compared(self.name, results, claims=claims, printed=TEACHER_FORCING_2D)
