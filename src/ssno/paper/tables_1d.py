"""The paper's tables and figures in 1D: Kuramoto-Sivashinsky (KS) and Burgers.

headline         SS-NO against F-FNO, U-Net, GKT and Factformer, all with a memory of four frames
resolution       the same, trained anew on every grid, 32 to 512 points (Burgers to 128)
ablation         state size and what of the modes is learned
unidirectional   eight one-way layers against four two-way ones, as many parameters
window           how many frames the memory should hold
teacher-forcing  training on true frames or on the model's own predictions
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from ssno.layers.modes import ModeOptions
from ssno.paper import reference
from ssno.paper.experiment import Experiment
from ssno.paper.results import Results, Verdict, below
from ssno.paper.table import (
    METRICS,
    NARROW,
    Claim,
    Table,
    TableColumn,
    TableRow,
    below_in,
    columns_of,
    curves,
    dots,
    lines,
)
from ssno.paper.trial import BURGERS, CPU, KS, Scale

MODELS: Mapping[str, str] = {"SS-NO": "ssno", "FFNO": "ffno", "U-Net": "unet", "GKT": "gkt", "Factformer": "factformer"}
PLAIN = "SS-NO, the paper's start and boundary"
RATES = {"SS-NO": 1e-2, "FFNO": 1e-2, "U-Net": 1e-2, "GKT": 3e-3, "Factformer": 1e-2}
"""Peak learning rates with the optimiser of each model in the recipe `fast`, by trials of equal time on validation
trajectories of KS 0.1 (docs/design/operator.md)."""
TRAJECTORIES = {"SS-NO": 2048, "FFNO": 2048, "U-Net": 1040, "GKT": 1680, "Factformer": 232}
"""At scale `cpu` every model trains for the same time and sees no trajectory twice: as many as take about as long as
SS-NO's 2048, which are all there are, by measured times of a training step at 64 points on one thread."""
PRINTED = dict(zip(reference.FORCED_PROBLEMS, reference.TEACHER_FORCING[64, True], strict=True))
"""The paper's errors of SS-NO at 64 points."""


def in_headline(at: Experiment, label: str, case: str, seed: int) -> bool:
    """At scale `tenth` SS-NO and FFNO, ours also with the paper's start; the first seed with all viscosities."""
    if at.scale != "tenth":
        return label != PLAIN and case in ("KS 0.1", "Burgers")
    wanted = ("SS-NO", "FFNO") if at.published_recipe else ("SS-NO", "FFNO", PLAIN)
    return label in wanted and (case in ("KS 0.1", "Burgers") or not seed)


HEADLINE_ROWS = {
    name: TableRow(model=model, train={"learning_rate": RATES[name]}, budget={"cpu": {"train": TRAJECTORIES[name]}})
    for name, model in MODELS.items()
} | {PLAIN: TableRow(train={"learning_rate": RATES["SS-NO"]}, periodic=None)}
HEADLINE_COLUMNS = columns_of(KS[0.1], BURGERS, KS[0.075], KS[0.125])
HEADLINE = Experiment(
    name="headline",
    title="SS-NO against the baselines, 64 points",
    paper_location="Text and figure of 1D results, one resolution",
    published=(
        "SS-NO lowest on every 1D problem; at 128 points below FFNO by 22, 42, 58 % (KS 0.075, 0.1, 0.125). "
        "SS-NO at 64 points: KS 0.1 0.0048, Burgers 0.0121."
    ),
    cpu=CPU,
    cpu_seeds=3,
    content=Table(
        rows=HEADLINE_ROWS,
        columns=HEADLINE_COLUMNS,
        chosen=in_headline,
        claims=tuple(
            below_in(case, "SS-NO", name) for case, name in product(HEADLINE_COLUMNS, HEADLINE_ROWS) if name != "SS-NO"
        ),
        published={("SS-NO", case): value for case, value in PRINTED.items()},
    ),
)

