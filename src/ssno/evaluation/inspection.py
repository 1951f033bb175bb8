"""Inspect a trained model: what its state-space layers have learned, in physical units, beside where they started.

    found = inspect_run(open_run("runs/ks-ssno"))
    found.rows()[0]["damping"], found.rows()[0]["reach_95"]

A mode of a scan along an axis with grid spacing D (or of the memory, with time step D) and step s per grid point has

    decay length  D / (damping s)          distance over which it falls by 1/e
    wavelength    2 pi D / (|frequency| s)

and a kernel K, the sum of a channel's modes, has the reach

    reach(q) = the distance that holds the fraction q of  sum_l |K_l|.

A kernel exp(-a x) reaches 1/a for q = 1 - 1/e and 3/a for q = 0.95. `damping` itself is the number that the paper's
histograms show; it starts at 1/2 everywhere. The initial model is rebuilt from the run's seed and config. Figures are
in `ssno.plots.modes`.

Axes: h channel, n state mode, l grid point or age of a frame.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.base.formatting import number
from ssno.data.errors import DataError
from ssno.evaluation.tables import ResultTable
from ssno.layers.axial import AxialScan, ParallelAxialScan, ProductAxialScan, RasterScan, UnidirectionalScan
from ssno.layers.memory import LowRankModes, S4DBlock, TemporalMemory
from ssno.layers.modes import Modes
from ssno.models.registry import model_config
from ssno.runs.open import RunFolder

MEMORY = "memory"
ONE_FOLD, MOST = 1 - 1 / math.e, 0.95
ASSUMED_POINTS = 128
NAMES = ("x", "y", "z")
ARROWS = {"forward": "→", "backward": "←"}
LENGTHS = (
    "Learned (initial). Damping and frequency: means over modes, per unit of the layer's own step. Decay length (by "
    "1/e) and reach (distance that holds 63 % or 95 % of a kernel's absolute sum): medians, in the units of the axis. "
    "The arrow is the direction of the scan."
)
SCANS = (AxialScan, UnidirectionalScan, ParallelAxialScan, RasterScan, ProductAxialScan)


@dataclass(frozen=True, kw_only=True)
class SamplingGrid:
    """Grid and time step of a model; they turn steps into physical lengths."""

    points: tuple[int, ...]
    spacing: tuple[float, ...]
    names: tuple[str, ...]
    time_step: float = 1.0
    """Time between frames; 1 counts in frames."""

    def __post_init__(self) -> None:
        if not len(self.points) == len(self.spacing) == len(self.names):
            raise ValueError(
                "`points`, `spacing` and `names` must have one entry per grid axis, got "
                f"{self.points}, {self.spacing} and {self.names}."
            )


@dataclass(frozen=True, kw_only=True)
class System:
    """One set of state-space systems, one per channel: a direction of a scan, or the memory."""

    layer: str
    """Number of the spatial block from 1, or "memory"."""
    axis: str
    """Name of the grid axis; "time" for the memory."""
    direction: str
    """"forward" or "backward"."""
    unit: float
    """Physical distance between neighbouring taps."""
    damping: Float[Tensor, "h n"]
    frequency: Float[Tensor, "h n"]
    step: Float[Tensor, " h"]
    kernel: Float[Tensor, "h l"]
    """Response at distance l, without the skip connection (with it for the memory)."""

    @property
    def positions(self) -> Float[Tensor, " l"]:
        """Physical distance of every tap."""
        return self.unit * torch.arange(self.kernel.shape[1], dtype=torch.float64)

    @property
    def decay_lengths(self) -> Float[Tensor, "h n"]:
        """Distance over which each mode falls by 1/e; infinite without damping."""
        return self.unit / (self.damping * self.step[:, None])

    @property
    def wavelengths(self) -> Float[Tensor, "h n"]:
        """Distance of one oscillation of each mode; infinite for a mode that does not oscillate."""
        return 2 * math.pi * self.unit / (self.frequency.abs() * self.step[:, None])

    @property
    def envelope(self) -> Float[Tensor, " l"]:
        """Root mean square of the kernels over channels."""
        return self.kernel.square().mean(0).sqrt()

    @property
    def shares(self) -> Float[Tensor, "h l"]:
        """Fraction of every tap in the absolute sum of its channel's kernel."""
        size = self.kernel.abs()
        return size / size.sum(1, keepdim=True).clamp_min(torch.finfo(size.dtype).tiny)

    def reach(self, fraction: float) -> Float[Tensor, " h"]:
        """Distance that holds this fraction of each channel's kernel."""
        return reach(self.kernel, fraction, unit=self.unit)


