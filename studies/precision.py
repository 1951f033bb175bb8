"""Whether bfloat16 activations cost accuracy: the same runs in bf16 and in float32, step by step on the same batches.

Weights, optimiser, sampling of kernels, loss, validation and test are float32 in both (`ssno.native.engine`). Equal
seeds share first weights and batches.
"""

from dataclasses import replace

from ssno.paper.experiment import Experiment
from ssno.paper.table import NARROW, Claim, Table, TableRow, columns_of
from ssno.paper.trial import BURGERS, CPU, KS, TORUS_LI, Trial, trial

COLUMNS = columns_of(KS[0.1], BURGERS, TORUS_LI)
WITHIN = 1.03
"""How much larger the error in bf16 may be."""


def run_of(at: Experiment, precision: str, case: str, seed: int) -> Trial:
    """SS-NO; in 2D at scale `cpu` half the width and fewer trajectories, several times."""
    problem, budget = COLUMNS[case].problem, at.budget
    plane, cpu = problem.n_dims == 2, at.scale == "cpu"
    if plane and cpu:
        budget = replace(budget, preset="small", epochs=4, train=48, valid=12, tested=32)
    points = {"tiny": 32, "cpu": 32}.get(at.scale, 64) if plane else at.by_scale(tiny=32, cpu=64, paper=64)
    model = at.model("ssno", n_dims=problem.n_dims, **(NARROW if plane and cpu else {}))
    if not at.published_recipe:
        model = model.recommended(periodic=True)
    return trial(precision, problem, model, points=points, seed=seed, budget=budget, precision=precision)


PRECISION = Experiment(
    name="precision",
    title="bf16 against float32 at equal steps",
    paper_location="Nowhere: what our speed costs",
    published="Nothing; the paper trains in float32.",
    cpu=replace(CPU, train=2048),
    cpu_seeds=3,
    content=Table(
        rows=dict.fromkeys(("float32", "bf16"), TableRow()),
        columns=COLUMNS,
        cell=run_of,
        claims=tuple(
            claim
            for case in COLUMNS
            for claim in (
                Claim(f"{case}: float32 below bf16", ("float32", case), ("bf16", case), paired=True),
                Claim(
                    f"{case}: bf16 within {WITHIN - 1:.0%} of float32",
                    ("bf16", case),
                    ("float32", case),
                    factor=1 / WITHIN,
                    paired=True,
                ),
            )
        ),
        notes=("Seconds are wall time of a shared machine and say nothing about speed: docs/design/performance.md.",),
    ),
)
