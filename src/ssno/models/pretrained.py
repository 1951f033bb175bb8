"""Models on disk: a folder with `config.json` and `model.safetensors`. No pickle; opening a folder runs no code.

Some trained ones come with the package and are found by name (`ssno.models.bundled`).

`config.json` holds {"format": "ssno-model", "version": 1, "config": {"model": name, ...}}.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import safetensors
import safetensors.torch
from torch import Tensor, nn

from ssno.base import read_document, read_regular, write_document, write_whole
from ssno.models.bundled import resolve_checkpoint
from ssno.models.config import OperatorConfig

FORMAT, VERSION = "ssno-model", 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"
FILES = (WEIGHTS, CONFIG)
LARGEST = 2**36
"""Bytes of weights that are read at most."""
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
    def from_pretrained(cls: type[Model], folder: str | Path) -> Model:
        """Read a model that `save_pretrained` wrote, or a bundled one by name, in evaluation mode."""
        folder = resolve_checkpoint(folder)
        config = cls.config_type.from_json(read_config(folder))
        model = config.build()
        assert isinstance(model, cls)
        load_weights(model, folder / WEIGHTS)
        return model.eval()


def read_config(folder: str | Path) -> dict[str, Any]:
    """The model's configuration in a model folder."""
    return read_model_document(folder)["config"]


def read_model_document(folder: str | Path) -> dict[str, Any]:
    """The parsed config.json of a model folder, its format checked."""
    path = Path(folder) / CONFIG
    try:
        content = read_document(path, format=FORMAT, versions=(VERSION,), remedy="Save the model again.")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"`{folder}` holds no model: {path} is missing. Write one with `save_pretrained`."
        ) from None
    if not isinstance(content.get("config"), dict):
        raise ValueError(f"{path} lacks the configuration of the model. It may be damaged; save the model again.")
    return content


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
        raise FileNotFoundError(f"{path} is missing. The model folder is not whole; save it again.") from None
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
