"""One typed description of a run: which data, which model, how to train. JSON on disk; it builds the objects.

    {"version": 2, "data": {...}, "model": {"model": "ssno", ...}, "train": {...}, "window": {...}, "alignment": "same"}

Version 1, which carried no number, had `train.teacher_forcing`, true or false, in place of `train.rollout`.

The command line overrides its fields; `ssno train --config run.json` starts from a file. Channels, dimensions and
window that are not given follow from data and model (`completed`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import nn

from ssno.base import description_from_json, read_json, unknown_name
from ssno.data.options import DataOptions
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Alignment, Window
from ssno.models.config import OperatorConfig
from ssno.models.registry import model_config
from ssno.models.ssno import SSNOConfig
from ssno.pde.problems.problem import Axis
from ssno.runs.layout import CONFIG
from ssno.runs.options import Recipe, TrainOptions
from ssno.runs.options import recipe as recipe_options

VERSION = 2
ModelConfig = TypeVar("ModelConfig", bound=OperatorConfig)
Described = TypeVar("Described", bound=Any)


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
    """Which frames are given, which predicted."""
    alignment: Alignment = "same"
    """Known fields of a slot are those of its own frame, or of the one it predicts."""
    start_from: str | None = None
    """Fine-tune: start from the weights of this run or model folder, or bundled checkpoint (`ssno models`)."""

    def build_model(self) -> nn.Module:
        """The model, its weights drawn from the run's seed."""
        with torch.random.fork_rng():
            torch.manual_seed(self.train.seed)
            return self.model.build_described()

    def completed(
        self, data: Trajectories, *, recipe: Recipe | None = None, given: Collection[str] = ()
    ) -> "Run[ModelConfig]":
        """With everything that data and recipe determine, except the fields named in `given`, as `model.d_state`."""
        counts = len(data.fields), len(data.context_fields)
        return self.suited(data.axes, *counts, dataset=data.name, recipe=recipe, given=given)

    def suited(
        self,
        axes: Sequence[Axis],
        predicted: int,
        known: int = 0,
        *,
        dataset: str = "",
        recipe: Recipe | None = None,
        given: Collection[str] = (),
    ) -> "Run[ModelConfig]":
        """Completed for data with these axes and so many predicted and known fields.

        Channels, axes, at most as many Fourier modes as the (coarsest) grid carries, the window follow from data and
        model. A recipe also sets the batch size, and `fast` the model settings that it found best for such data.
        """

        def is_given(name: str) -> bool:
            return any(other == name or other.startswith(f"{name}.") for other in given)

        derived = {
            "in_channels": predicted + known,
            "out_channels": predicted,
            "n_dims": len(axes),
        }
        model = replace(self.model, **{name: value for name, value in derived.items() if not is_given(f"model.{name}")})
        if recipe == "fast":
            best = model.recommended(periodic=[axis.periodic for axis in axes])
            model = preferred(best, model, given, where="model")
        if not is_given("model.n_modes"):
            coarsest = min(self.train.grids, default=axes[0].points) / axes[0].points
            model = model.for_grid([int(axis.points * coarsest) for axis in axes])
        window = self.window if is_given("window.size") else replace(self.window, size=model.frames_seen())
        train = self.train
        if recipe is not None and not is_given("train.batch_size"):
            train = replace(train, batch_size=recipe_options(recipe, n_dims=len(axes), dataset=dataset).batch_size)
        return replace(self, model=model, window=window, train=train)

    def to_json(self) -> dict[str, Any]:
        """Plain values, complete."""
        return {
            "version": VERSION,
            "data": asdict(self.data),
            "model": self.model.to_json(),
            "train": asdict(self.train),
            "window": asdict(self.window),
            "alignment": self.alignment,
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
            if name not in {*sections, "model", "alignment", "start_from"}:
                raise ValueError(unknown_name(name, [known.name for known in fields(Run)]))
        model = values.get("model", {})
        if not isinstance(model, Mapping):
            raise ValueError(f"`model` must be an object with named fields, got {model!r}.")
        built: dict[str, Any] = {
            name: description_from_json(kind, values.get(name, {}), where=f"{name}.") for name, kind in sections.items()
        }
        alignment = values.get("alignment", "same")
        if alignment not in ("same", "target"):
            raise ValueError(f"`alignment` must be 'same' or 'target', got {alignment!r}.")
        start_from = values.get("start_from")
        if not isinstance(start_from, str | None):
            raise ValueError(f"`start_from` must be the folder of a run, got {start_from!r}.")
        config = model_config(str(model.get("model", "ssno"))).from_json(model)
        return Run(**built, model=config, alignment=alignment, start_from=start_from)


def migrated(values: Mapping[str, Any]) -> dict[str, Any]:
    """A description of any version in the words of this one, without its number."""
    values = dict(values)
    version, train = values.pop("version", None), values.get("train")
    if version not in (None, VERSION):
        raise ValueError(
            f"The description of the run has version {version!r}; this ssno reads up to {VERSION}. Upgrade ssno."
        )
    if version is None and isinstance(train, Mapping) and "teacher_forcing" in train and "rollout" not in train:
        forced = train["teacher_forcing"]
        if not isinstance(forced, bool):
            raise ValueError(f"`train.teacher_forcing` must be bool, got {forced!r}.")
        kept = {name: value for name, value in train.items() if name != "teacher_forcing"}
        values["train"] = {**kept, "rollout": {"forcing": [1.0 if forced else 0.0]}}
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
    path = Path(path)
    path = path / CONFIG if path.is_dir() else path
    values = read_json(path, remedy="Give a description of a run, or the folder of one.")
    if isinstance(values, dict) and "provenance" in values:
        values = values.get("run")
        if not isinstance(values, dict) or "model" not in values:
            raise ValueError(
                f"{path} is of a run started from Python, whose data have no description. Resume it from Python."
            )
    return Run.from_json(values)
