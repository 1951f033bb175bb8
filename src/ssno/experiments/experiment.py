"""What every experiment is: a published result as a frozen description that lists its runs and judges their outcome."""

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar, get_args

from matplotlib.figure import Figure

from ssno.evaluation.tables import Sheet
from ssno.experiments.printed import FNO_MODES_ON_TORUS_LI
from ssno.experiments.results import Results
from ssno.experiments.trial import PAPER, TINY, Problem, Scale, Spending, Trial
from ssno.experiments.verdicts import OPEN, Verdict, undecided
from ssno.layers.spectral import most_modes
from ssno.models.baselines.fourier import FourierConfig
from ssno.models.config import OperatorConfig
from ssno.runs.unrolling import Rollout

Config = TypeVar("Config", bound=OperatorConfig)


@dataclass(frozen=True)
class Finding:
    """What an experiment found: tables, verdicts, pictures (drawn on request, so that a page may have them dark)."""

    sheets: tuple[Sheet, ...]
    verdicts: tuple[Verdict, ...]
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
    records: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Experiment(abc.ABC):
    """One published result.

    `paper` is the published setting, `cpu` a fixed list of runs of at most 25 minutes on two cores, `tiny` seconds.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    published: ClassVar[str]
    """What the paper reports, in a sentence or two."""
    cpu_seeds: ClassVar[int] = 1
    cpu: ClassVar[Spending | None] = None
    """What one run may cost at scale `cpu`; None if nothing is trained."""

    scale: Scale = "cpu"
    seeds: int | None = None
    """Seeds of every run; None for 1 at `tiny`, 5 at `paper`, and what fits at `cpu`."""

    def __post_init__(self) -> None:
        if self.scale not in get_args(Scale):
            raise ValueError(f"`scale` must be one of {', '.join(get_args(Scale))}, got {self.scale!r}.")
        if self.seeds is not None and self.seeds < 1:
            raise ValueError(f"`seeds` must be at least 1, got {self.seeds}.")

    @abc.abstractmethod
    def trials(self) -> list[Trial]:
        """The runs, in the order in which they are done: whatever is interrupted, what is there can be compared."""

    @abc.abstractmethod
    def judge(self, results: Results) -> Finding:
        """Tables, figures and verdicts from what the runs gave."""

    def conclude(self, results: Results) -> Finding:
        """The finding; a scale that trains for seconds decides nothing that depends on training."""
        finding = self.judge(results)
        if self.scale != "tiny" or not results.outcomes:
            return finding
        why = "seconds of training decide nothing"
        verdicts = [v if v.answer == OPEN else undecided(v, why) for v in finding.verdicts]
        return Finding(finding.sheets, tuple(verdicts), finding.figures, finding.records, finding.notes)

    @property
    def spending(self) -> Spending:
        """What one run may cost at this scale."""
        assert self.cpu is not None, "an experiment without runs has no spending"
        return {"tiny": TINY, "cpu": self.cpu, "paper": PAPER}[self.scale]

    def seed_range(self) -> range:
        """The seeds of every run."""
        return range(self.seeds or {"tiny": 1, "cpu": self.cpu_seeds, "paper": 5}[self.scale])

    def model(self, kind: type[Config], **fields: Any) -> Config:
        """A model in its published size, or the smallest at scale `tiny`."""
        return kind.tiny(**fields) if self.scale == "tiny" else kind(**fields)  # type: ignore[return-value]

    def with_modes(self, config: Config, problem: Problem, grid: Sequence[int]) -> Config:
        """All Fourier modes that a grid carries, as published (FNO on TorusLi: 8); tiny models keep theirs."""
        if not isinstance(config, FourierConfig) or self.scale == "tiny":
            return config
        few = (problem.dataset, config.name) == ("torus-li", "fno")
        return replace(config, n_modes=FNO_MODES_ON_TORUS_LI if few else most_modes(grid))

    def narrow(self) -> dict[str, Any]:
        """Half of SS-NO's width at scale `cpu`, for experiments of many runs."""
        return {"hidden_channels": 32, "head_channels": 128} if self.scale == "cpu" else {}

    def suited(self, config: Config) -> Config:
        """A model with the settings of our recipe, except at scale `paper`; all 1D problems are periodic."""
        return config if self.scale == "paper" else config.suited(periodic=True)

    def unrolling(self, forcing: float) -> Rollout:
        """Teacher forcing (1) or unrolling (0); at scale `cpu` ever further, or the first steps would diverge."""
        further = forcing == 0 and self.scale == "cpu"
        return Rollout(forcing=(forcing,), frames=(2, 5, 10, 0) if further else (0,))

    def points(self, usual: int) -> int:
        """Grid points of a run: few at scale `tiny`."""
        return 32 if self.scale == "tiny" else usual
