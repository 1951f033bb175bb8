"""Inspect a run: its model's state-space systems beside those it started from, on the grid of its data.

    found = inspect_run(open_run("runs/ks-ssno"))
    found.rows()[0]["damping"], found.rows()[0]["reach_95"]

The start is made again from the run's seed and config. The formulas are in `ssno.evaluation.inspection`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ssno.data.errors import DataError
from ssno.evaluation.inspection import Geometry, System, compare_systems, systems_of
from ssno.models.registry import model_config
from ssno.runs.folder import RunFolder

ASSUMED_POINTS = 128
NAMES = ("x", "y", "z")


@dataclass(frozen=True)
class RunInspection:
    """Learned and initial systems, matched one by one, and what the reader should know about them."""

    name: str
    model: str
    systems: tuple[System, ...]
    initial: tuple[System, ...]
    notes: tuple[str, ...] = ()

    def axes(self) -> list[str]:
        """Axes that state-space systems run along, "time" for the memory."""
        return list(dict.fromkeys(system.axis for system in self.systems))

    def along(self, axis: str) -> tuple[list[System], list[System]]:
        """Learned and initial systems of one axis."""
        pairs = [(a, b) for a, b in zip(self.systems, self.initial, strict=True) if a.axis == axis]
        return [now for now, _ in pairs], [before for _, before in pairs]

    def rows(self) -> list[dict[str, Any]]:
        """One row of numbers per system."""
        return compare_systems(self.systems, self.initial)

    def to_json(self) -> dict[str, Any]:
        """The rows, and everything they were computed from."""
        details = [
            {
                "positions": system.positions.tolist(),
                "kernel_rms": system.envelope.tolist(),
                "damping_values": system.damping.flatten().tolist(),
                "frequency_values": system.frequency.flatten().tolist(),
                "steps": system.step.tolist(),
            }
            for system in self.systems
        ]
        systems = [{**row, **detail} for row, detail in zip(self.rows(), details, strict=True)]
        return {"name": self.name, "model": self.model, "notes": list(self.notes), "systems": systems}


def inspect_run(run: RunFolder) -> RunInspection:
    """Everything that can be seen in the model of a run; a model with nothing to see has no systems and a note."""
    model = run.forecaster.model
    geometry, notes = geometry_of(run)
    systems = systems_of(model, geometry)
    if not systems:
        nothing = f"{run.model!r} has neither state-space layers nor a memory, so there are no kernels to look at."
        return RunInspection(run.name, run.model, (), (), (nothing,))
    if not any(system.axis != "time" for system in systems):
        notes.append(f"{run.model!r} has no state-space layers in space; what follows is its memory over time.")
    if run.seed is None:
        notes.append("The run does not say its seed; initial steps and kernels are drawn from another one.")
    initial = systems_of(initial_model(run), geometry)
    return RunInspection(run.name, run.model, tuple(systems), tuple(initial), tuple(notes))


def initial_model(run: RunFolder) -> nn.Module:
    """The model as it was before training."""
    values = run.config["config"]
    with torch.random.fork_rng():
        torch.manual_seed(run.seed or 0)
        return model_config(run.model).from_json(values).build()


def geometry_of(run: RunFolder) -> tuple[Geometry, list[str]]:
    """Grid and time step of the run's training data, as far as they can be found."""
    try:
        data = run.load("train")
    except (OSError, ValueError):
        return _from_config(run)
    notes = []
    try:
        time_step = data.time_step
    except DataError:
        time_step = 1.0
        notes.append("Frames are not equally spaced in time, so the memory counts in frames.")
    points, names = (tuple(getattr(axis, name) for axis in data.axes) for name in ("points", "name"))
    return Geometry(points=points, spacing=data.spacing, names=names, time_step=time_step), notes


def _from_config(run: RunFolder) -> tuple[Geometry, list[str]]:
    """What config.json knows when the data themselves are elsewhere."""
    n_dims = int(run.config["config"].get("n_dims", 1))
    spacing = run.forecaster.spacing or (1.0,) * n_dims
    described = run.config.get("run", {}).get("data", {})
    shape, times = described.get("shape"), described.get("times")
    if shape and times:  # a run started from Python says what its data were
        step = (times[1] - times[0]) / max(1, shape[1] - 1) or 1.0
        return Geometry(points=tuple(shape[3:]), spacing=spacing, names=NAMES[:n_dims], time_step=step), []
    points = (described.get("points") or ASSUMED_POINTS,) * n_dims
    note = (
        f"The run's data are not here: kernels are drawn on {points[0]} points per axis with the training spacing, and "
        "the memory counts in frames."
    )
    return Geometry(points=points, spacing=spacing, names=NAMES[:n_dims]), [note]
