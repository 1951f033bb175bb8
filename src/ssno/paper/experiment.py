"""An experiment: one published result, described as data; what it runs and how it is judged is its `content`.

`ssno.paper.table.Table` is the content of all that compare errors in rows and columns. What measures something else
brings its own `runs` and `judge`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, get_args, runtime_checkable

from matplotlib.figure import Figure

from ssno.evaluation.tables import ResultTable
from ssno.layers.spectral import most_modes
from ssno.models.baselines.fno import FourierConfig
from ssno.models.config import OperatorConfig
from ssno.models.registry import model_config
from ssno.paper.reference import FNO_MODES_ON_TORUS_LI
from ssno.paper.results import OPEN, Results, Verdict, undecided
from ssno.paper.trial import PAPER, TENTH, TINY, Benchmark, Budget, Scale, Trial
from ssno.runs.options import Recipe, Unrolling

Config = TypeVar("Config", bound=OperatorConfig)
Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Finding:
    """What an experiment found: tables, verdicts, figures (functions, so that a page can draw them for dark mode)."""

    tables: tuple[ResultTable, ...]
    verdicts: tuple[Verdict, ...]
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
    records: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


@runtime_checkable
class Content(Protocol):
    """What an experiment runs, and what it makes of the results, at the scale and with the recipe of `at`."""

    def runs(self, at: "Experiment") -> list[Trial]:
        """The runs of one recipe, all of a seed before the next; none if nothing is trained."""

    def judge(self, at: "Experiment", results: Results) -> Finding:
        """Tables, verdicts and figures from the runs that are done."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One published result.

    Scales: `paper` is the published setting, `tenth` a tenth of its training with our recipe and the paper's side by
    side, `cpu` a fixed list of runs of at most 40 minutes on two cores, `tiny` seconds.
    """

    name: str
    title: str
    paper_location: str
    """Where in the paper it is."""
    published: str
    """What the paper reports, in a sentence or two."""
    content: Content
    cpu: Budget | None = None
    """What one run may cost at scale `cpu`; None if nothing is trained."""
    tenth: Budget = TENTH
    cpu_seeds: int = 1
    tenth_seeds: int = 3
    compare_recipes: bool = True
    """Whether scale `tenth` trains with both recipes."""

    scale: Scale = "cpu"
    seeds: int | None = None
    """Seeds of every run; None for 1 at `tiny`, 5 at `paper`, `cpu_seeds` and `tenth_seeds` in between."""
    recipe: Recipe | None = None
    """How runs are trained; None for the recipe of the scale, and for both at `tenth`."""

    def __post_init__(self) -> None:
        if self.scale not in get_args(Scale):
            raise ValueError(f"`scale` must be one of {', '.join(get_args(Scale))}, got {self.scale!r}.")
        if self.seeds is not None and self.seeds < 1:
            raise ValueError(f"`seeds` must be at least 1, got {self.seeds}.")

    def recipes(self) -> "list[Experiment]":
        """This experiment with each of its recipes."""
        both = self.compare_recipes and self.scale == "tenth" and self.recipe is None and self.cpu is not None
        return [replace(self, recipe=name) for name in get_args(Recipe)] if both else [self]

    def runs(self) -> list[Trial]:
        """The runs of one recipe."""
        return self.content.runs(self)

    def trials(self) -> list[Trial]:
        """All runs, seed by seed, so that whatever is done after an interruption can be compared."""
        return sorted((trial for part in self.recipes() for trial in part.runs()), key=lambda trial: trial.seed)

    def judge(self, results: Results) -> Finding:
        """What was found; at scale `tiny`, which trains for seconds, nothing that depends on training is decided."""
        parts = [(part, part.runs()) for part in self.recipes()]
        found = [(part, results.only(runs), not runs) for part, runs in parts]
        begun = [(part, some) for part, some, without_runs in found if some.outcomes or without_runs]
        if not begun:
            raise ValueError(f"No run of `{self.name}` is done at scale {self.scale}, so there is nothing to judge.")
        findings = {str(part.recipe): part.content.judge(part, some) for part, some in begun}
        finding = next(iter(findings.values())) if len(findings) == 1 else merge_recipes(findings)
        if self.scale != "tiny" or not results.outcomes:
            return finding
        why = "seconds of training decide nothing"
        verdicts = [v if v.answer == OPEN else undecided(v, why) for v in finding.verdicts]
        return replace(finding, verdicts=tuple(verdicts))

    @property
    def published_recipe(self) -> bool:
        """Whether runs are trained as the paper's are."""
        return self.recipe == "paper" or (self.recipe is None and self.scale == "paper")

    @property
    def budget(self) -> Budget:
        """What one run may cost at this scale."""
        assert self.cpu is not None, "an experiment without runs has no budget"
        budget = self.by_scale(tiny=TINY, cpu=self.cpu, tenth=self.tenth, paper=PAPER)
        if self.published_recipe:
            return replace(budget, recipe="paper", precision="float32")
        return budget if self.recipe is None else replace(budget, recipe=self.recipe)

    def seed_range(self) -> range:
        """The seeds of every run."""
        return range(self.seeds or self.by_scale(tiny=1, cpu=self.cpu_seeds, tenth=self.tenth_seeds, paper=5))

    def by_scale(
        self, *, cpu: Choice, paper: Choice, tiny: Choice | None = None, tenth: Choice | None = None
    ) -> Choice:
        """What belongs to this scale; `tiny` and `tenth` are as `cpu` unless given."""
        chosen = {"tiny": tiny, "tenth": tenth, "paper": paper}.get(self.scale)
        return cpu if chosen is None else chosen

    def model(self, name: str, **fields: Any) -> OperatorConfig:
        """A model in its published size, or the smallest at scale `tiny`."""
        return model_config(f"{name}:tiny" if self.scale == "tiny" else name, **fields)

    def with_modes(self, config: Config, problem: Benchmark, grid: Sequence[int]) -> Config:
        """All Fourier modes of a grid, as published (FNO on TorusLi: 8); smallest models keep their own number."""
        if not isinstance(config, FourierConfig) or self.scale == "tiny":
            return config
        few = (problem.dataset, config.name) == ("torus-li", "fno")
        return replace(config, n_modes=FNO_MODES_ON_TORUS_LI if few else most_modes(grid))

    def unrolling(self, forcing: float) -> Unrolling:
        """Teacher forcing (1) or unrolling (0); in short trainings ever further, or the first steps would diverge."""
        further = forcing == 0 and self.scale in ("cpu", "tenth")
        return Unrolling(teacher_forcing=(forcing,), frames=(2, 5, 10, 0) if further else (0,))


def merge_recipes(parts: Mapping[str, Finding]) -> Finding:
    """The findings of several recipes as one; tables, claims and figures are named after their recipe."""
    return Finding(
        tables=tuple(
            replace(one, title=f"recipe {name}: {one.title}") for name, part in parts.items() for one in part.tables
        ),
        verdicts=tuple(
            replace(one, claim=f"recipe {name}: {one.claim}") for name, part in parts.items() for one in part.verdicts
        ),
        figures={f"{key}-{name}": draw for name, part in parts.items() for key, draw in part.figures.items()},
        records=tuple({"recipe": name, **record} for name, part in parts.items() for record in part.records),
        notes=tuple(dict.fromkeys(note for part in parts.values() for note in part.notes)),
    )
