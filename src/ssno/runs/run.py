"""One typed description of a run: which data, which model, how to train. JSON on disk; it builds the objects.

    {"version": 5, "data": {...}, "model": {"model": "ssno", ...}, "train": {...}, "window": {...}, "context_time":
    "input"}

Versions 2 and 3 had other names (`ssno.base.renamed`); version 1, without a number, also `train.teacher_forcing`, true
or false, in place of `train.unroll`.

`resolve_run` makes one, complete, from options by dotted name, for the command line, Python, sweeps and experiments.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, get_args

import torch
from torch import nn

from ssno.base import description_from_json, from_text, read_json, require_one_of, to_text, unknown_name, write_document
from ssno.base.renamed import with_new_names
from ssno.data.load import DataOptions
from ssno.data.trajectories import Trajectories
from ssno.data.windows import ContextTime, Window, dataset_conventions
from ssno.models.config import OperatorConfig
from ssno.models.pretrained import FORMAT, VERSION, read_model_document
from ssno.models.registry import model_config
from ssno.models.ssno import SSNOConfig
from ssno.pde.geometry import Axis
from ssno.runs.checkpoint import CONFIG, Progress
from ssno.runs.options import Recipe, TrainOptions
from ssno.runs.options import recipe as recipe_options

# Going on with a run: its description must be the one it began with, except for what may change on the way.
#
#     train.epochs        longer or shorter, but not less than what is done; the rate then follows the new schedule
#     train.num_workers, train.save_seconds, train.keep_every        how it is done, not what
#
# Whatever changed is written to config.json: the new description, and under "resumed" what it was before and when.

MAY_CHANGE = ("train.epochs", "train.num_workers", "train.save_seconds", "train.keep_every")


def record_changes(folder: Path, description: Mapping[str, Any], progress: Progress) -> dict[str, list[Any]]:
    """Compare a description with that of the run in `folder`; refuse what may not change, write down what may.

    Returns what changed: dotted names with the value before and the value now.
    """
    document = read_model_document(folder)
    before, now = (dict(leaves(complete(values))) for values in (document.get("run") or {}, description))
    changed = {
        name: [before.get(name), now.get(name)] for name in {**before, **now} if before.get(name) != now.get(name)
    }
    if refused := [f"{name} (was {old}, now {new})" for name, (old, new) in changed.items() if name not in MAY_CHANGE]:
        raise ValueError(
            f"The run in {folder} began with other options, and resuming cannot change these: {', '.join(refused)}. "
            f"Leave them as they were, or start another run. What may change: {', '.join(MAY_CHANGE)}."
        )
    epochs = now["train.epochs"]
    if epochs < progress.epoch + (not progress.finished):
        raise ValueError(
            f"`train.epochs` is {epochs}, but the run in {folder} is already in epoch {progress.epoch + 1}."
        )
    if changed:
        resumed = [*document.get("resumed", []), {"step": progress.step, "changed": changed}]
        kept = {key: value for key, value in document.items() if key not in ("format", "version")}
        content = {**kept, "run": dict(description), "resumed": resumed}
        write_document(folder / CONFIG, content, format=FORMAT, version=VERSION)
    return changed


def complete(description: Mapping[str, Any]) -> Any:
    """A description of any version with every option that this one knows, as plain JSON values."""
    if "model" in description:
        return from_text(to_text(Run.from_json(description).to_json()))
    values = migrated(description)
    options = description_from_json(TrainOptions, values.get("train", {}), where="train.")
    return from_text(to_text({**values, "train": asdict(options)}))


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested objects, by dotted name."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


RUN_VERSION = 5
COMPLETE = {"epochs", "learning_rate", "schedule", "seed"}
"""Options that a program wrote, not a person: all of them are there."""
OLD_SWITCH = {"teacher_forcing", "rollout", "unroll"}
ModelConfig = TypeVar("ModelConfig", bound=OperatorConfig)
Described = TypeVar("Described", bound=Any)


class DataShape(NamedTuple):
    """The name, grid and fields of a dataset that need not be there."""

    name: str
    axes: Sequence[Axis]
    fields: Sequence[str]
    context_fields: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Run(Generic[ModelConfig]):
    """Everything that determines a training run."""

    data: DataOptions = field(default_factory=DataOptions)
    """Which trajectories."""
    model: ModelConfig = field(default_factory=SSNOConfig)  # type: ignore[assignment]
    """Which model."""
    train: TrainOptions = field(default_factory=TrainOptions)
    """How to train."""
    window: Window = field(default_factory=Window)
    """Which frames are inputs, which predicted."""
    context_time: ContextTime = "input"
    """Whether the context fields of a time step are those of its input frame or of the frame it predicts."""
    start_from: str | None = None
    """Fine-tune: start from the weights of this run or model folder, or bundled checkpoint (`ssno models`)."""

    def build_model(self) -> nn.Module:
        """The model, its weights drawn from the run's seed."""
        with torch.random.fork_rng():
            torch.manual_seed(self.train.seed)
            return self.model.build_described()

    def completed(
        self, data: Trajectories | DataShape, *, recipe: Recipe | None = None, given: Collection[str] = ()
    ) -> "Run[ModelConfig]":
        """With everything that data and recipe determine, except the fields named in `given`, as `model.d_state`.

        Channels, axes, at most as many Fourier modes as the (coarsest) grid carries, and the window follow from data
        and model. A recipe also sets the batch size, and `fast` the model settings that it found best for such data.
        """
        axes, predicted, context = data.axes, len(data.fields), len(data.context_fields)

        def is_given(name: str) -> bool:
            return any(other == name or other.startswith(f"{name}.") for other in given)

        derived = {"in_channels": predicted + context, "out_channels": predicted, "n_dims": len(axes)}
        model = replace(self.model, **{name: value for name, value in derived.items() if not is_given(f"model.{name}")})
        if recipe == "fast":
            best = model.recommended(periodic=[axis.periodic for axis in axes])
            model = preferred(best, model, given, where="model")
        if not is_given("model.n_modes"):
            coarsest = min(self.train.grids, default=axes[0].points) / axes[0].points
            model = model.for_grid([int(axis.points * coarsest) for axis in axes])
        if is_given("window.size"):
            check_window(model, self.window)
        window = self.window if is_given("window.size") else replace(self.window, size=model.frames_seen())
        train = self.train
        if recipe is not None and not is_given("train.batch_size"):
            train = replace(train, batch_size=recipe_options(recipe, n_dims=len(axes), dataset=data.name).batch_size)
        return replace(self, model=model, window=window, train=train)

    def to_json(self) -> dict[str, Any]:
        """Plain values, complete; the reference grid of weights from another run stands in their config alone."""
        model = self.model.to_json()
        if self.start_from is not None and "reference_spacing" in model:
            model["reference_spacing"] = None
        return {
            "version": RUN_VERSION,
            "data": asdict(self.data),
            "model": model,
            "train": asdict(self.train),
            "window": asdict(self.window),
            "context_time": self.context_time,
            "start_from": self.start_from,
        }

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> "Run[Any]":
        """The inverse of `to_json`; sections and fields that are missing take their defaults."""
        if not isinstance(values, Mapping):
            raise ValueError(f"The description of a run must be an object, got {values!r}.")
        values = migrated(values)
        sections = {"data": DataOptions, "train": TrainOptions, "window": Window}
        for name in values:
            if name not in {*sections, "model", "context_time", "start_from"}:
                raise ValueError(unknown_name(name, [known.name for known in fields(Run)]))
        model = values.get("model", {})
        if not isinstance(model, Mapping):
            raise ValueError(f"`model` must be an object with named fields, got {model!r}.")
        built: dict[str, Any] = {
            name: description_from_json(kind, values.get(name, {}), where=f"{name}.") for name, kind in sections.items()
        }
        context_time = values.get("context_time", "input")
        require_one_of("context_time", context_time, get_args(ContextTime))
        start_from = values.get("start_from")
        if not isinstance(start_from, str | None):
            raise ValueError(f"`start_from` must be the folder of a run, got {start_from!r}.")
        config = model_config(str(model.get("model", "ssno"))).from_json(model)
        return Run(**built, model=config, context_time=context_time, start_from=start_from)


