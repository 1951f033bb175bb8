"""Training on true frames or on the model's own predictions, over resolutions: the 1D table."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from ssno.models.ssno import SSNOConfig
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.reference import FORCED_PROBLEMS, TEACHER_FORCING, TEACHER_FORCING_2D
from ssno.paper.results import Results, Verdict
from ssno.paper.table import Claim, compared
from ssno.paper.trial import (
    BURGERS,
    CPU,
    CPU_2D,
    KS,
    TORUS_LI,
    TORUS_VIS,
    TORUS_VIS_FORCE,
    Benchmark,
    Budget,
    Trial,
    trial,
)
from ssno.plots.summary import seed_lines

MODES = {"teacher forcing": True, "unrolled": False}


def row(mode: str, points: int) -> str:
    """How tables call a line."""
    return f"{points} points, {mode}"


@dataclass(frozen=True, kw_only=True)
class TeacherForcing(Experiment):
    """With and without teacher forcing, at 32 to 128 points."""

    name: ClassVar[str] = "teacher-forcing"
    title: ClassVar[str] = "Teacher forcing, 1D"
    paper_location: ClassVar[str] = "Appendix, table of teacher forcing in 1D"
    published: ClassVar[str] = (
        "KS 0.1: at 128 points teacher forcing 0.0027 against 0.0034, at 32 points 0.0162 against 0.0135: better on "
        "fine grids, worse on coarse ones."
    )
    cpu_seeds: ClassVar[int] = 3
    cpu: ClassVar[Budget] = replace(CPU, train=256, epochs=4, precision="bf16")

    def problems(self) -> tuple[Benchmark, ...]:
        return self.by_scale(tiny=(KS[0.1],), cpu=(KS[0.1], BURGERS), paper=(*KS.values(), BURGERS))

    def resolutions(self) -> tuple[int, ...]:
        return self.by_scale(tiny=(32,), cpu=(128, 32), paper=(128, 64, 32))

    def runs(self) -> list[Trial]:
        return [
            trial(
                row(mode, points),
                problem,
                self.recommended(self.model(SSNOConfig, **self.narrow())),
                points=points,
                seed=seed,
                budget=self.budget,
                unroll=self.unrolling(float(forced)),
            )
            for seed in self.seed_range()
            for points in self.resolutions()
            for problem in self.problems()
            for mode, forced in MODES.items()
        ]

    def judge(self, results: Results) -> Finding:
        printed = {
            (row(mode, points), title): value
            for mode, forced in MODES.items()
            for points in self.resolutions()
            for title, value in zip(FORCED_PROBLEMS, TEACHER_FORCING.get((points, forced), ()), strict=False)
        }
        sheets = tuple(
            results.sheet(f"{metric} on test trajectories", metric=metric, published=printed)
            for metric in ("rel_l2", "rel_l2_unit_interval", "rel_l2_onestep")
        )
        resolutions = sorted(self.resolutions())
        lines = {
            problem.title: {
                mode: results.there({float(n): (row(mode, n), problem.title) for n in resolutions}) for mode in MODES
            }
            for problem in self.problems()
        }
        ticks = [float(points) for points in resolutions]
        return Finding(
            sheets,
            tuple(self.verdicts(results)),
            {
                "teacher-forcing": lambda: seed_lines(
                    lines, xlabel="points", ylabel="rel_l2 of rollouts", xscale="log", ticks=ticks
                )
            },
            tuple(results.records()),
        )

    def verdicts(self, results: Results) -> Iterator[Verdict]:
        """Better at 128 points, worse at 32."""
        for problem in self.problems():
            for points in self.resolutions():
                forced, free = ((row(mode, points), problem.title) for mode in MODES)
                where = f"{problem.title}, {points} points"
                if points == 128:
                    yield from results.below(f"{where}: teacher forcing below unrolled", forced, free)
                elif points == 32:
                    yield from results.below(f"{where}: unrolled below teacher forcing", free, forced)


# Training on true frames or on the model's own predictions, on the three tori: the 2D table.

MODES_2D = {"teacher forcing": 1.0, "unrolled": 0.0}
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
                unroll=self.unrolling(forcing),
                **self.precision(),
            )
            for seed in self.seed_range()
            for problem in (self.problems[:1] if self.scale == "tiny" else self.problems)
            for mode, forcing in MODES_2D.items()
        ]

    def judge(self, results: Results) -> Finding:
        claims = [Claim(problem.title, "teacher forcing", "unrolled", paired=True) for problem in self.problems]
        return compared(self.name, results, claims=claims, printed=TEACHER_FORCING_2D)
