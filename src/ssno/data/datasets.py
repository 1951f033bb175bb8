"""Named datasets and their sizes: from `("ks", "paper")` to a problem and counts of trajectories.

A dataset is a problem; a preset says how large. Options of the problem given by name override the preset. All sizes
side by side: docs/manual/data.md. `register_problem` adds a dataset; those below are registered with it.

The paper selects Burgers, TorusLi and Euler models on the test trajectories. Here test trajectories choose nothing:
where there is no validation split (-), loading holds out the last tenth of the training trajectories for it.
The small fluids are solved on the 64^2 points they are stored on, which is minutes instead of hours and not the
published accuracy: at t = 20 a torus-li trajectory is 14 % away from the one solved on 256^2 points, and the standard
deviation of CE-RM's density is 8 % too small (docs/design/fluids.md has all of it).
"""

import dataclasses
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from ssno.base import unknown_name
from ssno.base.checks import require_seed
from ssno.data.manifest import MOST_SHARDS, Shard, into_shards, most_per_shard
from ssno.data.splits import SPLITS, Split
from ssno.data.storage import Layout
from ssno.data.windows import CONVENTIONS, Defaults
from ssno.pde.problems.box import BoxTurbulence
from ssno.pde.problems.burgers import Burgers
from ssno.pde.problems.gas import RayleighTaylor, RichtmyerMeshkov
from ssno.pde.problems.gray_scott import GrayScott
from ssno.pde.problems.heat import AdvectionDiffusion, Heat, HeatBox
from ssno.pde.problems.kt_foil import KTFoil
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky, KuramotoSivashinskyAttractor
from ssno.pde.problems.problem import Problem
from ssno.pde.problems.shallow_water import ShallowWater, VorticalShallowWater
from ssno.pde.problems.torus import TorusLi, TorusVis, TorusVisForce

# What a generated dataset is: a problem, how many trajectories per split, a seed, and how they fall into shards.
#
# Two plans with the same `description()` mean the same bytes, whoever makes them: that is what a folder remembers and
# refuses to mix with another. How the work is shared out (workers, batches, machines) is no part of it.


@dataclass(frozen=True)
class Plan:
    """A dataset to generate."""

    problem: Problem
    counts: Mapping[Split, int]
    seed: int = 0
    per_shard: int | None = None

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.counts) - set(SPLITS)):
            raise ValueError(f"Splits are {', '.join(SPLITS)}; got {', '.join(unknown)}.")
        for split, count in self.counts.items():
            if count < 0:
                raise ValueError(f"The number of `{split}` trajectories must be 0 or more, got {count}.")
        if not any(self.counts.values()):
            raise ValueError("There is nothing to generate: `train`, `valid` and `test` are all 0.")
        require_seed(self.seed)
        if self.per_shard is None:
            object.__setattr__(self, "per_shard", default_per_shard(self.problem))
        if self.per_shard < 1:  # type: ignore[operator]
            raise ValueError(f"`per_shard` must be at least 1 trajectory per file, got {self.per_shard}.")
        if len(self.shards()) and max(shard.number for shard in self.shards()) >= MOST_SHARDS:
            raise ValueError(
                f"`per_shard={self.per_shard}` makes more than {MOST_SHARDS} files in a split; choose at least "
                f"{-(-max(self.counts.values()) // MOST_SHARDS)}."
            )

    def shards(self) -> list[Shard]:
        """All files of the dataset, split by split."""
        assert self.per_shard is not None
        return into_shards(self.counts, self.per_shard)

    def part(self, number: int, of: int) -> list[Shard]:
        """The files that job `number` (1, 2, ...) of `of` jobs makes: every `of`-th, so that all take about as long."""
        if not 1 <= number <= of:
            raise ValueError(f"`shard` must be i/n with 1 <= i <= n, as 2/4, got {number}/{of}.")
        return self.shards()[number - 1 :: of]

    def description(self) -> dict[str, Any]:
        """Everything that decides the trajectories, as JSON values."""
        problem = self.problem
        description = {
            "dataset": problem.name,
            "options": problem_options(problem),
            "solver": problem.solver,
            "solver_options": problem.solver_options,
            "seed": self.seed,
            "counts": {split: self.counts.get(split, 0) for split in SPLITS},
            "per_shard": self.per_shard,
            "fields": problem.fields,
            "context_fields": problem.context_fields,
            "axes": [dataclasses.asdict(axis) for axis in problem.axes],
            "times": problem.times.tolist(),
        }
        return json.loads(json.dumps(description, allow_nan=False))

    def layout(self, shard: Shard, *, provenance: Mapping[str, str | int]) -> Layout:
        """What the shard's file says about itself."""
        problem = self.problem
        options = problem_options(problem)
        numbers = {name: value for name, value in options.items() if type(value) in (int, float)}
        return Layout(
            name=problem.name,
            fields=problem.fields,
            axes=problem.axes,
            times=problem.times,
            context_fields=problem.context_fields,
            geometry=problem.geometry,
            parameters=numbers,
            attributes={
                "generator": "ssno",
                "generator_version": provenance["ssno"],
                "git_commit": provenance["commit"],
                "problem_options": json.dumps(options, sort_keys=True),
                "solver": problem.solver,
                "solver_options": json.dumps(problem.solver_options, sort_keys=True),
                "float_precision_of_solver": "float64",
                "seed": self.seed,
                "split": shard.split,
                "first_trajectory": shard.first,
            },
        )


