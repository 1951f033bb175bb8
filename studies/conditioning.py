"""How a number that belongs to a trajectory should enter: the viscosity of TorusVis as a plane, by film, or not at all.

The force is a field and is given to all. Film takes the viscosity out of the input: it scales and shifts the features
after every block (`ssno.layers.pointwise`). All train with the same batches for the same number of steps.
"""

from dataclasses import replace

from ssno.models.ssno import SSNOConfig
from ssno.paper.experiment import Experiment
from ssno.paper.table import Table, TableRow, below_in, columns_of
from ssno.paper.trial import CPU_2D, TORUS_VIS, Trial, trial

PLANE, FILM, ABSENT = "viscosity as a plane", "viscosity by film", "viscosity not told"
WAYS = {
    PLANE: (("force", "viscosity"), "planes"),
    FILM: (("force", "viscosity"), "film"),
    ABSENT: (("force",), "planes"),
}
"""Context fields, as `data.context` names them, and how numbers among them enter."""


def run_of(at: Experiment, way: str, case: str, seed: int) -> Trial:
    """The smallest SS-NO at every scale."""
    fields, conditioning = WAYS[way]
    problem = replace(TORUS_VIS, context=fields)
    model = SSNOConfig.tiny(n_dims=problem.n_dims, conditioning=conditioning).recommended(periodic=True)
    return trial(way, problem, model, points=32, seed=seed, budget=at.budget)


CONDITIONING = Experiment(
    name="conditioning",
    title="A parameter as a plane, by film, or not told, TorusVis",
    paper_location="Nowhere: our own study",
    published="Nothing; all context enters as planes.",
    cpu=replace(CPU_2D, epochs=12),
    cpu_seeds=3,
    compare_recipes=False,
    content=Table(
        rows=dict.fromkeys(WAYS, TableRow()),
        columns=columns_of(TORUS_VIS),
        cell=run_of,
        claims=tuple(below_in("TorusVis", *pair) for pair in ((FILM, PLANE), (PLANE, ABSENT), (FILM, ABSENT))),
    ),
)
