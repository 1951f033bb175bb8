"""Whether bfloat16 activations cost accuracy: the same runs in bf16 and in float32, step by step on the same batches.

Weights, optimiser, sampling of kernels, loss, validation and test are float32 in both (`ssno.native.engine`). Equal
seeds share first weights and batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from ssno.models.ssno import SSNOConfig
from ssno.native.engine import Precision
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Results, Verdict
from ssno.paper.table import compared
from ssno.paper.trial import BURGERS, CPU, KS, TORUS_LI, Benchmark, Budget, Trial, trial

FLOAT32: Precision = "float32"
BF16: Precision = "bf16"
WITHIN = 1.03
"""How much larger the error in bf16 may be."""
PLANE = 48
"""Trajectories of the plane at scale `cpu`."""


@dataclass(frozen=True, kw_only=True)
class PrecisionStudy(Experiment):
    """SS-NO in both precisions on KS 0.1, Burgers and one plane, with equal steps."""

    name: ClassVar[str] = "precision"
    title: ClassVar[str] = "bf16 against float32 at equal steps"
    paper_location: ClassVar[str] = "Nowhere: what our speed costs"
    published: ClassVar[str] = "Nothing; the paper trains in float32."
    cpu_seeds: ClassVar[int] = 3
    cpu: ClassVar[Budget] = replace(CPU, train=2048)
    problems: ClassVar[tuple[Benchmark, ...]] = (KS[0.1], BURGERS, TORUS_LI)

    def runs(self) -> list[Trial]:
        return [
            self.cell(precision, problem, seed)
            for seed in self.seed_range()
            for problem in self.problems
            for precision in (FLOAT32, BF16)
        ]

    def cell(self, precision: Precision, problem: Benchmark, seed: int) -> Trial:
        """One run."""
        plane = problem.n_dims == 2
        points = self.points(self.by_scale(cpu=32, tenth=64, paper=64) if plane else 64)
        budget = self.budget
        if plane and self.scale == "cpu":
            budget = replace(budget, preset="small", epochs=4, train=PLANE, valid=12, tested=32)
        model = self.recommended(self.model(SSNOConfig, n_dims=problem.n_dims, **(self.narrow() if plane else {})))
        return trial(precision, problem, model, points=points, seed=seed, budget=budget, precision=precision)

    def judge(self, results: Results) -> Finding:
        notes = ("Seconds are time on the clock of a shared machine and say nothing about speed: docs/performance.md.",)
        return replace(compared(self.name, results, claims=(), notes=notes), verdicts=tuple(self.verdicts(results)))

    def verdicts(self, results: Results) -> Iterator[Verdict]:
        """Whether the seeds tell bf16 from float32, and whether its error lies within three per cent."""
        for problem in self.problems:
            coarse, whole = ((label, problem.title) for label in (BF16, FLOAT32))
            yield from results.below(f"{problem.title}: float32 below bf16", whole, coarse, paired=True)
            claim = f"{problem.title}: bf16 within {WITHIN - 1:.0%} of float32"
            yield from results.below(claim, coarse, whole, factor=1 / WITHIN, paired=True)
