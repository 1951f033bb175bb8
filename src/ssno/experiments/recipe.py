"""How our own recipe came about: one change after the other, each run with the same wall time, then what did not help.

Not a published result: the paper's recipe is the first line. Every run sees as many trajectories as fit into the time
that our recipe takes for 2048 on one thread, measured beforehand; seconds are in the table.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from ssno.experiments.experiment import Experiment, Finding
from ssno.experiments.results import Results
from ssno.experiments.trial import BURGERS, CPU, KS, TINY, Problem, Spending, Trial, trial
from ssno.experiments.verdicts import Verdict, below
from ssno.layers.modes import ModeOptions
from ssno.models.ssno import SSNOConfig
from ssno.plots.summary import seed_dots
from ssno.training.options import Recipe
from ssno.training.unrolling import Rollout


@dataclass(frozen=True)
class Variant:
    """One line of the table: model settings, training options, and how many trajectories fit into the time."""

    label: str
    model: SSNOConfig
    trajectories: int
    options: dict[str, Any] = field(default_factory=dict)
    epochs: int = 1
    recipe: Recipe = "fast"
    checked: bool = False
    """Whether it is also run on Burgers."""


PLAIN = SSNOConfig()
ROUND = SSNOConfig(boundary="wrapped", coordinates=False)
OURS = PLAIN.suited(periodic=True)
WHOLE = 2048
"""Trajectories that our recipe sees, once each; others as many as take as long."""


def variants() -> list[Variant]:
    """First the way to our recipe, then steps aside from it. All are named after what they change."""
    large, small = {"batch_size": 16, "learning_rate": 3e-3}, {"batch_size": 4, "learning_rate": 3e-3}
    lin = ModeOptions(initialisation="lin", smallest_step=0.01, largest_step=0.05)
    shorter, local = (
        replace(OURS.modes, smallest_step=low, largest_step=high) for low, high in ((0.1, 1.0), (1.0, 3.0))
    )
    return [
        Variant("paper", PLAIN, 1430, {}, 2, "paper", checked=True),
        Variant("z-score, increments, one cycle to 3e-3, batch 16", PLAIN, 1250, large, 2, checked=True),
        Variant("... batch 4", PLAIN, WHOLE, small),
        Variant("... wrapped scans, no coordinates", ROUND, WHOLE, small, checked=True),
        Variant("... frequencies and steps of the grid", OURS, WHOLE, small, checked=True),
        Variant("fast: ... one cycle to 1e-2", OURS, WHOLE, checked=True),
        Variant("fast, frequencies pi n, steps 0.01 to 0.05", replace(ROUND, modes=lin), WHOLE),
        Variant("fast, steps 0.1 to 1", replace(OURS, modes=shorter), WHOLE),
        Variant("fast, steps 1 to 3", replace(OURS, modes=local), WHOLE, checked=True),
        Variant("fast, batch 8", OURS, 1165, {"batch_size": 8}, 2),
        Variant("fast, no noise", OURS, WHOLE, {"noise": 0.0}),
        Variant("fast, noise 1e-2", OURS, WHOLE, {"noise": 1e-2}),
        Variant("fast, averaged weights (EMA 0.99)", OURS, WHOLE, {"ema": 0.99}),
        Variant("fast, dynamics at 1e-3", OURS, WHOLE, {"ssm_learning_rate": 1e-3}),
        Variant("fast, frames instead of increments", OURS, WHOLE, {"increment": False}),
        Variant("fast, residual in each path", replace(OURS, residual="path"), WHOLE),
        Variant("fast, pushforward in the second half", OURS, 810, {"rollout": Rollout(pushforward=(0, 1))}, 2),
        Variant("fast, second half unrolled", OURS, 715, {"rollout": Rollout(forcing=(1.0, 0.0))}, 2),
    ]


@dataclass(frozen=True, kw_only=True)
class RecipeStudy(Experiment):
    """What gets the most accuracy out of a fixed time, on KS 0.1, checked on Burgers.

    There is no published setting; scale `paper` is `cpu` with five seeds.
    """

    name: ClassVar[str] = "recipe"
    title: ClassVar[str] = "From the paper's recipe to ours, equal wall time"
    published: ClassVar[str] = "Nothing; its recipe is AdamW, cosine from 1e-3, 500 epochs, [0, 1] units, noise 1e-3."
    cpu: ClassVar[Spending] = CPU

    def lines(self) -> list[Variant]:
        return variants()[:: 6 if self.scale == "tiny" else 1]

    def problems(self) -> tuple[Problem, ...]:
        return (KS[0.1],) if self.scale == "tiny" else (KS[0.1], BURGERS)

    def trials(self) -> list[Trial]:
        return [
            self.cell(variant, problem, seed)
            for seed in self.seed_range()
            for problem in self.problems()
            for variant in self.lines()
            if variant.checked or problem is KS[0.1]
        ]

    def cell(self, variant: Variant, problem: Problem, seed: int) -> Trial:
        """One run."""
        tiny: dict[str, Any] = {"hidden_channels": 16, "n_layers": 2, "d_state": 8, "head_channels": 32}
        model = replace(variant.model, **tiny) if self.scale == "tiny" else variant.model
        count = None if self.scale == "tiny" else variant.trajectories
        spending = replace(
            TINY if self.scale == "tiny" else CPU, recipe=variant.recipe, train=count, epochs=variant.epochs
        )
        return trial(
            variant.label, problem, model, points=self.points(64), seed=seed, spending=spending, **variant.options
        )

    def judge(self, results: Results) -> Finding:
        seconds = {trial.label: f"{outcome.seconds:.0f}" for trial, outcome in results.outcomes.items()}
        sheets = tuple(
            results.sheet(f"{metric} on test trajectories", metric=metric, extra={"seconds": seconds})
            for metric in ("rel_l2", "rel_l2_onestep", "spectral_error/high")
        )
        drawn = {
            problem.title: {
                variant.label: results.values(variant.label, problem.title)
                for variant in self.lines()
                if results.find(variant.label, problem.title)
            }
            for problem in self.problems()
        }
        return Finding(
            sheets,
            tuple(self.verdicts(results)),
            {"recipe": lambda: seed_dots(drawn, ylabel="rel_l2 of rollouts")},
            tuple(results.records()),
        )

    def verdicts(self, results: Results) -> Iterator[Verdict]:
        """At least twice as good as the paper's recipe in the same time."""
        paper, fast = self.lines()[0].label, next(v.label for v in self.lines() if v.label.startswith("fast"))
        for problem in self.problems():
            values = (results.values(label, problem.title) for label in (fast, paper))
            yield below(f"{problem.title}: our recipe at least 2 times below the paper's", *values, factor=2.0)
