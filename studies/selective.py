"""Modes that follow the input on grids: selective SS-NO beside plain SS-NO, in equal time and on equal trajectories.

The paper expects input-dependent modes (Mamba) to help where dynamics vary in space, and tried none, "due to memory
constraints". A selective scan has no kernel: states are carried from point to point. On 64 points a training step of
the narrow model takes 23 times as long as the linear one's (CPU time, one thread: 1140 ms against 50), so in equal time
it sees a twenty-third of the trajectories, none twice. The third row is plain SS-NO on as few.
"""

from dataclasses import replace

from ssno.paper.experiment import Experiment
from ssno.paper.table import NARROW, Table, TableRow, below_in, columns_of
from ssno.paper.trial import BURGERS, CPU, KS

LINEAR, INPUT_DEPENDENT, FEW = "SS-NO", "SS-NO, selective", "SS-NO, as few trajectories"
SMALL = {**NARROW, "d_state": 16}
SELECTIVE = Experiment(
    name="selective",
    title="Modes that follow the input, 64 points",
    paper_location="Nowhere: the outlook of the appendix on aerofoils",
    published="Nothing; it expects input-dependent modes (Mamba) to help where dynamics vary in space.",
    cpu=replace(CPU, valid=16, tested=64, evaluations=1),
    cpu_seeds=3,
    content=Table(
        rows={  # as many trajectories as take about as long, by measured times of a training step
            LINEAR: TableRow(narrow=SMALL, budget={"cpu": {"train": 2048}}),
            INPUT_DEPENDENT: TableRow(model="ssno-selective", narrow=SMALL, budget={"cpu": {"train": 88}}),
            FEW: TableRow(narrow=SMALL, budget={"cpu": {"train": 88}}),
        },
        columns=columns_of(KS[0.1], BURGERS),
        chosen=lambda at, label, case, seed: at.scale == "cpu" or label != FEW,
        claims=tuple(
            below_in(case, INPUT_DEPENDENT, other) for case in ("KS 0.1", "Burgers") for other in (LINEAR, FEW)
        ),
        notes=("Seconds are time on the clock of a shared machine; trajectories were chosen by CPU time.",),
    ),
)
