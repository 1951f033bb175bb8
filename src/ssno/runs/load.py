"""Forecasters on disk: a model folder (`ssno.models.pretrained`) whose config.json also holds units and window.

    {"format": "ssno-model", "version": 1, "config": {...}, "forecaster": {...}, "run": {...}, "provenance": {...}}

`Forecaster.save` writes them. The weights may be read alone, `SSNO.from_pretrained(folder)`, or with their units,
`load_forecaster(folder)`. Either takes the name of a bundled checkpoint too (`ssno.models.pretrained`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ssno.base import description_from_json
from ssno.base.device import choose_device
from ssno.data.envelope import Envelope
from ssno.data.normalise import Normaliser, Normalisers
from ssno.data.windows import ContextTime, Window
from ssno.forecasting.forecaster import Forecaster
from ssno.models.pretrained import (
    load_weights,
    read_model_document,
    resolve_checkpoint,
    results_folder,
    to_precision_of,
)
from ssno.models.registry import model_config
from ssno.models.wrapped import WrappedConfig, WrappedModule
from ssno.native.engine import Precision
from ssno.pde.geometry import LONGEST, SHORTEST
from ssno.runs.checkpoint import CONFIG, WEIGHTS, has_checkpoint, is_run, load_checkpoint, refuse_links


@dataclass(frozen=True)
class Units:
    """The section `forecaster` of config.json, as `Forecaster.describe` writes it."""

    state: dict[str, Any]
    context: dict[str, Any]
    predict_increment: bool
    window: Window
    context_time: ContextTime
    conserve_mean: bool = False
    spacing: tuple[float, ...] | None = None
    spacings: tuple[tuple[float, ...], ...] = ()
    mask: str | None = None
    envelope: Envelope | None = None

    def __post_init__(self) -> None:
        fields = self.normalisers().state.fields  # refuses what is none
        if self.envelope is not None and len(self.envelope.low) != len(fields):
            raise ValueError(f"`envelope` needs one number per field {fields}, got {len(self.envelope.low)}.")
        for step in (step for steps in (self.spacing or (), *self.spacings) for step in steps):
            if not SHORTEST <= step <= LONGEST:
                raise ValueError(f"`forecaster.spacing` must hold positive lengths, got {step}.")

    def normalisers(self) -> Normalisers:
        """Those of the predicted and of the context fields."""
        return Normalisers(Normaliser.from_json(self.state), Normaliser.from_json(self.context))


def read_units(folder: Path, document: Mapping[str, Any]) -> Units | None:
    """What the config.json of a folder says about units; None for a bare model."""
    section = document.get("forecaster")
    if not isinstance(section, dict):
        return None
    known = {field.name for field in fields(Units)}
    reference = document.get("config", {}).get("reference_spacing")
    read = {name: value for name, value in {"spacing": reference, **section}.items() if name in known}
    try:
        return description_from_json(Units, read, where="forecaster.")
    except ValueError as error:
        raise ValueError(f"{folder / CONFIG} is damaged: {error} Take another copy of the run.") from None


def run_folder_of(folder: Path) -> Path:
    """The folder with config.json: `folder` itself, or the run around a checkpoint folder such as `best` or `last`."""
    return folder.parent if has_checkpoint(folder) and not is_run(folder) else folder


def folder_for(run: Path, name: str) -> Path:
    """Where pictures about a run or one of its checkpoints go, unless the user names a place."""
    refuse_links(results_folder(run_folder_of(run)))
    return results_folder(run) / name


def load_forecaster(
    folder: str | Path,
    *,
    model: nn.Module | None = None,
    device: str | torch.device = "cpu",
    precision: Precision | None = None,
    document: Mapping[str, Any] | None = None,
) -> Forecaster:
    """Read a forecaster that a training run left behind: its best weights, or those of one of its checkpoints.

    Args:
        folder: of a run, of one of its checkpoints, or written by `Forecaster.save`; or the name of a bundled one.
        model: a module of the same shape to fill with the weights, for modules of your own that no name describes.
        device: where it will compute (`ssno.base.device`).
        precision: in which numbers (`ssno.native.engine`); None for those of its weights, which are float32 unless
            it was trained in float64.
        document: the content of config.json, if it has been read.
    """
    folder = resolve_checkpoint(folder)
    home = run_folder_of(folder)
    document = read_model_document(home) if document is None else document
    units = read_units(home, document)
    if units is None:
        raise ValueError(
            f"{folder} holds a bare model without units, so it cannot forecast. Load it with `from_pretrained`, or "
            "give the folder of a training run."
        )
    model = model_for(document["config"], model)
    if home == folder:
        load_weights(model, folder / WEIGHTS)
    else:
        fill_from_checkpoint(model, folder)
    forecaster = Forecaster(
        model,
        normalisers=units.normalisers(),
        predict_increment=units.predict_increment,
        conserve_mean=units.conserve_mean,
        window=units.window,
        context_time=units.context_time,
        spacing=units.spacing,
        spacings=units.spacings,
        mask=units.mask,
        envelope=units.envelope,
    )
    forecaster.to(choose_device(device))
    stored: Precision = "float64" if forecaster.dtype == torch.float64 else "float32"
    return forecaster.in_precision(precision or stored).eval()


def model_for(described: Mapping[str, Any], given: nn.Module | None = None) -> nn.Module:
    """The module that a config.json describes; or the `given` one, wrapped if a network from elsewhere was."""
    name = str(described.get("model"))
    if name == WrappedConfig.model_name:
        if given is None:
            raise ValueError(
                f"These are weights of a network from elsewhere ({described.get('module') or 'unknown'}): build it "
                "yourself and give it as `model`."
            )
        config = WrappedConfig.from_json(described)
        return given if isinstance(given, WrappedModule) else WrappedModule(given, config)
    return model_config(name).from_json(described).build_described() if given is None else given


def fill_from_checkpoint(model: nn.Module, folder: Path) -> None:
    """Put the weights of a checkpoint into `model`: the averaged ones if the run averages them, as in training."""
    tensors, _ = load_checkpoint(folder)
    averaged = {name.removeprefix("average/"): value for name, value in tensors.items() if name.startswith("average/")}
    own = {name.removeprefix("model/"): value for name, value in tensors.items() if name.startswith("model/")}
    to_precision_of(own, model)
    try:
        model.load_state_dict(own | averaged)
    except RuntimeError as error:
        raise ValueError(f"The checkpoint in {folder} does not fit the model of its run: {error}") from None
