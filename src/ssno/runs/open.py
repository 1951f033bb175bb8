"""A training run as an evaluation sees it: a folder with a forecaster, its config, and where its data are.

    run = open_run("runs/ks-ssno")            or one of its checkpoints, "runs/ks-ssno/last"
    run = open_run("ks-0.1-64")               a checkpoint that comes with the package
    data = run.load("test", resolution=128)   the run's own data, read on another grid

Training writes these folders (`ssno.training`); here they are only read.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ssno.base import description_from_json
from ssno.base.checks import LARGEST_SEED
from ssno.data.grids import Points
from ssno.data.load import DataOptions, in_our_layout, same_options, with_fields
from ssno.data.readers.registry import DEFAULTS, ReadOptions
from ssno.data.trajectories import Trajectories
from ssno.data.units import NO_UNITS, PhysicalUnits
from ssno.forecasting.forecaster import Forecaster
from ssno.models.pretrained import read_model_document, resolve_checkpoint
from ssno.native.engine import Precision
from ssno.runs.checkpoint import CONFIG
from ssno.runs.load import load_forecaster, run_folder_of

LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,63}")
"""Names of licences as SPDX lists them: MIT, CC-BY-4.0."""


@dataclass(frozen=True)
class TrainedOn:
    """What config.json says about the training data, as far as it is asked for."""

    shape: tuple[int, ...] | None = None
    times: tuple[float, float] | None = None
    units: PhysicalUnits = NO_UNITS

    def __post_init__(self) -> None:
        if self.shape is not None and len(self.shape) < 4:
            raise ValueError(f"`data.train.shape` must be (trajectories, frames, fields, *grid), got {self.shape}.")


@dataclass(frozen=True)
class RunFolder:
    """What a run left behind. `data` is None if it was started from Python with trajectories of the user's own."""

    folder: Path
    name: str
    forecaster: Forecaster
    config: dict[str, Any]
    data: DataOptions | None

    @property
    def seed(self) -> int | None:
        """The seed of the run, if its config says."""
        seed = self._section("train").get("seed")
        return seed if isinstance(seed, int) and 0 <= seed <= LARGEST_SEED else None

    @property
    def precision(self) -> Precision:
        """What its weights are kept in."""
        return "float64" if self._section("train").get("precision") == "float64" else "float32"

    @property
    def dataset(self) -> str | None:
        """The name of the data it was trained on, if its config says."""
        name = self._section("data").get("name")
        return name if isinstance(name, str) else None

    @property
    def grid(self) -> tuple[int, ...] | None:
        """Points along each axis of the data it was trained on, if its config says."""
        shape = self.trained_on.shape
        return None if shape is None else shape[3:]

    @property
    def time_step(self) -> float | None:
        """Time between the frames it was trained on, if its config says."""
        known = self.trained_on
        if known.times is None or known.shape is None:
            return None
        first, last = known.times
        return (last - first) / max(1, known.shape[1] - 1)

    @property
    def trained_steps(self) -> int | None:
        """How many steps training trajectories go on after the input frames, if its config says."""
        shape, known = self.trained_on.shape, self.forecaster.trained_steps
        return known if known is not None or shape is None else len(self.forecaster.window.plan(shape[1]).predicted)

    @property
    def licence(self) -> str:
        """Under which licence its weights were published, if its config says."""
        stated = self.config.get("licence")
        return stated if isinstance(stated, str) and LICENCE.fullmatch(stated) else "not stated"

    @property
    def model(self) -> str:
        """The model as commands call it."""
        return str(self.config["config"].get("model"))

    def load(
        self,
        split: str,
        *,
        resolution: Points | None = None,
        time_index: str | None = None,
        trajectories: int | None = None,
    ) -> Trajectories:
        """A split of the run's data, on the run's grid and frames or others; at most the first `trajectories`."""
        if self.data is None:
            raise ValueError(
                f"{self.folder} was started from Python, whose data have no description. Say which trajectories to "
                "use: `data` from Python, --data NAME_OR_PATH on the command line."
            )
        try:
            found = load_chosen(
                self.data, split, resolution=resolution, time_index=time_index, trajectories=trajectories
            )
        except FileNotFoundError as error:
            other = "Or name other data: --data NAME_OR_PATH on the command line, `data` from Python."
            raise FileNotFoundError(f"{error} {other}") from None
        return with_fields(found, self.forecaster.normalisers.context.fields, self.forecaster.mask)

    def alike(self, path: str | Path, given: ReadOptions = DEFAULTS) -> DataOptions:
        """Other data, read as the run's own were (`ssno.data.load`), except for what is `given`.

        Of data that do not describe themselves the same frames are taken, in pieces as long.
        """
        own = DataOptions() if self.data is None else self.data
        options = DataOptions(name=str(path), **vars(same_options(path, own, given)))
        if not in_our_layout(Path(path)):
            options = replace(options, segment=own.segment, time_index=own.time_index)
        if str(path) == own.name and not Path(path).exists():  # the dataset of training, by its name
            options = replace(options, viscosity=given.viscosity or own.viscosity, preset=own.preset)
        return options

    @property
    def trained_on(self) -> TrainedOn:
        """What its config says about the training data."""
        data = self.config.get("data")
        known = data.get("train") if isinstance(data, dict) else None
        if not isinstance(known, dict):
            return TrainedOn()
        asked = {name: known[name] for name in ("shape", "times", "units") if name in known}
        try:
            return description_from_json(TrainedOn, asked, where="data.train.")
        except ValueError as error:
            raise ValueError(f"{run_folder_of(self.folder) / CONFIG} is damaged: {error}") from None

    def _section(self, name: str) -> dict[str, Any]:
        run = self.config.get("run")
        section = run.get(name) if isinstance(run, dict) else None
        return section if isinstance(section, dict) else {}


def load_chosen(
    options: DataOptions,
    split: str,
    *,
    resolution: Points | None = None,
    time_index: str | None = None,
    trajectories: int | None = None,
) -> Trajectories:
    """A split of described data, with some of its options changed."""
    time_index = options.time_index if time_index is None else time_index
    data = replace(options, time_index=time_index).load(split, resolution=resolution)
    if not len(data):
        raise ValueError(f"{options.path or options.name} has no {split!r} trajectories. Take another `split`.")
    if trajectories is None:
        return data
    if not 1 <= trajectories <= len(data):
        raise ValueError(f"`trajectories` must lie between 1 and the {len(data)} of {split!r}, got {trajectories}.")
    return data.select(indices=range(trajectories))


def open_run(
    folder: str | Path,
    *,
    model: nn.Module | None = None,
    device: str | torch.device = "auto",
    precision: Precision | None = None,
) -> RunFolder:
    """Open the folder of a run (its best weights), or of one of its checkpoints (`best`, `last`, `epoch-0010`).

    A name that is no folder here is that of a bundled checkpoint (`ssno.models.pretrained`). `model` is a module of
    your own to fill, `device` where the forecaster will compute (`ssno.base.device`), `precision` in which numbers
    (`ssno.native.engine`).
    """
    folder = resolve_checkpoint(folder)
    home = run_folder_of(folder)
    config = read_model_document(home)
    described = config.get("run")
    data = None
    if isinstance(described, dict) and "model" in described:
        data = description_from_json(DataOptions, described.get("data", {}), where="run.data.")
    name = home.resolve().name
    return RunFolder(
        folder=folder,
        name=name if folder == home else f"{name}/{folder.name}",
        forecaster=load_forecaster(folder, model=model, device=device, precision=precision, document=config),
        config=config,
        data=data,
    )
