"""A trial: one training run of an experiment, with its place in the tables. Its description is its identity.

Two experiments that need the same run share it, because its folder is named after everything that determines it:

    ks-0.1-64-ssno-3f2a9c01-seed0        dataset, points, model, digest of the description without its seed, seed
"""

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from ssno.data.defaults import defaults_of
from ssno.data.make.recipes import Preset
from ssno.data.options import DataOptions
from ssno.data.windows import Protocol, Window
from ssno.models.config import OperatorConfig
from ssno.runs.options import Recipe, recipe
from ssno.runs.run import Run

Scale = Literal["tiny", "cpu", "night", "paper"]
"""Seconds; minutes per run; a tenth of the published training; the published setting."""


@dataclass(frozen=True)
class Benchmark:
    """A dataset as the paper's tables name it."""

    title: str
    dataset: str
    viscosity: float | None = None
    n_dims: int = 1


KS = {viscosity: Benchmark(f"KS {viscosity:g}", "ks", viscosity) for viscosity in (0.075, 0.1, 0.125)}
BURGERS = Benchmark("Burgers", "burgers")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What one training run may cost: data, epochs, and on how many trajectories it is judged. None means all."""

    preset: Preset
    recipe: Recipe
    epochs: int
    train: int | None = None
    valid: int | None = None
    tested: int | None = None
    evaluations: int = 5
    """Validations during a run, evenly spread."""


PAPER = Budget(preset="paper", recipe="paper", epochs=500, evaluations=500)
NIGHT = Budget(preset="paper", recipe="fast", epochs=50, valid=64, tested=256, evaluations=50)
CPU = Budget(preset="paper", recipe="fast", epochs=1, valid=64, tested=256)
TINY = Budget(preset="tiny", recipe="fast", epochs=1)


@dataclass(frozen=True)
class Trial:
    """One run, which row (`label`) and column (`case`) of a table it belongs to, and how many trajectories test it."""

    label: str
    case: str
    run: Run[Any]
    tested: int | None = None

    @property
    def seed(self) -> int:
        return self.run.train.seed

    @cached_property
    def name(self) -> str:
        """The folder of the run."""
        described = self.run.to_json()
        train = {key: value for key, value in described["train"].items() if key != "seed"}
        digest = hashlib.sha256(json.dumps({**described, "train": train}, sort_keys=True).encode()).hexdigest()[:8]
        data = self.run.data
        words = [data.name, None if data.viscosity is None else f"{data.viscosity:g}", data.points]
        return "-".join([*(str(word) for word in words if word), self.run.model.name, digest, f"seed{self.seed}"])


def trial(
    label: str,
    problem: Benchmark,
    model: OperatorConfig,
    *,
    points: int,
    seed: int,
    budget: Budget,
    case: str | None = None,
    protocol: Protocol = "first_k",
    **changes: Any,
) -> Trial:
    """A trial of a model on a problem; `changes` override options of the recipe."""
    data = DataOptions(
        name=problem.dataset,
        viscosity=problem.viscosity,
        preset=budget.preset,
        points=points,
        train=budget.train,
        valid=budget.valid,
    )
    epochs = int(changes.pop("epochs", budget.epochs))
    options = recipe(budget.recipe, n_dims=problem.n_dims, dataset=problem.dataset, epochs=epochs, seed=seed, **changes)
    options = replace(options, evaluate_every=max(1, epochs // budget.evaluations))
    size = getattr(model, "frames_as_channels", 0) or getattr(model, "memory_window", 1)
    run = Run(
        data=data,
        model=model.for_grid([points] * problem.n_dims),
        train=options,
        window=Window(protocol=protocol, size=size),
        alignment=defaults_of(problem.dataset).alignment,
    )
    return Trial(label, case or problem.title, run, budget.tested)