def problem_options(problem: Problem) -> dict[str, Any]:
    """The named options of a problem: the fields of its dataclass, as JSON values."""
    if not dataclasses.is_dataclass(problem):
        raise TypeError(f"A problem must be a frozen dataclass whose fields are its options, got {type(problem)}.")
    return json.loads(json.dumps(dataclasses.asdict(problem), allow_nan=False))


def default_per_shard(problem: Problem) -> int:
    """Trajectories per file: a power of two, at most 64, at most 64 MiB before compression."""
    return 1 << (most_per_shard(problem).bit_length() - 1)


Preset = Literal["tiny", "small", "paper"]
PRESETS: tuple[Preset, ...] = get_args(Preset)
SomeProblem = TypeVar("SomeProblem", bound=Problem)


@dataclass(frozen=True)
class Size:
    """Trajectories per split, and options of the problem that this size changes."""

    train: int
    valid: int
    test: int
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Dataset:
    """A problem class, what it is in a line, its three sizes, and the options that are part of the folder's name."""

    problem: type[Problem]
    summary: str
    sizes: Mapping[Preset, Size]
    named_by: tuple[str, ...] = ()


TINY = Size(8, 2, 2)
SIZES: Mapping[Preset, Size] = {"tiny": TINY, "small": Size(256, 32, 32), "paper": Size(1024, 128, 128)}
DATASETS: dict[str, Dataset] = {}
"""Every dataset by name: ours, and those of `register_problem`."""


def register_problem(
    problem: type[SomeProblem],
    summary: str = "",
    sizes: Mapping[Preset, Size] = SIZES,
    *,
    named_by: tuple[str, ...] = (),
    conventions: Defaults | None = None,
) -> type[SomeProblem]:
    """Make a dataset of a problem: a frozen dataclass whose fields are the options of the dataset. Returns the class.

    `build_plan`, `load_dataset` and the commands of this process then know its `name`. May be used as a decorator.
    `summary` is one line, by default the first of the docstring. `sizes` are trajectories per split and changed options
    of the presets `tiny`, `small` and `paper`. The values of options `named_by` are part of the folder's name.
    `conventions` say which frames and points to train on, and how much noise to add.
    """
    name = getattr(problem, "name", None)
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"`name` of {problem.__name__} must be lower-case words joined by '-', as 'ks', got {name!r}.")
    before = DATASETS.get(name)
    if before is not None and before.problem.__qualname__ != problem.__qualname__:
        raise ValueError(f"Dataset {name!r} is {before.problem.__name__}. Choose another `name`.")
    if not dataclasses.is_dataclass(problem):
        raise TypeError(f"{problem.__name__} must be a frozen dataclass whose fields are its options.")
    if set(sizes) != set(PRESETS):
        raise ValueError(f"`sizes` must have the presets {', '.join(PRESETS)}, got {', '.join(sizes)}.")
    for preset, size in sizes.items():
        try:
            problem(**size.options)
        except TypeError as error:
            raise TypeError(f"{problem.__name__} cannot be built at size {preset!r}: {error}.") from error
    DATASETS[name] = Dataset(problem, summary or (problem.__doc__ or "").split("\n")[0], sizes, named_by)
    if conventions is not None:
        CONVENTIONS[name] = conventions
    return problem


