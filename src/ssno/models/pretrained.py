"""Models on disk: a folder with `config.json` and `model.safetensors`. No pickle; opening a folder runs no code.

Some trained ones come with the package and are found by name; others are fetched (`ssno.models.hub`).

`config.json` holds {"format": "ssno-model", "version": 1, "config": {"model": name, ...}}.
"""

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import safetensors
import safetensors.torch
from torch import Tensor, nn

from ssno.base import description_from_json, did_you_mean, read_document, read_regular, write_document, write_whole
from ssno.base.json_io import LARGEST as LARGEST_DOCUMENT
from ssno.base.renamed import with_new_names
from ssno.models import hub
from ssno.models.config import OperatorConfig

# Trained checkpoints that come with the package, found by name where a model folder is expected.
#
#     SSNO.from_pretrained("ks-0.1-64")          unless there is a folder ks-0.1-64 here: folders on disk come first
#
# Each is an ordinary model folder (`ssno.models.pretrained`) in `ssno/pretrained`. They are made by
# docs/scripts/publish.py and are never written to afterwards: results about them go to ./runs/pretrained/NAME.

ROOT = Path(__file__).parents[1] / "pretrained"
RESULTS = Path("runs") / "pretrained"
NAME = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")


def bundled_folders() -> dict[str, Path]:
    """The checkpoints that are there: their folders by name, sorted."""
    found = sorted(path.parent for path in ROOT.glob("*/config.json"))
    return {folder.name: folder for folder in found if NAME.fullmatch(folder.name)}


def resolve_checkpoint(folder: str | Path) -> Path:
    """The folder that is meant: one on disk, else the bundled checkpoint of that name; hf://org/name[@revision] is
    fetched from the Hugging Face Hub.

    A name is looked up in the list of what is bundled and never joined to a path, so it cannot lead elsewhere. What
    has several parts, as runs/ks-ssno, is a path and is returned as it is, whether it exists or not.
    """
    if address := hub.ADDRESS.fullmatch(str(folder)):
        return hub.download(address[1], address[2], limits=LIMITS)
    path = Path(folder)
    if path.is_dir() or len(path.parts) != 1:
        return path
    known = bundled_folders()
    if path.name in known:
        return known[path.name]
    raise FileNotFoundError(
        f"There is no run or saved model in {folder}, and no bundled checkpoint of that name."
        f"{did_you_mean(path.name, known)} There are: {', '.join(known) or 'none'}."
    )


def results_folder(folder: Path) -> Path:
    """Where results about a model folder go: into it, or for bundled and fetched ones into ./runs/pretrained/NAME."""
    place = folder.resolve()
    ours = any(place.is_relative_to(home.resolve()) for home in (ROOT, hub.hub_folder()))
    return RESULTS / place.name if ours else folder


FORMAT, VERSION = "ssno-model", 4
CONFIG, WEIGHTS = "config.json", "model.safetensors"
FILES = (WEIGHTS, CONFIG)
LARGEST = 2**36
"""Bytes of weights that are read at most."""
LIMITS = {CONFIG: LARGEST_DOCUMENT, WEIGHTS: LARGEST}
Model = TypeVar("Model", bound="Pretrained")


class Pretrained(nn.Module):
    """Gives a model with a typed `config` the two methods users expect: `save_pretrained` and `from_pretrained`."""

    config_type: ClassVar[type[OperatorConfig]]
    config: OperatorConfig

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model to `folder`, creating it. Each file is replaced whole or not at all."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        save_weights(folder, self.state_dict())
        write_document(folder / CONFIG, {"config": self.config.to_json()}, format=FORMAT, version=VERSION)

    @classmethod
    def from_pretrained(cls: type[Model], folder: str | Path, *, revision: str | None = None) -> Model:
        """Read a model that `save_pretrained` wrote, a bundled one by name, or "org/name" of the Hugging Face Hub.

        A folder on disk comes first. `revision` is a commit, a tag or a branch of the repository. In evaluation mode.
        """
        folder = model_folder(folder, revision)
        config = cls.config_type.from_json(read_config(folder))
        model = config.build()
        assert isinstance(model, cls)
        load_weights(model, folder / WEIGHTS)
        return model.eval()


def model_folder(folder: str | Path, revision: str | None = None) -> Path:
    """As `resolve_checkpoint`, but org/name that is no folder here is a repository on the Hugging Face Hub."""
    if hub.REPOSITORY.fullmatch(str(folder)) and not Path(folder).is_dir():
        return hub.download(str(folder), revision, limits=LIMITS)
    if revision is not None:
        raise ValueError(f"`revision` is for a repository, ORGANISATION/NAME, which {str(folder)!r} is not.")
    return resolve_checkpoint(folder)


def read_config(folder: str | Path) -> dict[str, Any]:
    """The model's configuration in a model folder."""
    return read_model_document(folder)["config"]


