"""The page "Which model, which options": a decision table from our own measurements.

Every question names a stored experiment, a column of it, and the settings that answer it. The answer is computed: the
setting with the lowest mean error, or the default where the seeds do not decide that another one is better (the rule of
`ssno.evaluation.compare_seeds`) and its error is at most `NEAR` times the lowest. A question whose experiment changes
gives another answer on the page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docs.scripts.pages.markdown import GENERATED, over_seeds, page_link, table, write_page
from docs.scripts.pages.stored import CONTEST, Cell, cells, older_recipe, timings

from ssno.evaluation import compare_seeds


@dataclass(frozen=True)
class Question:
    """What a reader asks, and the rows of a stored experiment that answer it."""

    asked: str
    file: str
    case: str
    settings: Mapping[str, str]
    """Labels of the experiment, each with the option or model to choose."""
    metric: str = "rel_l2"


def _models(*names: str) -> dict[str, str]:
    usual = {"SS-NO": "ssno", "FFNO": "ffno", "U-Net": "unet", "GKT": "gkt", "Factformer": "factformer"}
    usual |= {"FNO2D": "fno", "SS-NO-FF": "ssno-ff", "SS-NO-VM": "ssno-vm", "FNO2D-R": "fno-r"}
    return {name: f"`{usual[name]}`" for name in names}


ONE_D = _models("SS-NO", "FFNO", "U-Net", "GKT", "Factformer")
TWO_D = _models("SS-NO", "FFNO", "FNO2D", "U-Net", "GKT", "Factformer")
GRIDS = _models("SS-NO", "FFNO")
LONG = {"SS-NO, 50 epochs": "`ssno`", "FFNO, 50 epochs": "`ffno`"}
UNROLLED = {"teacher forcing": "one step at a time (default)", "unrolled": "`--train.unroll.teacher-forcing 0`"}
BOUNDARIES = {
    "SS-NO, zero": "`--model.boundary zero`",
    "SS-NO, Neumann": "`--model.boundary neumann`",
    "SS-NO, Dirichlet": "`--model.boundary dirichlet`",
    "SS-NO, periodic-truncated": "`--model.boundary periodic-truncated`",
    "SS-NO, periodic": "`--model.boundary periodic`",
    "SS-NO, learned value": "`--model.boundary learned`",
    "FFNO": "`ffno`",
    "U-Net": "`unet`",
}
MODES = {
    "All, 64": "64 states, damping and frequency learned (default)",
    "Damping only, 64": "64 states, `--model.modes.frequency fixed`",
    "All, 16": "`--model.d-state 16`",
    "Frequency only, 16": "16 states, `--model.modes.damping fixed`",
    "Fixed, 16": "16 states, both fixed",
}
SPHERE = {
    "SFNO, latitude": "`sfno`",
    "SS-NO, great circles": "`--model ssno-sphere --model.scans great-circles`",
    "SS-NO, poles": "`--model ssno-sphere`",
    "SS-NO, rectangle": "`ssno`",
}
CLOUDS = {
    "attention": "`transolver`",
    "scan": "`ssno-slices`",
    "selective": "`--model ssno-slices --model.scan selective`",
    "none": "`--model transolver --model.mixing none`",
}
CONTEXT = {"viscosity as a plane": "planes (default)", "viscosity by film": "`--model.conditioning film`"}
CONTEXT |= {"viscosity not told": "leave it out"}
MEMORY = {f"K = {k}": f"`--model.memory.window {k}`" for k in (0, 1, 4, 8)}
DEFAULT = ("`ssno`", "`--model.boundary zero`", "`--model.memory.window 4`", "float32")
RECIPE = {
    "paper": "`--recipe paper`",
    "fast: ... frequencies and steps of the grid": "`--train.optimizer adamw --train.learning-rate 3e-3`",
}
PRECISION = {"float32": "float32", "bf16": "`--train.precision bf16`"}
NS, CPU = "reproduce/navier-stokes.json", "reproduce/"

NEAR = 1.25
"""Times the lowest mean error: a setting further away, of too few seeds to decide, is not called as good."""

PROBLEMS = {
    "torus-li": "Vortices on a torus, one force",
    "torus-vis": "Vortices, a viscosity and a force per trajectory",
    "torus-vis-force": "Vortices, a viscosity and a moving force",
    "ks-0.1": "A smooth chaotic field in 1D",
    "ks-0.075": "The same, less viscous",
    "burgers": "Shocks in 1D",
    "swe": "A field on the sphere",
    "swe-vortical": "Eddies on the sphere",
}
"""What the problems of the contest are, in the words of a reader."""


def of_contest() -> tuple[Question, ...]:
    """A question for every problem of the contest (benchmarks/contest.py) with stored trials of two models."""
    columns: dict[str, list[Cell]] = {}
    for cell in cells():
        if cell.file == CONTEST.name:
            columns.setdefault(cell.case, []).append(cell)
    return tuple(
        Question(PROBLEMS[case], CONTEST.name, case, {cell.model: f"`{cell.model}`" for cell in column}, metric)
        for case, column in columns.items()
        if len(column) > 1
        for metric in [next(iter(column[0].values))]
    )


EQUAL_TIME = "At equal processor time"
ABOUT_CONTEST = (
    "Narrow models (32 channels), half a minute (1D) or a minute of one core, every model with the best optimiser, "
    "rate and precision that were tried for it ([the contest](../evidence/contest.md)).\n\n"
)
WHICH_MODEL = {
    "Fields in 1D": (
        Question("A smooth chaotic field in 1D, minutes of training", f"{CPU}headline.json", "KS 0.1", ONE_D),
        Question("The same with hours of training", f"{CPU}tenth/budget.json", "KS 0.1", LONG),
        Question("Shocks in 1D, minutes of training", f"{CPU}headline.json", "Burgers", ONE_D),
        Question("Shocks in 1D, hours of training", f"{CPU}tenth/budget.json", "Burgers", LONG),
        Question("A fine 1D grid (512 points), minutes of training", f"{CPU}resolution.json", "KS 0.1, 512", GRIDS),
        Question("A medium 1D grid (128 points)", f"{CPU}resolution.json", "KS 0.1, 128", GRIDS),
    ),
    "Flows in 2D": (
        Question("Vortices on a torus, one force", NS, "TorusLi", TWO_D),
        Question("Vortices, a viscosity and a force per trajectory", NS, "TorusVis", TWO_D),
        Question("Compressible flow with shocks", f"{CPU}euler.json", "CE-RM", TWO_D),
        Question("Compressible flow with gravity", f"{CPU}euler.json", "GCE-RT", TWO_D),
    ),
    "Fields on the sphere": (
        Question("A field on the sphere", f"{CPU}swe.json", "public", SPHERE, "rel_l2_normalised"),
        Question("Eddies on the sphere", f"{CPU}swe.json", "vortical", SPHERE, "rel_l2_normalised"),
    ),
    "Clouds of points": (Question("A cloud of points around a body", f"{CPU}airfoils.json", "kt-foil", CLOUDS),),
    "How scans of several axes are combined": (
        Question(
            "One axis after the other, all at once, or one long line",
            f"{CPU}factorised.json",
            "TorusLi",
            _models("SS-NO", "SS-NO-FF", "SS-NO-VM", "FNO2D-R"),
        ),
    ),
}
WHICH_OPTIONS = (
    Question("Walls at which the field is zero", f"{CPU}walls.json", "Heat between cold walls", BOUNDARIES),
    Question("Walls along one axis, no flux", f"{CPU}walls.json", "Gray-Scott in a channel", BOUNDARIES),
    Question("How much memory, coarse KS", f"{CPU}window.json", "teacher forcing", MEMORY),
    Question("How much memory, coarse KS, unrolled training", f"{CPU}window.json", "unrolled", MEMORY),
    Question(
        "Unroll in training? A coarse 1D grid (32 points)",
        f"{CPU}teacher-forcing.json",
        "KS 0.1",
        {f"32 points, {key}": value for key, value in UNROLLED.items()},
    ),
    Question(
        "Unroll in training? A fine enough 1D grid (128 points)",
        f"{CPU}teacher-forcing.json",
        "KS 0.1",
        {f"128 points, {key}": value for key, value in UNROLLED.items()},
    ),
    Question("Unroll in training? Vortices", f"{CPU}teacher-forcing-2d.json", "TorusLi", UNROLLED),
    Question("States, and what is learned of the modes", f"{CPU}tenth/ablation.json", "KS 0.075", MODES),
    Question("How a parameter of the equation enters", f"{CPU}conditioning.json", "TorusVis", CONTEXT),
    Question("Our recipe or the paper's, at equal time", f"{CPU}recipe.json", "KS 0.1", RECIPE),
    Question("bf16 at equal steps", f"{CPU}precision.json", "KS 0.1", PRECISION),
    Question(
        "Forward scans only",
        f"{CPU}unidirectional.json",
        "Burgers",
        {"two-way": "`ssno`", "one-way": "`ssno-uni`"},
    ),
    Question(
        "Modes that follow the input, at equal time",
        f"{CPU}selective.json",
        "KS 0.1",
        {"SS-NO": "`ssno`", "SS-NO, selective": "`ssno-selective`"},
    ),
)


def answers(question: Question) -> list[tuple[str, Cell]]:
    """The settings of a question with their cells, lowest error first."""
    found = {cell.label: cell for cell in cells() if (cell.file, cell.case) == (question.file, question.case)}
    missing = set(question.settings) - set(found)
    assert not missing, f"{question.asked}: results/{question.file} has no {sorted(missing)}, but {sorted(found)}"
    known = [(option, found[label]) for label, option in question.settings.items()]
    return sorted(known, key=lambda pair: sum(pair[1].values[question.metric]) / len(pair[1].values[question.metric]))


@dataclass(frozen=True)
class Answer:
    """What to take, its error, what is said of the others, and whether the seeds decided."""

    question: Question
    take: str
    error: str
    others: str
    decided: bool

    def row(self) -> tuple[str, str, str, str, str]:
        """A line of the table."""
        where = f"`{self.question.file}`, {self.question.case}"
        return self.question.asked, self.take, self.error, self.others, where


def answer(question: Question) -> Answer:
    """The best setting if the seeds decide so; else the default, or the one with the lowest error, and its equals."""
    known = answers(question)

    def equals(to: Cell) -> list[tuple[str, Cell]]:
        values = to.values[question.metric]
        found = [(option, cell, cell.values[question.metric]) for option, cell in known if cell is not to]
        near = [one for one in found if sum(one[2]) / len(one[2]) <= NEAR * sum(values) / len(values)]
        return [(option, cell) for option, cell, other in near if compare_seeds(values, other).outcome == "open"]

    candidates = [known[0], *equals(known[0][1])]
    take, best = next((one for one in candidates if one[0] in DEFAULT or "(default)" in one[0]), candidates[0])
    shown, after = equals(best), next(one for one in known if one[0] != take)
    decided = compare_seeds(best.values[question.metric], after[1].values[question.metric]).outcome == "below"
    words = "as good" if shown else "worse" if decided else "next, not decided"
    others = "; ".join(f"{option} {over_seeds(cell.summary(question.metric))}" for option, cell in shown or [after])
    return Answer(question, take, over_seeds(best.summary(question.metric)), f"{words}: {others}", decided)


def in_short(found: Sequence[Answer]) -> str:
    """One sentence on a group of questions."""
    groups = {one.take: [other for other in found if other.take == one.take] for one in found}
    parts = []
    for option, cases in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        sure = sum(one.decided for one in cases)
        where = f", but for {', '.join(f'*{_lower(one.question.asked)}*' for one in cases)} " if parts else ""
        how = "decided" if sure == len(cases) else "not decided" if not sure else f"{sure} of {len(cases)} decided"
        parts.append(f"{where}{option} ({how} by the seeds)")
    return f"Take {''.join(parts)}."


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def latency() -> str:
    """The fastest model for one prediction and for a streamed forecast, by grid."""
    rows = []
    for task, words in (("forward", "one prediction from four frames"), ("rollout", "22 frames in a row")):
        for grid in ("32", "64", "128", "256", "512", "64x64"):
            known = [
                one
                for one in timings()
                if (one.task, one.grid, one.batch) == (task, grid, 1) and one.file.startswith("reproduce/")
            ]
            if len(known) > 1:
                first, second = sorted(known, key=lambda one: one.ms)[:2]
                rows.append((words, grid, f"`{first.model}`", f"{first.ms:.3g}", f"{second.ms:.3g} {second.model}"))
    return table(["task", "grid", "fastest", "ms", "next"], rows, right=3)


def choices_page(folder: Path) -> Path:
    """Write the page."""
    path = folder / "which.md"
    headings = ["your case", "take", "error", "others", "stored in results/"]
    models = ""
    for title, group in ({EQUAL_TIME: of_contest()} | WHICH_MODEL).items():
        found = list(map(answer, group))
        if found:
            about = ABOUT_CONTEST if title == EQUAL_TIME else f"{older_recipe(one.file for one in group)}\n"
            rows = (one.row() for one in found)
            models += f"### {title}\n\n{in_short(found)}\n\n{about}{table(headings, rows, right=5)}\n"
    options = f"{older_recipe(question.file for question in WHICH_OPTIONS)}\n"
    options += table(headings, (answer(question).row() for question in WHICH_OPTIONS), right=5)
    text = (
        "# Which model, which options\n\n"
        "Start with `ssno train YOUR_DATA`: the model `ssno` with the recipe `fast`, which sets boundaries and modes "
        "for your axes. The tables say where our own measurements point elsewhere.\n\n"
        "Each line is one stored experiment, errors with standard deviation and number of seeds. Where another "
        "setting is *as good* (the seeds do not tell them apart at 5 %, or one of them has a single seed), the default "
        "is named: no gain by changing it was measured. Otherwise the best setting is, and which one comes next. "
        "Budgets are those of a CPU: minutes per run (hours in `tenth/`). A longer training may change an order, so "
        "compare on your own data "
        f"({page_link('ssno compare', 'evaluation.md', near=path)}).\n\n"
        f"{GENERATED}\n"
        f"## Which model\n\n{models}"
        f"## Which options\n\n{options}\n"
        "## Which model is fastest\n\nMedians on two idle CPU cores, batch 1 (`results/reproduce/cost.json`, "
        f"`cost-2d.json`).\n\n{latency()}\n"
        "## What only some models can do\n\n"
        'Walls, point clouds, the sphere, other grids and export: the table "What it can do" on the page of each '
        "[model](models/index.md).\n"
    )
    return write_page(path, text)
