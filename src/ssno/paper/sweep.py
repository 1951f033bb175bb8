"""A sweep: many runs described in one file, compared in one table.

    seeds = [0, 1, 2]                               every run, once with each seed

    [run]                                           what all runs share, in the words of `ssno train`
    "data.name" = "ks"
    "model.model" = "ssno:tiny"
    "train.epochs" = 5

    [grid]                                          every combination of these values
    "train.learning_rate" = [1e-3, 3e-3]
    "model.d_state" = [8, 16]

    [[runs]]                                        and these, beside the grid or instead of it
    "model.model" = "ffno:tiny"

TOML, JSON, or YAML with `pip install ssno[yaml]`. Names may also be nested (`[run.train]`, `epochs = 5`).
`recipe = "fast"` or "paper" fills in the rest, as it does for `ssno train`. A run's row is named after what makes it
different; its folder, after its whole description (`ssno.paper.trial`), so that runs are found again whatever
else is added to the file.
"""

import itertools
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from ssno.base import from_text, read_regular, unknown_name
from ssno.data.load import DataOptions
from ssno.paper.trial import Trial
from ssno.runs.options import Recipe
from ssno.runs.run import leaves, resolve_run

SECTIONS = ("seeds", "recipe", "tested", "run", "grid", "runs")
MOST_RUNS = 10_000
LARGEST_FILE = 2**20

Changes = Mapping[str, Any]
"""Fields of a run by dotted name, as `train.epochs`."""


@dataclass(frozen=True)
class RunSweep:
    """Runs that share `run` and differ in `variants` and seeds; `tested`: test trajectories that judge them."""

    run: Changes
    variants: tuple[Changes, ...] = ({},)
    seeds: tuple[int, ...] = (0,)
    recipe: Recipe = "fast"
    tested: int | None = None

    def __post_init__(self) -> None:
        if not self.seeds or not all(type(seed) is int and seed >= 0 for seed in self.seeds):
            raise ValueError(f"`seeds` must be a list of whole numbers from 0, got {list(self.seeds)}.")
        check_number(len(self.variants) * len(self.seeds))
        if self.tested is not None and not (type(self.tested) is int and self.tested > 0):
            raise ValueError(f"`tested` must be a number of test trajectories, got {self.tested!r}.")
        if "train.seed" in self.run or any("train.seed" in variant for variant in self.variants):
            raise ValueError("`train.seed`: give `seeds = [0, 1, 2]` instead; a table shows their mean and spread.")

    def trials(self) -> list[Trial]:
        """The runs, completed for their data, all of a seed before the next."""
        made = [self.trial(variant, seed) for seed in self.seeds for variant in self.variants]
        for data in {trial.run.data for trial in made}:
            self.check_tested(data)
        return made

    def check_tested(self, data: DataOptions) -> None:
        """Refuse data that cannot judge a run, before any is trained."""
        there = len(data.load("test"))
        if there < (self.tested or 1):
            asked = "which judge the runs" if self.tested is None else f"fewer than `tested` = {self.tested}"
            raise ValueError(f"{data.path or data.name} has {there} test trajectories, {asked}.")

    def trial(self, variant: Changes, seed: int) -> Trial:
        """One run."""
        chosen = {**self.run, **variant, "train.seed": seed}
        run = resolve_run(chosen, recipe=self.recipe, data=lambda options: options.load("train"))
        return Trial(label_of(variant), Path(run.data.name).stem, run, self.tested)


def read_sweep(path: str | Path) -> RunSweep:
    """A sweep described in a TOML, JSON or YAML file."""
    path = Path(path)
    text = read_regular(path, limit=LARGEST_FILE)
    if path.suffix not in PARSERS:
        raise ValueError(f"{path}: a sweep is described in a file that ends with {', '.join(PARSERS)}.")
    try:
        values = PARSERS[path.suffix](text)
        if not isinstance(values, dict):
            raise ValueError(f"expected named sections ({', '.join(SECTIONS)}), got {values!r}")
        return sweep_from(values)
    except RecursionError:
        raise ValueError(f"{path}: nested too deeply to be a sweep.") from None
    except ValueError as error:  # parsers and our own checks alike
        raise ValueError(f"{path}: {error}") from None


def parse_yaml(text: bytes) -> Any:
    """Plain values in YAML. References within the text are refused: a few lines of them unfold without end."""
    try:
        import yaml
    except ImportError:
        raise ImportError("PyYAML is not installed. Install it with: pip install 'ssno[yaml]'") from None
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise ValueError("aliases (*name) are not read; write the values out")
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


PARSERS: Mapping[str, Callable[[bytes], Any]] = {
    ".toml": lambda text: tomllib.loads(text.decode()),
    ".json": from_text,
    ".yaml": parse_yaml,
    ".yml": parse_yaml,
}


def sweep_from(values: Mapping[str, Any]) -> RunSweep:
    """A sweep from parsed sections."""
    for name in values:
        if name not in SECTIONS:
            raise ValueError(unknown_name(name, list(SECTIONS), kind="section"))
    shared, grid, listed = (values.get(name, kind) for name, kind in (("run", {}), ("grid", {}), ("runs", [])))
    if not isinstance(shared, Mapping) or not isinstance(grid, Mapping):
        raise ValueError("`run` and `grid` must be tables of named fields.")
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise ValueError("`runs` must be a list of tables ([[runs]] in TOML).")
    seeds = values.get("seeds", [0])
    if not isinstance(seeds, list):
        raise ValueError(f"`seeds` must be a list of whole numbers from 0, got {seeds!r}.")
    variants = [*(combinations(grid) if grid or not listed else ()), *(dict(leaves(one)) for one in listed)]
    if (chosen := values.get("recipe", "fast")) not in get_args(Recipe):
        raise ValueError(f"`recipe` must be one of {', '.join(get_args(Recipe))}, got {chosen!r}.")
    return RunSweep(dict(leaves(shared)), tuple(variants), tuple(seeds), chosen, values.get("tested"))


def check_number(runs: int) -> None:
    """Refuse a number of runs that nobody can train."""
    if not 1 <= runs <= MOST_RUNS:
        raise ValueError(f"A sweep has 1 to {MOST_RUNS:,} runs, got {runs:,}.")


def combinations(grid: Mapping[str, Any]) -> Iterator[Changes]:
    """Every combination of the values of a grid, the last name varying fastest."""
    names = dict(leaves(grid))
    for name, choices in names.items():
        if not isinstance(choices, list) or not choices:
            raise ValueError(f"`grid.{name}` must be a list of values, got {choices!r}.")
    check_number(math.prod(map(len, names.values())))
    for values in itertools.product(*names.values()):
        yield dict(zip(names, values, strict=True))


def label_of(variant: Changes) -> str:
    """What makes a run different: "learning_rate 0.001, d_state 8"."""
    return ", ".join(f"{name.split('.')[-1]} {shown(value)}" for name, value in variant.items()) or "all alike"


def shown(value: Any) -> str:
    """A value in a row's name."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def shard_of(trials: Sequence[Trial], number: int, of: int) -> list[Trial]:
    """The runs that job `number` (1, 2, ...) of `of` jobs does: every `of`-th."""
    return list(dict.fromkeys(trials))[number - 1 :: of]
