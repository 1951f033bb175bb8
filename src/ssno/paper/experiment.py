"""What every experiment is: a published result as a frozen description that lists its runs and judges their outcome."""

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar, get_args, overload

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
    """What an experiment found: tables, verdicts, pictures (drawn on request, so that a page may have them dark)."""

    sheets: tuple[ResultTable, ...]
    verdicts: tuple[Verdict, ...]
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
    records: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Experiment(abc.ABC):
    """One published result.

    `paper` is the published setting, `tenth` a tenth of its training with our recipe and the paper's side by side,
    `cpu` a fixed list of runs of at most 40 minutes on two cores, `tiny` seconds.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper_location: ClassVar[str]
    """Where in the paper it is."""
    published: ClassVar[str]
    """What the paper reports, in a sentence or two."""
    cpu_seeds: ClassVar[int] = 1
    tenth_seeds: ClassVar[int] = 3
    cpu: ClassVar[Budget | None] = None
    """What one run may cost at scale `cpu`; None if nothing is trained."""

    scale: Scale = "cpu"
    seeds: int | None = None
    """Seeds of every run; None for 1 at `tiny`, 5 at `paper`, and what fits in between."""
    recipe: Recipe | None = None
    """How runs are trained; None for the recipe of the scale, and for both at `tenth`."""

    def __post_init__(self) -> None:
        if self.scale not in get_args(Scale):
            raise ValueError(f"`scale` must be one of {', '.join(get_args(Scale))}, got {self.scale!r}.")
        if self.seeds is not None and self.seeds < 1:
            raise ValueError(f"`seeds` must be at least 1, got {self.seeds}.")

    @abc.abstractmethod
    def runs(self) -> list[Trial]:
        """The runs of one recipe, all of a seed before the next."""

    @abc.abstractmethod
    def judge(self, results: Results) -> Finding:
        """Tables, figures and verdicts from what the runs of one recipe gave."""

    def recipes(self) -> "list[Experiment]":
        """This experiment with each of its recipes."""
        both = self.scale == "tenth" and self.recipe is None and self.cpu is not None
        return [replace(self, recipe=name) for name in get_args(Recipe)] if both else [self]

    def trials(self) -> list[Trial]:
        """The runs, in the order in which they are done: whatever is interrupted, what is there can be compared."""
        return sorted((trial for part in self.recipes() for trial in part.runs()), key=lambda trial: trial.seed)

    def conclude(self, results: Results) -> Finding:
        """What was found; a scale that trains for seconds decides nothing that depends on training."""
        of = {part: results.only(part.runs()) for part in self.recipes()}
        if self.trials() and not any(found.outcomes for found in of.values()):
            raise ValueError(f"No run of `{self.name}` is done at scale {self.scale}, so there is nothing to judge.")
        begun = {part: found for part, found in of.items() if found.outcomes or not part.runs()}
        parts = {str(part.recipe): part.judge(found) for part, found in begun.items()}
        conclusion = next(iter(parts.values())) if len(parts) == 1 else together(parts)
        if self.scale != "tiny" or not results.outcomes:
            return conclusion
        why = "seconds of training decide nothing"
        verdicts = [v if v.answer == OPEN else undecided(v, why) for v in conclusion.verdicts]
        return replace(conclusion, verdicts=tuple(verdicts))

    @property
    def published_recipe(self) -> bool:
        """Whether runs are trained as the paper's are."""
        return self.recipe == "paper" or (self.recipe is None and self.scale == "paper")

    @property
    def budget(self) -> Budget:
        """What one run may cost at this scale."""
        assert self.cpu is not None, "an experiment without runs has no budget"
        budget = self.by_scale(tiny=TINY, cpu=self.cpu, tenth=TENTH, paper=PAPER)
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

    @overload
    def model(self, kind: str, **fields: Any) -> OperatorConfig: ...

    @overload
    def model(self, kind: type[Config], **fields: Any) -> Config: ...

    def model(self, kind: Any, **fields: Any) -> Any:
        """A model, by configuration or by name, in its published size, or the smallest at scale `tiny`."""
        if isinstance(kind, str):
            return model_config(f"{kind}:tiny" if self.scale == "tiny" else kind, **fields)
        return kind.tiny(**fields) if self.scale == "tiny" else kind(**fields)

    def with_modes(self, config: Config, problem: Benchmark, grid: Sequence[int]) -> Config:
        """All Fourier modes that a grid carries, as published (FNO on TorusLi: 8); tiny models keep theirs."""
        if not isinstance(config, FourierConfig) or self.scale == "tiny":
            return config
        few = (problem.dataset, config.name) == ("torus-li", "fno")
        return replace(config, n_modes=FNO_MODES_ON_TORUS_LI if few else most_modes(grid))

    def narrow(self) -> dict[str, Any]:
        """Half of SS-NO's width at scale `cpu`, for experiments of many runs."""
        return {"hidden_channels": 32, "head_channels": 128} if self.scale == "cpu" else {}

    def precision(self) -> dict[str, Any]:
        """bf16 at scale `cpu`, for models in 2D that gain by it: as exact (`ssno reproduce precision`), and faster."""
        return {"precision": "bf16"} if self.scale == "cpu" else {}

    def recommended(self, config: Config) -> Config:
        """A model with the settings of our recipe, unless the paper's is used; for periodic problems alone."""
        return config if self.published_recipe else config.recommended(periodic=True)

    def unrolling(self, forcing: float) -> Unrolling:
        """Teacher forcing (1) or unrolling (0); in short trainings ever further, or the first steps would diverge."""
        further = forcing == 0 and self.scale in ("cpu", "tenth")
        return Unrolling(teacher_forcing=(forcing,), frames=(2, 5, 10, 0) if further else (0,))

    def points(self, usual: int) -> int:
        """Grid points of a run: few at scale `tiny`."""
        return 32 if self.scale == "tiny" else usual


def together(parts: Mapping[str, Finding]) -> Finding:
    """The conclusions of several recipes as one; tables, claims and pictures say which they belong to."""
    return Finding(
        sheets=tuple(
            replace(s, title=f"recipe {name}: {s.title}") for name, part in parts.items() for s in part.sheets
        ),
        verdicts=tuple(
            replace(v, claim=f"recipe {name}: {v.claim}") for name, part in parts.items() for v in part.verdicts
        ),
        figures={f"{key}-{name}": draw for name, part in parts.items() for key, draw in part.figures.items()},
        records=tuple({"recipe": name, **record} for name, part in parts.items() for record in part.records),
        notes=tuple(dict.fromkeys(note for part in parts.values() for note in part.notes)),
    )