def reach(kernel: Float[Tensor, "h l"], fraction: float, *, unit: float = 1.0) -> Float[Tensor, " h"]:
    """The distance that holds `fraction` of the sum of |kernel|; tap l covers [l, l + 1) times `unit`.

    With a zero-order hold, a tap is the integral of the continuous kernel over its cell, so the result is exact at cell
    borders and linear between them. A kernel of zeros has reach 0.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"`fraction` must be between 0 and 1, got {fraction}.")
    mass = kernel.double().abs()
    borders = torch.nn.functional.pad(mass.cumsum(1), (1, 0))  # h l+1
    wanted = fraction * borders[:, -1:]
    cell = (torch.searchsorted(borders, wanted) - 1).clamp(0, mass.shape[1] - 1)
    inside = (wanted - borders.gather(1, cell)) / mass.gather(1, cell).clamp_min(torch.finfo(torch.float64).tiny)
    return unit * (cell + inside)[:, 0] * (borders[:, -1] > 0)


@torch.no_grad()
def systems_of(model: nn.Module, grid: SamplingGrid) -> list[System]:
    """All state-space systems of a model, spatial ones in the order of its layers, then the memory."""
    blocks = [module for module in model.modules() if isinstance(module, SCANS)]
    found = [
        _system(scan.modes, str(layer), axis, scan.direction, unit, points)
        for layer, block in enumerate(blocks, start=1)
        for axis, unit, points, scan in _scans(block, grid)
    ]
    for memory in (module for module in model.modules() if isinstance(module, TemporalMemory)):
        modes = memory.block.modes
        assert isinstance(modes, Modes | LowRankModes)
        system = _system(modes, MEMORY, "time", "forward", grid.time_step, memory.window)
        found.append(replace(system, kernel=memory.block.taps(memory.window).cpu().double()))
    return found


def _scans(block: nn.Module, grid: SamplingGrid) -> Iterator[tuple[str, float, int, S4DBlock]]:
    """The one-way scans of a spatial block with the axis each runs along, its spacing and its number of points."""
    scans = list(block.scans)  # type: ignore[arg-type]
    for place, scan in enumerate(scans):
        if isinstance(block, RasterScan):  # one line through the whole grid, whose fastest axis sets the step
            axis = (len(scans) - 1 - place) % len(scans)
            name, points = f"{grid.names[axis]} line", math.prod(grid.points)
        else:
            axis, name, points = place, grid.names[place], grid.points[place]
        for part in scan.modules():
            if isinstance(part, S4DBlock):
                yield name, grid.spacing[axis], points, part


def _system(modes: Modes | LowRankModes, layer: str, axis: str, direction: str, unit: float, points: int) -> System:
    return System(
        layer=layer,
        axis=axis,
        direction=direction,
        unit=unit,
        damping=torch.exp(modes.log_damping).cpu().double(),
        frequency=modes.frequency.cpu().double(),
        step=torch.exp(modes.log_step).cpu().double(),
        kernel=modes.kernel(points).cpu().double(),
    )


def compare_systems(systems: Sequence[System], initial: Sequence[System]) -> list[dict[str, Any]]:
    """One row per system, learned against initial: damping and frequency (mean, spread), lengths (medians).

    Lengths are physical. `damping_change` is relative: 0.172 is the paper's "17.2 % increase from 0.5".
    """
    if len(systems) != len(initial):
        raise ValueError(f"`initial` must match `systems` one by one, got {len(initial)} for {len(systems)}.")
    return [_row(now, before) for now, before in zip(systems, initial, strict=True)]


def _row(now: System, before: System) -> dict[str, Any]:
    started = before.damping.mean().item()
    row: dict[str, Any] = {
        "layer": now.layer,
        "axis": now.axis,
        "direction": now.direction,
        "damping": now.damping.mean().item(),
        "damping_spread": now.damping.std(correction=0).item(),
        "initial_damping": started,
        "damping_change": now.damping.mean().item() / started - 1 if started else None,
        "frequency": now.frequency.mean().item(),
        "frequency_spread": now.frequency.std(correction=0).item(),
        "initial_frequency": before.frequency.mean().item(),
        "frequency_moved": (now.frequency - before.frequency).abs().mean().item(),
        "decay_length": _median(now.decay_lengths),
        "initial_decay_length": _median(before.decay_lengths),
        "wavelength": _median(now.wavelengths),
    }
    if now.layer == MEMORY:
        row["shares"] = now.shares.mean(0).tolist()
        row["initial_shares"] = before.shares.mean(0).tolist()
    for name, fraction in (("reach_63", ONE_FOLD), ("reach_95", MOST)):
        row[name] = _median(now.reach(fraction))
        row[f"initial_{name}"] = _median(before.reach(fraction))
    return row


def _median(values: Tensor) -> float | None:
    """The median, None if it is infinite: JSON has no infinity."""
    value = values.median().item()
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class RunInspection:
    """Learned and initial systems, matched one by one, and remarks about them."""

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

    def table(self) -> ResultTable:
        """One line per layer, axis and direction: learned (initial), as `LENGTHS` explains."""
        names = ("damping", "frequency", "decay_length", "reach_63", "reach_95")
        lines = []
        for row in self.rows():
            pairs = (f"{_length(row[name])} ({_length(row[f'initial_{name}'])})" for name in names)
            lines.append((row["layer"], f"{row['axis']} {ARROWS[row['direction']]}", *pairs))
        headings = ("layer", "axis", "damping", "frequency", "decay length", "reach 63 %", "reach 95 %")
        return ResultTable(f"{self.name}: learned (initial)", headings, tuple(lines))

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


def _length(value: float | None) -> str:
    """A number; a mode without damping has no decay length."""
    return "inf" if value is None else number(value)


def inspect_run(run: RunFolder) -> RunInspection:
    """Inspect the model of a run; a model without state-space layers and memory has no systems and a note."""
    model = run.forecaster.model
    grid, notes = sampling_grid_of(run)
    systems = systems_of(model, grid)
    if not systems:
        nothing = f"{run.model!r} has neither state-space layers nor a memory, so there are no kernels to inspect."
        return RunInspection(run.name, run.model, (), (), (nothing,))
    if not any(system.axis != "time" for system in systems):
        notes.append(f"{run.model!r} has no state-space layers in space; shown is its memory over time.")
    if run.seed is None:
        notes.append("The seed of the run is not recorded; initial steps and kernels are drawn with seed 0.")
    with torch.random.fork_rng():
        torch.manual_seed(run.seed or 0)
        initial = systems_of(model_config(run.model).from_json(run.config["config"]).build(), grid)
    return RunInspection(run.name, run.model, tuple(systems), tuple(initial), tuple(notes))


def sampling_grid_of(run: RunFolder) -> tuple[SamplingGrid, list[str]]:
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
        notes.append("Frames are not equally spaced in time, so ages in the memory are given in frames.")
    points, names = (tuple(getattr(axis, name) for axis in data.axes) for name in ("points", "name"))
    return SamplingGrid(points=points, spacing=data.spacing, names=names, time_step=time_step), notes


def _from_config(run: RunFolder) -> tuple[SamplingGrid, list[str]]:
    """What config.json tells when the data cannot be read."""
    n_dims = int(run.config["config"].get("n_dims", 1))
    spacing = run.forecaster.spacing or (1.0,) * n_dims
    if run.grid is not None and run.time_step is not None:
        return SamplingGrid(points=run.grid, spacing=spacing, names=NAMES[:n_dims], time_step=run.time_step or 1.0), []
    points = ((run.data and run.data.resolution) or ASSUMED_POINTS,) * n_dims
    note = (
        f"The data of the run were not found: kernels are drawn on {points[0]} points per axis with the training "
        "spacing, and ages in the memory are given in frames."
    )
    return SamplingGrid(points=points, spacing=spacing, names=NAMES[:n_dims]), [note]