GRIDS = {**dict.fromkeys(KS.values(), (32, 64, 128, 256, 512)), BURGERS: (32, 64, 128)}
HEADS = {"SS-NO": 128, "FFNO": 64}
RESOLUTION = Experiment(
    name="resolution",
    title="Error against resolution",
    paper_location="Figure of resolutions",
    published=(
        "SS-NO lowest at every resolution, at its floor from 128 points on; SS-NO (KS 0.1): 0.0162, 0.0048, 0.0027 at "
        "32, 64, 128 points; 30 % below FFNO at 32, 42 % at 128."
    ),
    cpu=replace(CPU, train=512, tested=128),
    content=Table(
        rows={
            name: TableRow(
                model=model,
                narrow={"hidden_channels": 32, "head_channels": HEADS[name]} if name in HEADS else {},
                train={"learning_rate": RATES[name]},
            )
            for name, model in MODELS.items()
        },
        columns={
            f"{problem.title}, {points}": TableColumn(problem=problem, points=points)
            for problem, grids in GRIDS.items()
            for points in grids
        },
        chosen=lambda at, label, case, seed: (
            (at.scale == "paper" or label in HEADS) and (at.scale != "tiny" or case in ("KS 0.1, 32", "KS 0.1, 64"))
        ),
        claims=tuple(
            Claim(f"{case} points: SS-NO below FFNO", ("SS-NO", case), ("FFNO", case))
            for case in (f"{problem.title}, {points}" for problem, grids in GRIDS.items() for points in grids)
        ),
        published={
            ("SS-NO", f"{case}, {points}"): value
            for (points, forced), values in reference.TEACHER_FORCING.items()
            for case, value in zip(reference.FORCED_PROBLEMS, values, strict=True)
            if forced
        },
        table_per_problem=True,
        costs=False,
        figures=(lines(lambda t: (t.case.rsplit(",")[0], t.label, t.run.data.resolution), xlabel="points", log=True),),
    ),
)

SETTINGS = {
    "All": ModeOptions(),
    "Damping only": ModeOptions(frequency="fixed"),
    "Frequency only": ModeOptions(damping="absent"),
    "Fixed": ModeOptions(damping="fixed", frequency="fixed"),
}
STATES: Mapping[Scale, tuple[int, ...]] = {"tiny": (16, 4), "cpu": (64, 16), "tenth": (64, 16), "paper": (64, 32, 16)}
VISCOSITIES: Mapping[Scale, tuple[float, ...]] = {
    "tiny": (0.1,),
    "cpu": (0.075, 0.125),
    "tenth": (0.075, 0.125),
    "paper": reference.VISCOSITIES,
}
AT_TENTH = (
    ("All, 64", "KS 0.075"),
    ("Damping only, 64", "KS 0.075"),
    ("All, 64", "KS 0.125"),
    ("All, 16", "KS 0.075"),
    ("Frequency only, 16", "KS 0.075"),
    ("Fixed, 16", "KS 0.075"),
)
"""Those of the cells that claims are about."""
DAMPING_CLAIMS = {
    "learnable damping (All) below no damping (Frequency only)": ("All", "Frequency only"),
    "learnable damping (Damping only) below Fixed": ("Damping only", "Fixed"),
    "Frequency only below Fixed": ("Frequency only", "Fixed"),
    "everything learned (All) below Fixed": ("All", "Fixed"),
}


def in_ablation(at: Experiment, label: str, case: str, seed: int) -> bool:
    """The states and viscosities of the scale; at `tenth` some of their combinations."""
    if at.scale == "tenth":
        return (label, case) in AT_TENTH
    states = int(label.rpartition(" ")[2])
    return states in STATES[at.scale] and case in [KS[viscosity].title for viscosity in VISCOSITIES[at.scale]]


