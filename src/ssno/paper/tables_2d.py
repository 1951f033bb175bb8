"""The paper's tables in 2D: Navier-Stokes on three tori, compressible Euler with two gases.

navier-stokes, euler   SS-NO and five baselines; at scale `cpu` also CNextU-Net, which the paper does not have
factorised             two axes one after the other, in parallel (FF), the grid as one line (VM), or Fourier
unidirectional-2d      eight one-way layers against four two-way ones
teacher-forcing-2d     training on true frames or on the model's own predictions
context                what memory is worth when viscosity and force are not given
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

from ssno.data.datasets import DATASETS
from ssno.paper import reference
from ssno.paper.experiment import Experiment
from ssno.paper.table import METRICS, NARROW, Table, TableColumn, TableRow, below_in, columns_of
from ssno.paper.tables_1d import FORCING, directions
from ssno.paper.trial import CE_RM, CPU_2D, GCE_RT, TORUS_LI, TORUS_VIS, TORUS_VIS_FORCE, Benchmark

BF16 = replace(CPU_2D, precision="bf16")
"""At scale `cpu` SS-NO trains in bf16: as exact (`ssno reproduce precision`), and faster."""
GRID = (32, 64, 64)
MODELS: Mapping[str, str] = {
    "SS-NO": "ssno",
    "FFNO": "ffno",
    "FNO2D": "fno",
    "U-Net": "unet",
    "GKT": "gkt",
    "Factformer": "factformer",
}
CNEXT = "CNextU-Net"
"""The strongest baseline of The Well: a row without claims at scale `cpu`, left out where it has not been trained."""
HALF: Mapping[str, Mapping[str, Any]] = {
    "SS-NO": NARROW,
    "FFNO": {"hidden_channels": 32, "head_channels": 64},
    "FNO2D": {"hidden_channels": 32, "head_channels": 128},
    "U-Net": {"hidden_channels": 16},
    "GKT": {"hidden_channels": 16, "head_channels": 64},
    "Factformer": {"hidden_channels": 32, "head_channels": 64},
    CNEXT: {"hidden_channels": 21},
}
"""Half the width of each model, for scale `cpu`."""
GAINS_BY_BF16 = ("SS-NO", "U-Net", "Factformer")
"""Models that train in bf16 at scales `cpu` and `tenth`: 1.7, 1.9 and 2 times as fast; others at most 1.2 times."""
EPOCHS = {"SS-NO": 10, "FFNO": 5, "FNO2D": 4, "U-Net": 19, "GKT": 7, "Factformer": 2, CNEXT: 4}
"""At scale `cpu`, for equal time, about 80 seconds of one core. A step of four trajectories takes 0.35, 0.68, 0.83,
0.18, 0.53 and 2.6 s of an idle core (AMD EPYC with AVX512-BF16, one thread); CNextU-Net 1.9 times as long as GKT."""
FEW = {"Factformer": 64}
"""Trajectories at scale `cpu` of a model whose time does not suffice for all of them."""
RATES = {"SS-NO": 1e-2, "FFNO": 1e-2, "FNO2D": 1e-2, "U-Net": 1e-3, "GKT": 1e-2, "Factformer": 1e-3, CNEXT: 1e-3}
"""Peak learning rates at scales `cpu` and `tenth`, chosen by `ssno reproduce learning-rates`; CNextU-Net's is that of
U-Net, not searched."""


def fluid_row(name: str, epochs: int) -> TableRow:
    """A model of the 2D table, with its epochs at scale `cpu`."""
    return TableRow(
        model={**MODELS, CNEXT: "cnext-unet"}[name],
        narrow=HALF[name],
        budget={"cpu": {"epochs": epochs, "train": FEW.get(name, CPU_2D.train)}},
        train={"learning_rate": RATES[name]},
        precision=None if name in GAINS_BY_BF16 else "float32",
    )


def fluid_table(*problems: Benchmark, seeded: tuple[str, ...], metrics: Mapping[str, str] = METRICS) -> Table:
    """All models on some problems; at scale `cpu` only those in `seeded` get every seed, the others one."""

    def chosen(at: Experiment, label: str, case: str, seed: int) -> bool:
        if label == CNEXT:
            return at.scale == "cpu" and not seed
        if at.scale == "tiny":
            return label in seeded and case == problems[0].title
        if at.scale == "tenth":
            return label in ("SS-NO", "FFNO")
        return at.scale == "paper" or not seed or label in seeded

    columns = columns_of(*problems)
    return Table(
        rows={name: fluid_row(name, EPOCHS[name]) for name in (*MODELS, CNEXT)},
        columns=columns,
        points=GRID,
        chosen=chosen,
        claims=tuple(below_in(case, "SS-NO", name) for case, name in product(columns, MODELS) if name != "SS-NO"),
        metrics=metrics,
        published=reference.FLUIDS,
    )


NAVIER_STOKES = Experiment(
    name="navier-stokes",
    title="Navier-Stokes on the torus, 2D",
    paper_location="Table of 2D results: TorusLi, TorusVis, TorusVisForce",
    published=(
        "SS-NO lowest on TorusLi (0.0345, FFNO 0.0409), TorusVis (0.0218, FFNO 0.0231) and TorusVisForce (0.0263, FFNO "
        "0.0326), with the fewest parameters."
    ),
    cpu=BF16,
    cpu_seeds=3,
    content=fluid_table(TORUS_LI, TORUS_VIS, TORUS_VIS_FORCE, seeded=("SS-NO", "FFNO", "U-Net", "FNO2D")),
)
EULER = Experiment(
    name="euler",
    title="Compressible Euler, 2D",
    paper_location="Table of 2D results: CE-RM, GCE-RT",
    published=(
        "SS-NO lowest on CE-RM (0.0583, U-Net and Factformer 0.064, FFNO 0.0688) and GCE-RT (0.0138, FNO2D 0.0155)."
    ),
    cpu=BF16,
    cpu_seeds=3,
    content=fluid_table(
        CE_RM,
        GCE_RT,
        seeded=("SS-NO", "FFNO", "U-Net"),
        metrics=METRICS
        | {"rel_l2_anomaly": "rollouts, of what deviates from the climatology"}
        | {f"rel_l2/{name}": f"{name} alone" for name in DATASETS[CE_RM.dataset].problem.fields},
    ),
)

FACTORISED_MODELS: Mapping[str, tuple[str, int]] = {
    "SS-NO": ("ssno", 6),
    "SS-NO-FF": ("ssno-ff", 4),
    "SS-NO-VM": ("ssno-vm", 3),
    "FNO2D-R": ("fno-r", 6),
}
"""From the best to the worst, as printed. Epochs at scale `cpu` are for equal time: a step of four trajectories takes
0.59, 0.91, 1.16 and 0.58 s of an idle core."""
FACTORISED = Experiment(
    name="factorised",
    title="Factorised variants, TorusLi",
    paper_location="Appendix, table of factorised variants",
    published="SS-NO 0.0345 < SS-NO-FF 0.0403 < SS-NO-VM 0.0495 < FNO2D-R 0.0718.",
    cpu=CPU_2D,
    cpu_seeds=3,
    content=Table(
        rows={  # the rate is the best for SS-NO and FNO on these data (`ssno reproduce learning-rates`)
            name: TableRow(
                model=model, narrow=NARROW, budget={"cpu": {"epochs": epochs}}, train={"learning_rate": 1e-2}
            )
            for name, (model, epochs) in FACTORISED_MODELS.items()
        },
        columns=columns_of(TORUS_LI),
        points=GRID,
        claims=tuple(below_in("TorusLi", better, worse) for better, worse in pairwise(FACTORISED_MODELS)),
        published={(name, "TorusLi"): value for name, value in reference.FACTORISED.items()},
    ),
)

UNIDIRECTIONAL_2D = Experiment(
    name="unidirectional-2d",
    title="One-way against two-way scans, TorusLi",
    paper_location="Appendix, figure on one-way scans",
    published="Curves without numbers: one-way stops improving early.",
    cpu=replace(BF16, train=64),
    cpu_seeds=3,
    content=directions("TorusLi", columns=columns_of(TORUS_LI), points=(32, 32, 64)),
)

TORI = columns_of(TORUS_LI, TORUS_VIS, TORUS_VIS_FORCE)
TEACHER_FORCING_2D = Experiment(
    name="teacher-forcing-2d",
    title="Teacher forcing, 2D",
    paper_location="Appendix, table of teacher forcing in 2D",
    published=(
        "Teacher forcing better on all three: TorusLi 0.0345 against 0.0546, TorusVis 0.0218 against 0.0385, "
        "TorusVisForce 0.0263 against 0.0371."
    ),
    cpu=replace(BF16, train=48),
    cpu_seeds=3,
    content=Table(
        rows={mode: TableRow(narrow=NARROW, forcing=forcing) for mode, forcing in FORCING.items()},
        columns=TORI,
        points=GRID,
        chosen=lambda at, label, case, seed: at.scale != "tiny" or case == "TorusLi",
        claims=tuple(below_in(case, "teacher forcing", "unrolled", paired=True) for case in TORI),
        published=reference.TEACHER_FORCING_2D,
    ),
)

CONTEXTS: Mapping[str, tuple[str, ...]] = {"all context": (), "only force": ("force",), "no context": ("none",)}
"""Context fields, as `data.context` names them; () are all there are."""
WITH_MEMORY, WITHOUT_MEMORY, FOURIER = "SS-NO, K = 4", "SS-NO, K = 0", "FFNO, K = 4"
CONTEXT = Experiment(
    name="context",
    title="Missing context and memory, TorusVis and TorusVisForce",
    paper_location="Appendix, figure on missing context",
    published=(
        "Without context memory is needed (TorusVis: 0.0411 with it, 0.1156 without); the force alone suffices, with "
        "or without memory; without any context FFNO is better than SS-NO."
    ),
    cpu=BF16,
    cpu_seeds=3,
    content=Table(
        rows={
            WITH_MEMORY: TableRow(memory_window=4, narrow=NARROW),
            WITHOUT_MEMORY: TableRow(memory_window=0, narrow=NARROW),
            FOURIER: TableRow(model="ffno", memory_window=4),
        },
        columns={
            f"{problem.title}, {given}": TableColumn(problem=replace(problem, context=fields))
            for problem, (given, fields) in product((TORUS_VIS, TORUS_VIS_FORCE), CONTEXTS.items())
        },
        points=GRID,
        protocol="memno",  # every run starts from one input frame and its memory grows to K: equal frames for all
        chosen=lambda at, label, case, seed: (
            (at.scale == "paper" or label != FOURIER) and (at.scale != "tiny" or case.startswith("TorusVis,"))
        ),
        claims=tuple(
            claim
            for problem in ("TorusVis", "TorusVisForce")
            for claim in (
                below_in(f"{problem}, no context", WITH_MEMORY, WITHOUT_MEMORY),
                below_in(f"{problem}, no context", WITH_MEMORY, WITHOUT_MEMORY, factor=2.0),
                below_in(f"{problem}, only force", WITH_MEMORY, WITHOUT_MEMORY),
                below_in(f"{problem}, no context", FOURIER, WITH_MEMORY),
            )
        ),
        published=reference.CONTEXT,
    ),
)