def read_model_document(folder: str | Path) -> dict[str, Any]:
    """The parsed config.json of a model folder, its format checked."""
    path = Path(folder) / CONFIG
    try:
        content = read_document(path, format=FORMAT, versions=range(1, VERSION + 1), remedy="Save the model again.")
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no run or saved model in {folder}: {path} does not exist.") from None
    if not isinstance(content.get("config"), dict):
        raise ValueError(f"{path} lacks the configuration of the model. It may be damaged; save the model again.")
    return with_new_sections(content)


def with_new_sections(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a config.json in the words of this version. (`Run.from_json` migrates the rest of a run.)"""
    if content.get("version") == VERSION:
        return dict(content)
    old = {"config": "model.", "forecaster": "forecaster.", "run": ""}
    sections = {name: content[name] for name in old if isinstance(content.get(name), Mapping)}
    return {**content, **{name: with_new_names(section, old[name]) for name, section in sections.items()}}


def save_weights(folder: Path, weights: Mapping[str, Tensor]) -> None:
    """Write model.safetensors."""
    write_whole(folder / WEIGHTS, as_safetensors(weights))


def as_safetensors(tensors: Mapping[str, Tensor]) -> bytes:
    """The content of a file of tensors; memory under two names, as tied weights have, is written twice."""
    kept: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        place = tensor.untyped_storage().data_ptr()
        kept[name] = tensor.clone() if place in seen else tensor
        seen.add(place)
    return safetensors.torch.save(kept)


def to_precision_of(tensors: Mapping[str, Tensor], model: nn.Module) -> None:
    """Make the weights of `model` numbers of the same kind as the first of these tensors."""
    precision = next((tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()), None)
    if precision is not None:
        model.to(precision)


def load_weights(model: nn.Module, path: Path) -> None:
    """Fill `model` from a safetensors file; names, shapes and types must match exactly."""
    try:
        tensors = safetensors.torch.load(read_regular(path, limit=LARGEST))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing: the model folder is incomplete. Save the model again.") from None
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is not a readable safetensors file ({error}). It may be damaged.") from None
    to_precision_of(tensors, model)
    expected = model.state_dict()
    problems = [f"lacks {name}" for name in expected if name not in tensors]
    problems += [f"has unknown {name}" for name in tensors if name not in expected]
    problems += [
        f"{name} has shape {tuple(tensors[name].shape)}, expected {tuple(value.shape)}"
        for name, value in expected.items()
        if name in tensors and tensors[name].shape != value.shape
    ]
    if problems:
        raise ValueError(f"{path} does not fit the model of its config.json: {'; '.join(problems[:5])}.")
    model.load_state_dict(tensors)


# The error that a bundled checkpoint states about itself, in the section "stated" of its config.json.
#
#     {"dataset": "ks-0.1-paper", "split": "test", "points": 64, "trajectories": 256, "rel_l2": ..., ...}
#
# Whoever makes the data again (`ssno data generate`) can measure it again: `ssno evaluate NAME` prints both.


@dataclass(frozen=True, kw_only=True)
class ReportedMetrics:
    """What was measured when the checkpoint was made, and on what."""

    dataset: str
    """The folder in ./data that `ssno data generate` makes."""
    split: str
    """Which part of it."""
    points: int
    """Grid points along the first axis."""
    trajectories: int
    """How many were forecast."""
    rel_l2: float
    """Error of rollouts."""
    rel_l2_onestep: float
    """Error of single steps from true frames."""
    rel_l2_normalised: float | None = None
    """Error of rollouts in normalised units, where physical ones say little: fields with a large mean."""
    lift_abs: float | None = None
    """Mean error of the lift coefficient, on clouds around aerofoils."""
    lift_rank: float | None = None
    """Rank correlation of the lift."""

    def errors(self) -> dict[str, float]:
        """The numbers by the names of their metrics."""
        names = ("rel_l2", "rel_l2_onestep", "rel_l2_normalised", "lift_abs", "lift_rank")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def data(self) -> str:
        """What they were measured on, in words."""
        return f"{self.trajectories} {self.split} trajectories of {self.dataset}, {self.points} points"

    def is_about(self, *, split: str, points: int, trajectories: int) -> bool:
        """Whether a measurement on the checkpoint's own data took the same part of them, on the same grid."""
        return (split, points, trajectories) == (self.split, self.points, self.trajectories)


def reported_metrics(config: Mapping[str, Any]) -> ReportedMetrics | None:
    """What the config.json of a model folder states; None if it states nothing, as those of ordinary runs."""
    section = config.get("stated")
    if section is None:
        return None
    needed = [f.name for f in fields(ReportedMetrics) if f.default is MISSING]
    if isinstance(section, Mapping) and (lacking := [name for name in needed if name not in section]):
        raise ValueError(f"`stated` in config.json lacks {', '.join(lacking)}. It may be damaged.")
    return description_from_json(ReportedMetrics, section, where="stated.")