def where_damping_helps_most(at: Experiment, results: Results) -> Iterator[Verdict]:
    """Whether the gain from damping grows with fewer states and with lower viscosity; per seed."""

    def gain(states: int, viscosity: float) -> list[float]:
        case = KS[viscosity].title
        learned, without = ((f"{setting}, {states}", case) for setting in ("All", "Frequency only"))
        pairs = zip(*results.matched(learned, without, ABLATION_TABLE.metric(at)), strict=True)
        return [larger / smaller for smaller, larger in pairs]

    many, few = max(STATES[at.scale]), min(STATES[at.scale])
    low, high = min(VISCOSITIES[at.scale]), max(VISCOSITIES[at.scale])
    claim = "the gain (Frequency only / All) is"
    if gain(many, low) and gain(few, low):
        yield below(f"KS {low:g}: {claim} larger at {few} than at {many} states", gain(many, low), gain(few, low))
    if low < high and gain(few, high) and gain(few, low):
        yield below(f"{few} states: {claim} larger at nu = {low:g} than at {high:g}", gain(few, high), gain(few, low))


ABLATION_TABLE = Table(
    rows={
        f"{setting}, {states}": TableRow(fields={"d_state": states, "modes": modes}, narrow=NARROW, periodic=None)
        for states in (64, 32, 16, 4)
        for setting, modes in SETTINGS.items()
    },
    columns=columns_of(*KS.values()),
    points=(64, 64, 128),
    chosen=in_ablation,
    metrics={metric: METRICS[metric] for metric in ("rel_l2", "rel_l2_onestep", "rel_l2_unit_interval")},
    judged_by={"cpu": "rel_l2_onestep"},  # after so short a training rollouts at low viscosity are all far off
    claims=tuple(
        Claim(
            f"{one.title}, {states} states: {text}",
            (f"{smaller}, {states}", one.title),
            (f"{larger}, {states}", one.title),
            paired=True,
        )
        for one in KS.values()
        for states in (64, 32, 16, 4)
        for text, (smaller, larger) in DAMPING_CLAIMS.items()
    ),
    more_verdicts=where_damping_helps_most,
    published={
        (f"{setting}, {states}", KS[viscosity].title): value
        for (states, setting), values in reference.ABLATION.items()
        for viscosity, value in zip(reference.VISCOSITIES, values, strict=True)
    },
    costs=False,
)
ABLATION = Experiment(
    name="ablation",
    title="State sizes and learnable damping and frequency, KS",
    paper_location="Table of state sizes and settings",
    published=(
        "128 points: at nu = 0.075 All 0.0086 / 0.0115 with 64 / 16 states, Frequency only 0.0110 / 0.0198; damping "
        "helps most at 16 states and low viscosity."
    ),
    cpu=replace(CPU, train=1536),
    cpu_seeds=3,
    tenth_seeds=2,
    content=ABLATION_TABLE,
)

DIRECTIONS: Mapping[str, str] = {"two-way": "ssno", "one-way": "ssno-uni"}


def directions(problem: str, **fields: object) -> Table:
    """Two-way against one-way scans on one problem. Scans begin with zeros at the edge of the grid."""
    claims = tuple(below_in(problem, "two-way", "one-way", factor=factor) for factor in (1.0, 10.0))
    return Table(
        rows={label: TableRow(model=model, periodic=False) for label, model in DIRECTIONS.items()},
        claims=claims,
        published={(label, "Burgers"): reference.UNIDIRECTIONAL[model] for label, model in DIRECTIONS.items()},
        figures=(dots("rel_l2"), curves(lambda trial: f"seed {trial.seed}")),
        **fields,  # type: ignore[arg-type]
    )


UNIDIRECTIONAL = Experiment(
    name="unidirectional",
    title="One-way against two-way scans, Burgers",
    paper_location="Appendix, text on one-way scans",
    published="One-way stagnates at 0.075, two-way reaches 0.007: more than ten times lower.",
    cpu=replace(CPU, train=512, epochs=4),
    cpu_seeds=3,
    content=directions("Burgers", columns=columns_of(BURGERS), points=(64, 64, 128)),
)

