"""The ablation: state size and what of the modes is learned, on Kuramoto-Sivashinsky at three viscosities.

At scale `cpu` the lowest and the highest viscosity, 16 and 64 states, half the width, 64 points, one pass over
1536 trajectories. The model starts and scans as the paper's does; only training is ours. After so short a training
rollouts at low viscosity are far from the truth whatever the setting, so verdicts at `cpu` rest on errors of one step.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from ssno.layers.modes import ModeOptions
from ssno.models.ssno import SSNOConfig
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.reference import ABLATION, VISCOSITIES
from ssno.paper.results import Results, Verdict, below
from ssno.paper.trial import CPU, KS, Budget, Trial, trial
from ssno.plots.summary import seed_dots

SETTINGS = {
    "All": ModeOptions(),
    "Damping only": ModeOptions(frequency="fixed"),
    "Frequency only": ModeOptions(damping="absent"),
    "Fixed": ModeOptions(damping="fixed", frequency="fixed"),
}


AT_TENTH = (
    (64, "All", 0.075),
    (64, "Damping only", 0.075),
    (64, "All", 0.125),
    (16, "All", 0.075),
    (16, "Frequency only", 0.075),
    (16, "Fixed", 0.075),
)
"""Those of the cells that claims are about: states, setting, viscosity."""


def row(states: int, setting: str) -> str:
    """How tables call a line."""
    return f"{setting}, {states}"


@dataclass(frozen=True, kw_only=True)
class Ablation(Experiment):
    """State size x what is learned, KS."""

    name: ClassVar[str] = "ablation"
    title: ClassVar[str] = "State sizes and learnable damping and frequency, KS"
    paper_location: ClassVar[str] = "Table of state sizes and settings"
    published: ClassVar[str] = (
        "128 points: at nu = 0.075 All 0.0086 / 0.0115 with 64 / 16 states, Frequency only 0.0110 / 0.0198; damping "
        "helps most at 16 states and low viscosity."
    )
    cpu_seeds: ClassVar[int] = 3
    tenth_seeds: ClassVar[int] = 2
    cpu: ClassVar[Budget] = replace(CPU, train=1536)

    def states(self) -> tuple[int, ...]:
        return self.by_scale(tiny=(16, 4), cpu=(64, 16), paper=(64, 32, 16))

    def viscosities(self) -> tuple[float, ...]:
        return self.by_scale(tiny=(0.1,), cpu=(0.075, 0.125), paper=VISCOSITIES)

    def metric(self) -> str:
        """The error that verdicts are about."""
        return "rel_l2_onestep" if self.scale == "cpu" else "rel_l2"

    def runs(self) -> list[Trial]:
        """All cells of a seed before the next seed."""
        return [
            self.cell(states, setting, viscosity, seed)
            for seed in self.seed_range()
            for viscosity in self.viscosities()
            for states in self.states()
            for setting in SETTINGS
            if self.scale != "tenth" or (states, setting, viscosity) in AT_TENTH
        ]

    def cell(self, states: int, setting: str, viscosity: float, seed: int) -> Trial:
        """One run."""
        return trial(
            row(states, setting),
            KS[viscosity],
            self.model(SSNOConfig, d_state=states, modes=SETTINGS[setting], **self.narrow()),
            points=self.points(self.by_scale(cpu=64, paper=128)),
            seed=seed,
            budget=self.budget,
        )

    def judge(self, results: Results) -> Finding:
        cases = [KS[viscosity].title for viscosity in self.viscosities()]
        printed = {
            (row(*key), KS[viscosity].title): value
            for key, values in ABLATION.items()
            for viscosity, value in zip(VISCOSITIES, values, strict=True)
        }
        sheets = tuple(
            results.sheet(
                f"{metric} on test trajectories, mean ± standard deviation over seeds", metric=metric, published=printed
            )
            for metric in ("rel_l2", "rel_l2_onestep", "rel_l2_unit_interval")
        )
        labels = [row(states, setting) for states in self.states() for setting in SETTINGS]
        drawn = {case: results.there({label: (label, case) for label in labels}, self.metric()) for case in cases}
        return Finding(
            sheets,
            tuple(self.verdicts(results)),
            {"ablation": lambda: seed_dots(drawn, ylabel=self.metric())},
            tuple(results.records()),
        )

    def verdicts(self, results: Results) -> Iterator[Verdict]:
        """The paper's observations, one by one."""
        pairs = {
            "learnable damping (All) below no damping (Frequency only)": ("All", "Frequency only"),
            "learnable damping (Damping only) below Fixed": ("Damping only", "Fixed"),
            "Frequency only below Fixed": ("Frequency only", "Fixed"),
            "everything learned (All) below Fixed": ("All", "Fixed"),
        }
        for viscosity in self.viscosities():
            case = KS[viscosity].title
            for states in self.states():
                for claim, settings in pairs.items():
                    cells = ((row(states, setting), case) for setting in settings)
                    text = f"{case}, {states} states: {claim}"
                    yield from results.below(text, *cells, metric=self.metric(), paired=True)
        yield from self.where_damping_helps_most(results)

    def where_damping_helps_most(self, results: Results) -> Iterator[Verdict]:
        """Whether the gain from damping grows with fewer states and with lower viscosity; per seed."""

        def gain(states: int, viscosity: float) -> list[float]:
            case = KS[viscosity].title
            learned, without = ((row(states, setting), case) for setting in ("All", "Frequency only"))
            pairs = zip(*results.matched(learned, without, self.metric()), strict=True)
            return [larger / smaller for smaller, larger in pairs]

        many, few = max(self.states()), min(self.states())
        low, high = min(self.viscosities()), max(self.viscosities())
        claim = "the gain (Frequency only / All) is"
        if gain(many, low) and gain(few, low):
            yield below(f"KS {low:g}: {claim} larger at {few} than at {many} states", gain(many, low), gain(few, low))
        if low < high and gain(few, high) and gain(few, low):
            yield below(
                f"{few} states: {claim} larger at nu = {low:g} than at {high:g}", gain(few, high), gain(few, low)
            )
