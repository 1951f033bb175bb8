"""A trial: one training run of an experiment, with its place in the tables. Its description is its identity.

Two experiments that need the same run share it, because its folder is named after everything that determines it:

    ks-0.1-64-ssno-3f2a9c01-seed0        dataset, points, model, digest of what differs from defaults, seed

An option that did not exist when a run was made has its default there, so it keeps its name; that a run of this name
has indeed this description is checked when it is looked up (`campaign.is_done`).
"""

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ssno.data.context import NONE
from ssno.data.datasets import DATASETS, Preset, split_name
from ssno.data.load import DataOptions
from ssno.data.splits import holdout
from ssno.data.windows import Protocol, Window, dataset_conventions
from ssno.models.config import OperatorConfig
from ssno.native.engine import Precision
from ssno.pde.geometry import Axis
from ssno.runs.options import Recipe, recipe
from ssno.runs.run import DataShape, Run, leaves, resolve_run

Scale = Literal["tiny", "cpu", "tenth", "paper"]
"""Seconds; minutes per run; a tenth of the published training; the published setting."""


@dataclass(frozen=True)
class Benchmark:
    """A dataset as the paper's tables name it."""

    title: str
    dataset: str
    viscosity: float | None = None
    n_dims: int = 1
    context: tuple[str, ...] = ()
    """Context fields, as `data.context` names them; () are all there are."""
    segment: int | None = None
    """Frames of the pieces into which long trajectories are cut for training."""

    def shape(self, points: int) -> DataShape:
        """Its fields on a grid with `points` points along every axis."""
        kind = DATASETS[split_name(self.dataset)[0]].problem
        context = () if self.context == NONE else self.context or kind.context_fields
        return DataShape(self.dataset, [Axis("x", 1.0, points)] * self.n_dims, kind.fields, context)

    def available(self, preset: Preset) -> dict[str, int]:
        """Trajectories to train on and to validate on; without a split for that, some of the first are held out."""
        size = DATASETS[split_name(self.dataset)[0]].sizes[preset]
        if size.valid:
            return {"train": size.train, "valid": size.valid}
        return {split: len(rows) for split, rows in holdout(size.train).items()}


KS = {viscosity: Benchmark(f"KS {viscosity:g}", "ks", viscosity) for viscosity in (0.075, 0.1, 0.125)}
KS_ATTRACTOR = Benchmark("KS attractor", "ks-attractor", 0.1, segment=26)
BURGERS = Benchmark("Burgers", "burgers")
TORUS_LI = Benchmark("TorusLi", "torus-li", n_dims=2)
TORUS_VIS = Benchmark("TorusVis", "torus-vis", n_dims=2)
TORUS_VIS_FORCE = Benchmark("TorusVisForce", "torus-vis-force", n_dims=2)
CE_RM = Benchmark("CE-RM", "ce-rm", n_dims=2)
GCE_RT = Benchmark("GCE-RT", "gce-rt", n_dims=2)
HEAT_BOX = Benchmark("Heat between cold walls", "heat-box", n_dims=2)
GRAY_SCOTT_CHANNEL = Benchmark("Gray-Scott in a channel", "gray-scott-channel", n_dims=2)


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
    precision: Precision = "float32"


PAPER = Budget(preset="paper", recipe="paper", epochs=500, evaluations=500)
TENTH = Budget(preset="paper", recipe="fast", epochs=50, valid=64, tested=256, evaluations=50, precision="bf16")
CPU = Budget(preset="paper", recipe="fast", epochs=1, valid=64, tested=256)
CPU_2D = Budget(preset="small", recipe="fast", epochs=4, train=96, valid=12, tested=32)
TINY = Budget(preset="tiny", recipe="fast", epochs=1)


@dataclass(frozen=True)
class Trial:
    """One run, which row (`label`) and column (`case`) of a table it belongs to, and how many trajectories test it."""

    label: str
    case: str
    run: Run[Any]
    tested: int | None = None
    long_steps: int = 0
    """Steps of long forecasts (`ssno.evaluation.horizon`); 0 for none."""

    @property
    def seed(self) -> int:
        return self.run.train.seed

    @cached_property
    def name(self) -> str:
        """The folder of the run."""
        usual = dict(leaves(Run(model=type(self.run.model)()).to_json()))
        chosen = {key: value for key, value in leaves(self.run.to_json()) if usual.get(key) != value}
        chosen.pop("train.seed", None)
        digest = hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:8]
        data = self.run.data
        words = [Path(data.name).stem, None if data.viscosity is None else f"{data.viscosity:g}", data.resolution]
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
    long_steps: int = 0,
    **changes: Any,
) -> Trial:
    """A trial of a model on a problem, with no more trajectories than there are; `changes` override the recipe."""
    there = problem.available(budget.preset)
    data = DataOptions(
        name=problem.dataset,
        viscosity=problem.viscosity,
        preset=budget.preset,
        resolution=points,
        context=problem.context,
        segment=problem.segment,
        train=None if budget.train is None else min(budget.train, there["train"]),
        valid=None if budget.valid is None else min(budget.valid, there["valid"]),
    )
    epochs = int(changes.pop("epochs", budget.epochs))
    changes = {"precision": budget.precision, **changes, "epochs": epochs, "seed": seed}
    suited = model.training
    options = recipe(budget.recipe, n_dims=problem.n_dims, dataset=problem.dataset, suited=suited, **changes)
    options = replace(options, evaluate_every=max(1, epochs // budget.evaluations))
    base = Run(
        data=data,
        model=model,
        train=options,
        window=Window(protocol=protocol),
        context_time=dataset_conventions(problem.dataset).context_time,
    )
    run = resolve_run({}, recipe=None, base=base, data=problem.shape(points))
    return Trial(label, case or problem.title, run, budget.tested, long_steps)
