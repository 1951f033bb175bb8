"""Modes that follow the input on grids: selective SS-NO beside plain SS-NO, in equal time and on equal trajectories.

The paper expects input-dependent modes (Mamba) to help where dynamics vary in space, and tried none, "due to memory
constraints". A selective scan has no kernel: states are carried from point to point. On 64 points a training step of
the narrow model takes 23 times as long as the linear one's (CPU time, one thread: 1140 ms against 50), so in equal time
it sees a twenty-third of the trajectories, none twice. The third row is plain SS-NO on as few.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Results
from ssno.paper.table import Claim, compared
from ssno.paper.trial import BURGERS, CPU, KS, Budget, Trial, trial

LINEAR, SELECTIVE, FEW = "SS-NO", "SS-NO, selective", "SS-NO, as few trajectories"
KINDS = {LINEAR: "ssno", SELECTIVE: "ssno-selective", FEW: "ssno"}
TRAJECTORIES = {LINEAR: 2048, SELECTIVE: 88, FEW: 88}
"""At scale `cpu`: as many as take about as long, by measured times of a training step."""
PROBLEMS = (KS[0.1], BURGERS)


@dataclass(frozen=True, kw_only=True)
class Selective(Experiment):
    """Plain and selective SS-NO on KS 0.1 and Burgers. There is no published setting: other scales train both alike."""

    name: ClassVar[str] = "selective"
    title: ClassVar[str] = "Modes that follow the input, 64 points"
    paper_location: ClassVar[str] = "Nowhere: the outlook of the appendix on aerofoils"
    published: ClassVar[str] = "Nothing; it expects input-dependent modes (Mamba) to help where dynamics vary in space."
    cpu_seeds: ClassVar[int] = 3
    cpu: ClassVar[Budget] = replace(CPU, valid=16, tested=64, evaluations=1)

    def runs(self) -> list[Trial]:
        labels = tuple(KINDS) if self.scale == "cpu" else (LINEAR, SELECTIVE)
        return [self.cell(label, index, seed) for seed in self.seed_range() for index in (0, 1) for label in labels]

    def cell(self, label: str, problem: int, seed: int) -> Trial:
        """One run."""
        states = {"d_state": 16} if self.scale == "cpu" else {}
        model = self.model(KINDS[label], **self.narrow(), **states)
        budget = replace(self.budget, train=TRAJECTORIES[label]) if self.scale == "cpu" else self.budget
        return trial(
            label, PROBLEMS[problem], self.recommended(model), points=self.points(64), seed=seed, budget=budget
        )

    def judge(self, results: Results) -> Finding:
        claims = [Claim(one.title, SELECTIVE, other) for one in PROBLEMS for other in (LINEAR, FEW)]
        notes = ("Seconds are time on the clock of a shared machine; trajectories were chosen by CPU time.",)
        return compared(self.name, results, claims=claims, notes=notes)
