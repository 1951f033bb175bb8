"""What memory is worth when viscosity and force are not given: SS-NO with K = 4 and K = 0, FFNO, on two tori.

Every run starts from one given frame and its memory grows to K (MemNO's protocol): all forecast the same frames.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from ssno.models.baselines.fno import FFNOConfig
from ssno.models.config import OperatorConfig
from ssno.models.ssno import SSNOConfig
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.reference import CONTEXT
from ssno.paper.results import Results
from ssno.paper.table import Claim, compared
from ssno.paper.trial import CPU_2D, TORUS_VIS, TORUS_VIS_FORCE, Benchmark, Budget, Trial, trial

GIVEN: dict[str, tuple[str, ...]] = {"all context": (), "only force": ("force",), "no context": ("none",)}
"""Known fields, as `data.context` names them; () are all there are."""
MODELS: dict[str, tuple[type[SSNOConfig] | type[FFNOConfig], int]] = {
    "SS-NO, K = 4": (SSNOConfig, 4),
    "SS-NO, K = 0": (SSNOConfig, 0),
    "FFNO, K = 4": (FFNOConfig, 4),
}


def case_of(problem: Benchmark, given: str) -> str:
    """How tables call a column."""
    return f"{problem.title}, {given}"


@dataclass(frozen=True, kw_only=True)
class Context(Experiment):
    """Errors with all context, with the force only, and with none."""

    name: ClassVar[str] = "context"
    title: ClassVar[str] = "Missing context and memory, TorusVis and TorusVisForce"
    paper_location: ClassVar[str] = "Appendix, figure on missing context"
    published: ClassVar[str] = (
        "Without context memory is needed (TorusVis: 0.0411 with it, 0.1156 without); the force alone suffices, with "
        "or without memory; without any context FFNO is better than SS-NO."
    )
    cpu_seeds: ClassVar[int] = 3
    cpu: ClassVar[Budget] = CPU_2D
    problems: ClassVar[tuple[Benchmark, ...]] = (TORUS_VIS, TORUS_VIS_FORCE)

    def models(self) -> tuple[str, ...]:
        return tuple(name for name in MODELS if self.scale == "paper" or name.startswith("SS-NO"))

    def problems_here(self) -> tuple[Benchmark, ...]:
        return self.problems[:1] if self.scale == "tiny" else self.problems

    def runs(self) -> list[Trial]:
        points = self.points(self.by_scale(cpu=32, tenth=64, paper=64))
        return [
            trial(
                name,
                replace(problem, context=fields),
                self.recommended(self.with_modes(self.config(name), problem, [points, points])),
                points=points,
                seed=seed,
                budget=self.budget,
                case=case_of(problem, given),
                protocol="memno",
                **self.precision(),
            )
            for seed in self.seed_range()
            for problem in self.problems_here()
            for given, fields in GIVEN.items()
            for name in self.models()
        ]

    def config(self, name: str) -> OperatorConfig:
        """A model with its window."""
        kind, window = MODELS[name]
        width = self.narrow() if kind is SSNOConfig else {}
        config = self.model(kind, n_dims=2, **width)
        return replace(config, memory=replace(config.memory, window=window))

    def judge(self, results: Results) -> Finding:
        with_memory, without = "SS-NO, K = 4", "SS-NO, K = 0"
        claims = []
        for problem in self.problems:
            none, force = case_of(problem, "no context"), case_of(problem, "only force")
            claims += [
                Claim(none, with_memory, without),
                Claim(none, with_memory, without, factor=2.0),
                Claim(force, with_memory, without),
                Claim(none, "FFNO, K = 4", with_memory),
            ]
        return compared(self.name, results, claims=claims, printed=CONTEXT)