WINDOWS: Mapping[Scale, tuple[int, ...]] = {
    "tiny": (0, 4),
    "cpu": (0, 1, 4, 8),
    "tenth": (0, 1, 4, 8),
    "paper": (0, 1, 2, 4, 8, 12, 16, 20),
}
FORCING = {"teacher forcing": 1.0, "unrolled": 0.0}
"""The share of true frames that a run is trained on."""
MEMORY_WINDOW = Experiment(
    name="window",
    title="Memory windows, KS 0.075",
    paper_location="Appendix, figures of memory windows",
    published=(
        "Two figures: K = 0 far worse, gains until about K = 8, flat beyond; teacher forcing less stable and higher."
    ),
    cpu=replace(CPU, train=256, epochs=4, precision="bf16"),
    cpu_seeds=3,
    content=Table(
        rows={f"K = {k}": TableRow(memory_window=k, narrow=NARROW) for k in WINDOWS["paper"]},
        columns={
            mode: TableColumn(problem=KS[0.075], forcing=FORCING[mode]) for mode in ("unrolled", "teacher forcing")
        },
        points=(64, 64, 128),
        protocol="memno",  # every run starts from one input frame and its memory grows to K: equal frames for all
        chosen=lambda at, label, case, seed: label in [f"K = {k}" for k in WINDOWS[at.scale]],
        metrics={name: f"25 frames from one input frame; {METRICS[name]}" for name in ("rel_l2", "rel_l2_onestep")},
        costs=False,
        claims=(
            *(
                Claim(f"{mode}: memory (K = 4) below none (K = 0)", ("K = 4", mode), ("K = 0", mode))
                for mode in ("unrolled", "teacher forcing")
            ),
            Claim(
                "unrolled: K = 20 still better than K = 8 (the paper says no)",
                ("K = 20", "unrolled"),
                ("K = 8", "unrolled"),
            ),
            *(
                Claim(f"{row}: unrolled below teacher forcing", (row, "unrolled"), (row, "teacher forcing"))
                for row in (f"K = {k}" for k in WINDOWS["paper"])
            ),
        ),
        figures=(
            lines(lambda t: (t.case, "SS-NO", t.run.model.memory.window), xlabel="memory window K"),
            curves(lambda trial: trial.case),
        ),
    ),
)

RESOLUTIONS: Mapping[Scale, tuple[int, ...]] = {"tiny": (32,), "cpu": (128, 32), "tenth": (128, 32)}


def forcing_claim(case: str, points: int) -> Claim:
    """The paper's: teacher forcing is better at 128 points and worse at 32."""
    forced, free = ((f"{points} points, {mode}", case) for mode in FORCING)
    if points == 128:
        return Claim(f"{case}, 128 points: teacher forcing below unrolled", forced, free)
    return Claim(f"{case}, {points} points: unrolled below teacher forcing", free, forced)


TEACHER_FORCING = Experiment(
    name="teacher-forcing",
    title="Teacher forcing, 1D",
    paper_location="Appendix, table of teacher forcing in 1D",
    published=(
        "KS 0.1: at 128 points teacher forcing 0.0027 against 0.0034, at 32 points 0.0162 against 0.0135: better on "
        "fine grids, worse on coarse ones."
    ),
    cpu=replace(CPU, train=256, epochs=4, precision="bf16"),
    cpu_seeds=3,
    content=Table(
        rows={
            f"{points} points, {mode}": TableRow(narrow=NARROW, points=points, forcing=forcing)
            for points in (128, 64, 32)
            for mode, forcing in FORCING.items()
        },
        columns=columns_of(*KS.values(), BURGERS),
        chosen=lambda at, label, case, seed: (
            (at.scale == "paper" or case == "KS 0.1" or (case == "Burgers" and at.scale != "tiny"))
            and int(label.split()[0]) in RESOLUTIONS.get(at.scale, (128, 64, 32))
        ),
        claims=tuple(forcing_claim(case, points) for case in reference.FORCED_PROBLEMS for points in (128, 32)),
        published={
            (f"{points} points, {'teacher forcing' if forced else 'unrolled'}", case): value
            for (points, forced), values in reference.TEACHER_FORCING.items()
            for case, value in zip(reference.FORCED_PROBLEMS, values, strict=True)
        },
        costs=False,
        figures=(lines(lambda t: (t.case, t.label.split(", ")[1], t.run.data.resolution), xlabel="points", log=True),),
    ),
)