TORUS_TINY = dataclasses.replace(TINY, options={"points": 32, "solver_points": 32, "step": 0.02})
TORUS_SMALL = Size(128, 0, 32, options={"points": 64, "solver_points": 64, "step": 0.02})
TORUS: Mapping[Preset, Size] = {"tiny": TORUS_TINY, "small": TORUS_SMALL, "paper": Size(1000, 200, 200)}
GAS: Mapping[Preset, Size] = {
    "tiny": dataclasses.replace(TINY, options={"points": 32, "cells": 32}),
    "small": Size(128, 0, 32, options={"points": 64, "cells": 64}),
    "paper": Size(1000, 0, 200),
}
SPHERE: Mapping[Preset, Size] = {
    "tiny": dataclasses.replace(TINY, options={"nlat": 32, "frames": 12}),
    "small": Size(128, 16, 32, options={"nlat": 32}),
    "paper": Size(256, 32, 32, options={"nlat": 256}),
}
register_problem(
    KuramotoSivashinsky,
    "Kuramoto-Sivashinsky on [0, 64): long waves grow into chaos.",
    {"tiny": TINY, "small": Size(512, 64, 64), "paper": Size(2048, 256, 256)},
    named_by=("viscosity",),
)
register_problem(
    KuramotoSivashinskyAttractor,
    "Kuramoto-Sivashinsky from t = 6 to 22: stationary chaos.",
    {
        "tiny": dataclasses.replace(TINY, options={"frames": 41, "end_time": 10.0}),
        "small": Size(320, 32, 32),
        "paper": Size(2048, 256, 256),
    },
    named_by=("viscosity",),
)
register_problem(
    Burgers,
    "Viscous Burgers on [0, 1): waves steepen into shocks.",
    {
        "tiny": dataclasses.replace(TINY, options={"points": 256, "cells": 256, "frames": 41}),
        "small": Size(256, 64, 64),
        "paper": Size(2048, 0, 1000),
    },
)
register_problem(TorusLi, "Forced Navier-Stokes on the torus, one viscosity.", {**TORUS, "paper": Size(1000, 0, 200)})
register_problem(TorusVis, "Navier-Stokes on the torus: a viscosity and a force for each trajectory.", TORUS)
register_problem(TorusVisForce, "As torus-vis, with a force that drifts.", TORUS)
register_problem(RichtmyerMeshkov, "Compressible Euler: a blast in a heavy disc, whose rim rolls up.", GAS)
register_problem(
    RayleighTaylor,
    "Euler with gravity: a star with a heavy shell, into which fingers grow.",
    {**GAS, "paper": dataclasses.replace(GAS["paper"], options={"refine": 2})},
)
register_problem(
    KTFoil,
    "Ideal flow past Karman-Trefftz aerofoils on point clouds, exact.",
    {
        "tiny": dataclasses.replace(TINY, options={"points": 512, "wall_points": 64}),
        "small": Size(256, 32, 128, options={"points": 4096, "wall_points": 256}),
        "paper": Size(720, 80, 200),
    },
    named_by=("task", "units"),
)
register_problem(
    ShallowWater,
    "Shallow water on a rotating sphere: the public random states, jets and waves.",
    SPHERE,
    named_by=("initial",),
)
register_problem(
    HeatBox,
    "The heat equation between walls (Dirichlet, Neumann or both), exact.",
    {**SIZES, "tiny": dataclasses.replace(TINY, options={"points": 32})},
    named_by=("boundary",),
)
register_problem(
    GrayScott,
    "Gray-Scott patterns: periodic, in a channel or in a box; a feed rate for each trajectory.",
    {
        "tiny": dataclasses.replace(TINY, options={"points": 32, "solver_points": 64, "frames": 12, "warm_up": 20.0}),
        "small": Size(128, 16, 32, options={"solver_points": 64, "step": 2.0}),
        "paper": Size(512, 64, 64),
    },
    named_by=("boundary",),
)
register_problem(
    BoxTurbulence,
    "Turbulence in three dimensions: forced, decaying, or out of Taylor-Green vortices.",
    {
        "tiny": dataclasses.replace(
            TINY, options={"points": 16, "solver_points": 24, "viscosity": 0.03, "frames": 8, "first_time": 1.0}
        ),
        "small": Size(56, 8, 16),
        "paper": Size(256, 32, 32, options={"points": 64, "solver_points": 96, "viscosity": 0.005}),
    },
    named_by=("flow",),
)
register_problem(VorticalShallowWater, "Shallow water on a rotating sphere: balanced eddies.", SPHERE)
register_problem(Heat, "The heat equation in 1, 2 or 3 dimensions, exact.")
register_problem(AdvectionDiffusion, "Heat carried by a constant wind, exact.")


