"""Do long forecasts live? 100 times the horizon of training on the attractor of KS, ten times elsewhere.

Forecasts start from 32 test trajectories. The solver goes as far on Burgers and the tori; on the attractor of KS its
frames are stationary. Counted are forecasts that diverge; of the others, standard deviation, spectrum and distribution
of values are compared with the solver's. On the sphere `ssno reproduce swe` goes ten times as far as training.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ssno.paper import tables_1d, tables_2d
from ssno.paper.experiment import Experiment
from ssno.paper.results import Results, Verdict, fact
from ssno.paper.table import Table, TableColumn, TableRow
from ssno.paper.trial import (
    BURGERS,
    CPU,
    CPU_2D,
    KS_ATTRACTOR,
    TORUS_LI,
    TORUS_VIS,
    TORUS_VIS_FORCE,
    Trial,
)

ON_LINES = (KS_ATTRACTOR, BURGERS)
ON_TORI = (TORUS_LI, TORUS_VIS, TORUS_VIS_FORCE)
STEPS: Mapping[str, int] = {KS_ATTRACTOR.title: 2200, BURGERS.title: 160} | {one.title: 160 for one in ON_TORI}
OURS = {"SS-NO-product": "ssno-product", "SS-NO-warp": "ssno-warp"}
METRICS = {
    "long/diverged": "of 32 long forecasts, how many diverge",
    "long/first_step": "the first step at which one diverges; 0 if none does",
    "long/valid_time": "mean time until the error of a frame exceeds 0.5, at most the data's length",
    "long/spread": "standard deviation of what does not diverge, over the solver's",
    "long/spectrum": "mean |ln(energy / the solver's)| over wavenumbers",
    "long/distribution": "mean distance of quantiles from the solver's, in standard deviations",
    "rel_l2": "within the horizon of training",
}
SPREAD = {KS_ATTRACTOR.title: 0.1} | {one.title: 0.225 for one in ON_TORI}
"""By how much the standard deviation may differ: 10 %; a factor of 1.5 in enstrophy on the tori."""


def rows_on(problem: str) -> Mapping[str, TableRow]:
    """The models of the paper's tables, trained as there, and our two."""
    if problem in {one.title for one in ON_LINES}:
        rows = {name: tables_1d.HEADLINE_ROWS[name] for name in tables_1d.MODELS}
    else:
        names = (*tables_2d.MODELS, tables_2d.CNEXT)
        rows = {name: tables_2d.fluid_row(name, tables_2d.EPOCHS[name]) for name in names}
    return {label: replace(rows["SS-NO"], model=model) for label, model in OURS.items()} | rows


TABLES = {
    problem: Table(rows=rows_on(problem), columns={problem: TableColumn(problem=benchmark)}, points=points)
    for points, benchmarks in (((64, 64, 64), ON_LINES), (tables_2d.GRID, ON_TORI))
    for benchmark in benchmarks
    for problem in (benchmark.title,)
}
"""One for each problem: 1D and 2D have other rows and grids."""


def run_of(at: Experiment, label: str, case: str, seed: int) -> Trial:
    """The run of a table, with long forecasts."""
    budget = CPU_2D if TABLES[case].columns[case].problem.n_dims > 1 else CPU
    if case == KS_ATTRACTOR.title:
        budget = replace(budget, preset="small", train=None)
    found = TABLES[case].trial(replace(at, cpu=budget), label, case, seed)
    return replace(found, long_steps=20 if at.scale == "tiny" else STEPS[case])


def in_study(at: Experiment, label: str, case: str, seed: int) -> bool:
    """Every model of a problem's table; at scale `tiny` two on one problem."""
    if at.scale == "tiny":
        return case == BURGERS.title and label in ("SS-NO", "FFNO")
    return label in TABLES[case].rows


def bounded(at: Experiment, results: Results) -> Iterator[Verdict]:
    """Whether no forecast of a row diverges, and whether the others have the solver's spread."""
    for label, case in dict.fromkeys((trial.label, trial.case) for trial in results.outcomes):
        found = [outcome.values for _, outcome in results.find(label, case)]
        if not all("long/diverged" in values for values in found):
            yield fact(f"{case}: no forecast of {label} diverges", False, "a training diverged")
            continue
        gone = [int(values["long/diverged"]) for values in found]
        told = ", ".join(f"{int(values['long/diverged'])} of {int(values['long/trajectories'])}" for values in found)
        yield fact(f"{case}: no forecast of {label} diverges in {STEPS[case]} steps", not any(gone), told)
        spreads = [values["long/spread"] for values in found]
        if case in SPREAD and not any(gone):
            within = all(abs(spread - 1) <= SPREAD[case] for spread in spreads)
            claim = f"{case}: the spread of {label} is within {SPREAD[case]:.3g} of the solver's"
            yield fact(claim, within, ", ".join(f"{spread:.3f}" for spread in spreads))


HORIZON = Experiment(
    name="horizon",
    title="Forecasts far beyond the horizon of training",
    paper_location="Nowhere: our own study",
    published="Nothing.",
    cpu=CPU,
    cpu_seeds=3,
    compare_recipes=False,
    content=Table(
        rows={label: row for table in TABLES.values() for label, row in table.rows.items()},
        columns={case: column for table in TABLES.values() for case, column in table.columns.items()},
        cell=run_of,
        chosen=in_study,
        metrics=METRICS,
        more_verdicts=bounded,
    ),
)