def resolve_run(
    overrides: Mapping[str, Any],
    *,
    recipe: Recipe | None = "fast",
    base: Run[Any] | None = None,
    data: Trajectories | DataShape | Callable[[DataOptions], Trajectories] | None = None,
) -> Run[Any]:
    """The run that options by dotted name describe: {"data.name": "ks", "model.model": "ffno", "train.epochs": 5}.

    What `overrides` do not name is as in `base`, or without one as in the recipe for the dataset. "model.model" takes a
    model by name ("ssno:tiny" for its smallest size). Given `data`, or a function that loads those which the run's
    options describe, the run is also completed for them (`Run.completed`).
    """
    if base is None:
        dataset = str(overrides.get("data.name", DataOptions().name))
        model = model_config(str(overrides.get("model.model", "ssno")))
        options = TrainOptions() if recipe is None else recipe_options(recipe, dataset=dataset, suited=model.training)
        base = Run(train=options, context_time=dataset_conventions(dataset).context_time)
    if "model.model" in overrides:
        base = replace(base, model=model_config(str(overrides["model.model"])))
    run, changed = base, {name: value for name, value in overrides.items() if name != "model.model"}
    if changed:
        now = dict(leaves(values := base.to_json()))
        changed = {name: value for name, value in changed.items() if now.get(name, now) != value}
    if changed:
        for name, value in changed.items():
            _put(values, name, value)
        run = Run.from_json(values)
    if data is None:
        return run
    return run.completed(data(run.data) if callable(data) else data, recipe=recipe, given=overrides)


