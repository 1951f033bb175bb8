"""Forecasters on disk: a model folder (`ssno.models.pretrained`) whose config.json also holds units and window.

    {"format": "ssno-model", "version": 1, "config": {...}, "forecaster": {...}, "run": {...}, "provenance": {...}}

The weights may be read alone, `SSNO.from_pretrained(folder)`, or with their units, `load_forecaster(folder)`. Either
takes the name of a bundled checkpoint too (`ssno.models.bundled`).
"""

import dataclasses
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from ssno.base import description_from_json, write_document, write_whole
from ssno.base.device import choose_device
from ssno.data.normalise import Normaliser, Normalisers
from ssno.data.windows import Window
from ssno.forecasting.forecaster import Forecaster
from ssno.models.bundled import locate
from ssno.models.config import OperatorConfig
from ssno.models.pretrained import FORMAT, VERSION, load_weights, read_document
from ssno.models.registry import model_config
from ssno.runs.checkpoint import has_checkpoint, load_checkpoint


def describe(forecaster: Forecaster) -> dict[str, Any]:
    """Everything about a forecaster but its weights, as JSON values."""
    config = getattr(forecaster.model, "config", None)
    described: dict[str, Any] = {"model": type(forecaster.model).__name__}
    if isinstance(config, OperatorConfig):
        described = config.to_json()
    if described.get("reference_spacing", "unknown") is None:  # so that the model alone knows its grid too
        described["reference_spacing"] = forecaster.spacing
    return {
        "config": described,
        "forecaster": {
            "state": forecaster.normalisers.state.to_json(),
            "context": forecaster.normalisers.context.to_json(),
            "increment": forecaster.increment,
            "window": dataclasses.asdict(forecaster.window),
            "alignment": forecaster.alignment,
            "spacing": forecaster.spacing,
            "spacings": forecaster.spacings,
        },
    }


def save_description(folder: Path, forecaster: Forecaster, **more: Any) -> None:
    """Write config.json; `more` adds whole sections, such as the run and where it ran."""
    folder.mkdir(parents=True, exist_ok=True)
    write_document(folder / "config.json", {**describe(forecaster), **more}, format=FORMAT, version=VERSION)


def reference_spacing(folder: Path) -> tuple[float, ...] | None:
    """The grid spacing that the weights of a run refer to."""
    units = read_document(folder).get("forecaster")
    spacing = units.get("spacing") if isinstance(units, dict) else None
    return None if spacing is None else tuple(float(step) for step in spacing)


def save_weights(folder: Path, weights: dict[str, Tensor]) -> None:
    """Write model.safetensors."""
    content = safetensors.torch.save({name: value.detach().cpu().contiguous() for name, value in weights.items()})
    write_whole(folder / "model.safetensors", content)


def run_folder_of(folder: Path) -> Path:
    """The folder with config.json: `folder` itself, or the run around a checkpoint folder such as `best` or `last`."""
    return folder.parent if has_checkpoint(folder) and not (folder / "config.json").is_file() else folder


def load_forecaster(folder: str | Path, *, device: str | torch.device = "cpu") -> Forecaster:
    """Read a forecaster that a training run left behind: its best weights, or those of one of its checkpoints.

    The name of a bundled checkpoint does as well. `device` is where it will compute (`ssno.base.device`).
    """
    folder = locate(folder)
    home = run_folder_of(folder)
    document = read_document(home)
    units = document.get("forecaster")
    if not isinstance(units, dict):
        raise ValueError(
            f"{folder} holds a bare model without units, so it cannot forecast. Load it with `from_pretrained`, or "
            "give the folder of a training run."
        )
    values = document["config"]
    model = model_config(str(values.get("model"))).from_json(values).build()
    if home == folder:
        load_weights(model, folder / "model.safetensors")
    else:
        fill_from_checkpoint(model, folder)
    spacing = units.get("spacing")
    try:
        forecaster = Forecaster(
            model,
            normalisers=Normalisers(Normaliser.from_json(units["state"]), Normaliser.from_json(units["context"])),
            increment=bool(units["increment"]),
            window=description_from_json(Window, units["window"], where="forecaster.window."),
            alignment=units["alignment"],
            spacing=None if spacing is None else tuple(float(step) for step in spacing),
            spacings=[[float(step) for step in steps] for steps in units.get("spacings", ())],
        )
    except KeyError as error:
        raise ValueError(f"config.json of {folder} lacks forecaster.{error.args[0]}. It may be damaged.") from None
    return forecaster.to(choose_device(device)).eval()


def fill_from_checkpoint(model: nn.Module, folder: Path) -> None:
    """Put the weights of a checkpoint into `model`: the averaged ones if the run averages them, as in training."""
    tensors, _ = load_checkpoint(folder)
    averaged = {name.removeprefix("average/"): value for name, value in tensors.items() if name.startswith("average/")}
    own = {name.removeprefix("model/"): value for name, value in tensors.items() if name.startswith("model/")}
    try:
        model.load_state_dict(own | averaged)
    except RuntimeError as error:
        raise ValueError(f"The checkpoint in {folder} does not fit the model of its run: {error}") from None
