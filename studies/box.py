"""Three dimensions: SS-NO beside FFNO and U-Net on turbulence in a box of 32^3 points, in equal processor time.

A quarter of the published width (U-Net: half), so that a run takes minutes; trajectories are cut into pieces of eight
frames, of which the first is given. Peak learning rates are those of the two-dimensional tables
(`ssno.paper.tables_2d`), which were searched for there, not here. Beside the usual errors there are those of
the highest third of wavenumbers, where turbulence is lost first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ssno.paper.experiment import Experiment
from ssno.paper.table import METRICS, Table, TableRow, below_in, columns_of
from ssno.paper.tables_2d import MODELS, RATES
from ssno.paper.trial import Benchmark, Budget

BOX_TURBULENCE = Benchmark("Box turbulence", "box-turbulence", n_dims=3, segment=8)
CPU_3D = Budget(preset="small", recipe="fast", epochs=1, train=56, valid=4, tested=16, evaluations=1)


@dataclass(frozen=True)
class Contestant:
    """Width, and how many pieces it sees how often in the time of the others."""

    width: Mapping[str, Any]
    pieces: int
    epochs: int = 1


CONTESTANTS = {
    "SS-NO": Contestant({"hidden_channels": 16, "head_channels": 64}, 56),
    "FFNO": Contestant({"hidden_channels": 16, "head_channels": 32}, 39),
    "U-Net": Contestant({"hidden_channels": 16}, 39, epochs=2),
}
"""A step of one piece takes 0.28, 0.40 and 0.20 s per frame on one thread (AVX-512, in turns on a busy machine)."""


def row(name: str, one: Contestant) -> TableRow:
    """A model in the table."""
    return TableRow(
        model=MODELS[name],
        narrow=one.width,
        budget={"cpu": {"epochs": one.epochs, "train": one.pieces}},
        train={"learning_rate": RATES[name], "batch_size": 1},
    )


BOX = Experiment(
    name="box",
    title="Turbulence in a box, 3D",
    paper_location="Nowhere: our own study",
    published="Nothing; the paper has no data in three dimensions.",
    cpu=CPU_3D,
    cpu_seeds=3,
    tenth=replace(CPU_3D, epochs=20, evaluations=10),
    compare_recipes=False,
    content=Table(
        rows={name: row(name, one) for name, one in CONTESTANTS.items()},
        columns=columns_of(BOX_TURBULENCE),
        points=(32, 32, 64),
        tiny_points=16,
        protocol="memno",
        chosen=lambda at, label, case, seed: at.scale != "tiny" or label != "U-Net",
        metrics=METRICS | {"spectral_error/high": "rollouts, highest third of wavenumbers"},
        claims=tuple(below_in(BOX_TURBULENCE.title, "SS-NO", name) for name in CONTESTANTS if name != "SS-NO"),
        notes=("Seconds are time on the clock; pieces and epochs were chosen by processor time of a step.",),
    ),
)