def check_window(model: OperatorConfig, window: Window) -> None:
    """Refuse a window of other length than a model's memory. A Markovian model may begin later than it has to."""
    seen = model.frames_seen()
    if seen > 1 and window.frames_seen != seen:
        owner = "model.frames_as_channels" if getattr(model, "frames_as_channels", 0) else "model.memory.window"
        raise ValueError(
            f"`window.size` is {window.size}, but `{owner}` is {seen}: the model looks at {seen} frames. Leave "
            f"`window.size` out, and it follows the model; or change `{owner}`."
        )


def _put(values: dict[str, Any], name: str, value: Any) -> None:
    """Set a field by its dotted name."""
    *path, last = name.split(".")
    for part in path:
        values = values.setdefault(part, {})
        if not isinstance(values, dict):
            raise ValueError(f"`{name}`: {part!r} is a value, not a section.")
    values[last] = value


def migrated(values: Mapping[str, Any]) -> dict[str, Any]:
    """A description of any version in the words of this one, without its number."""
    values = dict(values)
    version, train = values.pop("version", None), values.get("train")
    if version not in (None, *range(2, RUN_VERSION + 1)):
        raise ValueError(
            f"The description of the run has version {version!r}; this ssno reads up to {RUN_VERSION}. Upgrade ssno."
        )
    if version is None and isinstance(train, Mapping) and {*train} & OLD_SWITCH == {"teacher_forcing"}:
        forced = train["teacher_forcing"]
        if not isinstance(forced, bool):
            raise ValueError(f"`train.teacher_forcing` must be bool, got {forced!r}.")
        kept = {name: value for name, value in train.items() if name != "teacher_forcing"}
        values["train"] = {**kept, "unroll": {"teacher_forcing": [1.0 if forced else 0.0]}}
    values = values if version == RUN_VERSION else with_new_names(values)
    train = values.get("train")
    if isinstance(train, Mapping) and {*train} >= COMPLETE:  # written when there was no choice
        values["train"] = {"optimizer": "adamw", **train}
    return values


def preferred(best: Described, own: Described, given: Collection[str], *, where: str) -> Described:
    """The `best` description, with the fields that were `given`, at any depth, as in one's `own`."""
    chosen: dict[str, Any] = {}
    for known in fields(best):
        name, mine, theirs = f"{where}.{known.name}", getattr(own, known.name), getattr(best, known.name)
        if name in given:
            chosen[known.name] = mine
        elif is_dataclass(theirs):
            chosen[known.name] = preferred(theirs, mine, given, where=name)
    return replace(best, **chosen)


def read_run(path: str | Path) -> Run[Any]:
    """A run described in a JSON file: a bare description, or the config.json of a run folder."""
    return Run.from_json(read_description(path))


def read_description(path: str | Path) -> Any:
    """What such a file states, of any version."""
    path = Path(path)
    path = path / CONFIG if path.is_dir() else path
    values = read_json(path, remedy="Give a description of a run, or the folder of one.")
    if isinstance(values, dict) and "provenance" in values:
        values = values.get("run")
        if not isinstance(values, dict) or "model" not in values:
            raise ValueError(
                f"{path} is of a run started from Python, whose data have no description. Resume it from Python."
            )
    return values