def split_name(name: str) -> tuple[str, dict[str, str]]:
    """A dataset's name and the options in the words after it: "gray-scott-channel" is gray-scott in a channel.

    Words are those that name its folder (`named_by`); any other name comes back as it is.
    """
    for known, dataset in () if name in DATASETS else DATASETS.items():
        if name.startswith(f"{known}-"):
            word = name.removeprefix(f"{known}-")
            types = get_type_hints(dataset.problem)
            for option in dataset.named_by:
                if word in get_args(types[option]):
                    return known, {option: word}
    return name, {}


def build_problem(name: str, preset: Preset = "paper", **options: Any) -> Problem:
    """The problem of a dataset at a preset's size, with `options` changed."""
    dataset, chosen = choose_options(name, preset, **options)
    return dataset.problem(**chosen)


def choose_options(name: str, preset: Preset, **options: Any) -> tuple[Dataset, dict[str, Any]]:
    """A dataset, and the options of its problem that its name, its preset and `options` set."""
    name, words = split_name(name)
    options = {**words, **options}
    if name not in DATASETS:
        raise ValueError(unknown_name(name, DATASETS, kind="dataset"))
    if preset not in PRESETS:
        raise ValueError(unknown_name(preset, PRESETS, kind="preset"))
    dataset = DATASETS[name]
    known = [option.name for option in dataclasses.fields(dataset.problem)]  # type: ignore[arg-type]
    for option in options:
        if option not in known:
            raise ValueError(unknown_name(option, known, kind=f"option of {name}"))
    return dataset, {**dataset.sizes[preset].options, **options}


def build_plan(
    name: str,
    preset: Preset = "paper",
    *,
    counts: Mapping[Split, int] | None = None,
    seed: int = 0,
    per_shard: int | None = None,
    **options: Any,
) -> Plan:
    """The plan of a dataset. `counts` overrides the preset's, split by split."""
    problem = build_problem(name, preset, **options)
    size = DATASETS[problem.name].sizes[preset]
    train = round(size.train * problem.train_share)
    wanted: dict[Split, int] = {"train": train, "valid": size.valid, "test": size.test, **(counts or {})}
    return Plan(problem, wanted, seed=seed, per_shard=per_shard)


def folder_name(problem: Problem, preset: str) -> str:
    """The folder of a dataset in `./data`: `ks-0.075-paper`, `burgers-paper`; words that are the default go unsaid."""
    named_by = DATASETS[problem.name].named_by
    return _folder_name(problem.name, preset, {option: getattr(problem, option) for option in named_by})


def find_folder_name(name: str, preset: Preset, **options: Any) -> str:
    """The same from a dataset's name and options, without building its problem."""
    return _folder_name(split_name(name)[0], preset, choose_options(name, preset, **options)[1])


def _folder_name(name: str, preset: str, options: Mapping[str, Any]) -> str:
    dataset, said = DATASETS[name], []
    for option in dataset.named_by:
        usual = getattr(dataset.problem, option)
        value = options.get(option, usual)
        if not isinstance(value, str):
            said.append(f"{value:g}")
        elif value != usual:
            said.append(value)
    return "-".join([name, *said, preset])


def generate_command(name: str, preset: Preset = "paper", *, out: Path | None = None, **options: Any) -> str:
    """The command that makes a dataset, for messages that say it is missing."""
    build_problem(name, preset, **options)
    name, words = split_name(name)
    options = {**words, **options}
    given = {**options, "preset": preset, **({} if out is None else {"out": out})}
    flags = []
    for option, value in given.items():
        values = value if isinstance(value, tuple) else (value,)
        flags += [f"--{option.replace('_', '-')}", *(str(one) for one in values)]
    return shlex.join(["ssno", "data", "generate", name, *flags])
