"""Shards: HDF5 files in The Well's layout, the same bytes every time.

A shard holds N trajectories of one split:

    /                     dataset_name, grid_type, n_spatial_dims, n_trajectories; simulation_parameters (the
                          names of root attributes that are numbers); context_fields (names in t0_fields that
                          are known, not predicted); the further attributes of `Layout`
    /dimensions           spatial_dims; `time` (T,), and per axis its coordinates (points,), float64, with the
                          attributes length, offset, periodic; `units` here and of fields, where known
    /boundary_conditions  per axis a group `<axis>_boundary`: bc_type, mask, values
    /scalars              drawn parameters (N,), listed in field_names; vector parameters (N, ...), listed in
                          vector_names, because The Well's reader stacks everything that is in field_names
    /t0_fields            every field and context field, (N, T, *grid) float32; a context field that is
                          constant in time is (N, *grid) with time_varying = False
    /t1_fields, t2_fields empty, but The Well's reader expects them

One chunk is one trajectory of one field: shuffled, gzip level 1, checksummed (fletcher32). The file is built
in memory, trajectory by trajectory, with no time stamps and a fixed format version, so its bytes depend on its
content only. Writing it to disk is `ssno.base.atomic_write`. Axes: t frame, c field, k context field.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import TracebackType

import h5py
import numpy as np
from jaxtyping import Float

from ssno.data.units import NO_UNITS, PhysicalUnits
from ssno.pde.geometry import CARTESIAN, Axis, Geometry
from ssno.pde.problems.problem import Parameters

TEXT = h5py.string_dtype()
CHECKED = {"shuffle": True, "compression": "gzip", "compression_opts": 1, "fletcher32": True}
OWN_ATTRIBUTES = (
    "dataset_name",
    "grid_type",
    "n_spatial_dims",
    "n_trajectories",
    "simulation_parameters",
    "context_fields",
)


class NotFinite(ValueError):
    """A value that would have been written is not finite: in trajectory `index` of the shard, at `place`."""

    def __init__(self, index: int, place: str):
        super().__init__(index, place)
        self.index, self.place = index, place

    def __str__(self) -> str:
        return f"Trajectory {self.index} of the shard is not finite at {self.place}; nothing was written."


@dataclass(frozen=True)
class Layout:
    """What the trajectories of a shard share. `parameters` are numbers; `attributes` go to the root as is."""

    name: str
    fields: tuple[str, ...]
    axes: tuple[Axis, ...]
    times: Float[np.ndarray, " t"]
    context_fields: tuple[str, ...] = ()
    geometry: Geometry = CARTESIAN
    parameters: Mapping[str, int | float] = field(default_factory=dict)
    attributes: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    units: PhysicalUnits = NO_UNITS

    def __post_init__(self) -> None:
        names = (*self.fields, *self.context_fields)
        if not self.fields or len(set(names)) < len(names) or not all(names):
            raise ValueError(f"`fields` and `context_fields` need different, non-empty names, got {names}.")
        for name in names:
            if "\0" in name or {"", "."} & set(name.split("/")):
                raise ValueError(f"A field cannot be called {name!r} in an HDF5 file. Give it a name of letters.")
        attributes = (*OWN_ATTRIBUTES, *self.attributes, *self.parameters)
        if twice := sorted({name for name in attributes if attributes.count(name) > 1}):
            raise ValueError(f"Root attributes are given twice: {', '.join(twice)}. Rename the parameter or attribute.")

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of points along every axis."""
        return tuple(axis.points for axis in self.axes)


class ShardEncoder:
    """Builds one shard in memory: `append` each of `count` trajectories in turn, `finish` gives the bytes."""

    def __init__(self, layout: Layout, *, count: int):
        if count < 1:
            raise ValueError(f"`count` must be at least 1, got {count}.")
        self.layout, self.count = layout, count
        self.parameters: list[Parameters] = []
        self.context_frames: int | None = None
        name = secrets.token_hex(8)  # HDF5 knows open files by name, even those in memory; it is stored nowhere
        self.file = h5py.File(name, "w", driver="core", backing_store=False, libver=("v110", "v110"))
        describe_shard(self.file, layout, count=count)

    def append(
        self,
        state: Float[np.ndarray, "t c *grid"],
        context: Float[np.ndarray, "t_or_1 k *grid"] | None = None,
        *,
        parameters: Parameters | None = None,
    ) -> None:
        """Add the next trajectory. Values are stored as float32 and must be finite as such."""
        layout, index = self.layout, len(self.parameters)
        parameters = {} if parameters is None else parameters
        if index == self.count:
            raise ValueError(f"This shard was declared with `count={self.count}` trajectories; one more came.")
        expected = (len(layout.times), len(layout.fields), *layout.grid)
        if state.shape != expected:
            raise ValueError(f"`state` must be (time, field, *grid) = {expected}, got {state.shape}.")
        self._check_context(context)
        self._check_parameters(parameters)
        for number, name in enumerate(layout.fields):
            self._store(index, name, state[:, number], constant=False)
        for number, name in enumerate(layout.context_fields):
            assert context is not None
            self._store(index, name, context[:, number], constant=len(context) < len(layout.times))
        self.parameters.append(parameters)

    def finish(self) -> bytes:
        """The bytes of the whole file."""
        if len(self.parameters) < self.count:
            raise ValueError(
                f"The shard has {len(self.parameters)} of {self.count} trajectories; append the rest first."
            )
        self._store_parameters()
        self.file.flush()
        image = self.file.id.get_file_image()
        self.file.close()
        return image

    def _check_context(self, context: np.ndarray | None) -> None:
        layout = self.layout
        if context is None:
            if layout.context_fields:
                raise ValueError(f"`context` is missing; this layout has the fields {layout.context_fields}.")
            return
        frames = len(context) if self.context_frames is None else self.context_frames
        expected = (frames, len(layout.context_fields), *layout.grid)
        if context.shape != expected or frames not in (1, len(layout.times)):
            raise ValueError(
                f"`context` must be (time, field, *grid) = {expected} with 1 or {len(layout.times)} times, "
                f"the same for all trajectories; got {context.shape}."
            )
        self.context_frames = frames

    def _check_parameters(self, parameters: Parameters) -> None:
        for name, value in parameters.items():
            if not np.isfinite(value).all():
                raise NotFinite(len(self.parameters), f"parameter {name!r}")
        shapes = {name: np.shape(value) for name, value in parameters.items()}
        first = {name: np.shape(value) for name, value in (self.parameters or [parameters])[0].items()}
        if shapes != first:
            raise ValueError(f"`parameters` must have the same names and shapes for all: {first}, got {shapes}.")

    def _store(self, index: int, name: str, frames: np.ndarray, *, constant: bool) -> None:
        fields = self.file["t0_fields"]
        with np.errstate(over="ignore"):
            values = frames.astype(np.float32)
        bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if bad.any():
            frame = int(bad.argmax())
            raise NotFinite(index, f"field {name!r}, frame {frame} (time {self.layout.times[frame]:.6g})")
        values = values[0] if constant else values
        if name not in fields:
            create_field(self.file, self.layout, name, (self.count, *values.shape), chunk=(1, *values.shape))
        fields[name][index] = values

    def _store_parameters(self) -> None:
        scalars = self.file.create_group("scalars")
        listed: dict[str, list[str]] = {"field_names": [], "vector_names": []}
        for name in self.parameters[0]:
            values = np.stack([np.asarray(parameters[name]) for parameters in self.parameters])
            dataset = scalars.create_dataset(
                name, data=values, chunks=(1, *values.shape[1:]) if values.ndim > 1 else True, **CHECKED
            )
            dataset.attrs.update({"sample_varying": True, "time_varying": False})
            listed["field_names" if values.ndim == 1 else "vector_names"].append(name)
        for attribute, names in listed.items():
            _write_names(scalars, attribute, names)


def describe_shard(file: h5py.File, layout: Layout, *, count: int) -> None:
    """Everything about a shard of `count` trajectories but its numbers: names, times, axes, boundaries."""
    root = file.attrs
    root["dataset_name"] = layout.name
    root["grid_type"] = layout.geometry.name
    root["n_spatial_dims"] = len(layout.axes)
    root["n_trajectories"] = count
    _write_names(file, "simulation_parameters", list(layout.parameters))
    _write_names(file, "context_fields", layout.context_fields)
    for name, value in {**layout.parameters, **layout.attributes}.items():
        root[name] = value
    dimensions = file.create_group("dimensions")
    _write_names(dimensions, "spatial_dims", [axis.name for axis in layout.axes])
    time = dimensions.create_dataset("time", data=layout.times, chunks=True, **CHECKED)
    time.attrs["sample_varying"] = False
    write_unit(time, layout.units.time)
    boundaries = file.create_group("boundary_conditions")
    for axis in layout.axes:
        points = dimensions.create_dataset(axis.name, data=axis.coordinates(), chunks=True, **CHECKED)
        points.attrs.update({"sample_varying": False, "time_varying": False})
        points.attrs.update({"length": axis.length, "offset": axis.offset, "periodic": axis.periodic})
        write_unit(points, layout.units.axes.get(axis.name, ""))
        _write_boundary(boundaries.create_group(f"{axis.name}_boundary"), axis)
    for order in range(3):
        names = (*layout.fields, *layout.context_fields) if order == 0 else ()
        _write_names(file.create_group(f"t{order}_fields"), "field_names", names)


def create_field(file: h5py.File, layout: Layout, name: str, shape: tuple[int, ...], *, chunk: tuple[int, ...]) -> None:
    """An empty field of `shape` (trajectory, time, *grid), or (trajectory, *grid) if it is constant in time."""
    made = file["t0_fields"].create_dataset(name, shape, np.float32, chunks=chunk, **CHECKED)
    made.attrs["dim_varying"] = np.ones(len(layout.axes), dtype=bool)
    made.attrs.update({"sample_varying": True, "time_varying": len(shape) > 1 + len(layout.axes)})
    write_unit(made, layout.units.fields.get(name, ""))


def write_unit(node: h5py.Dataset, unit: str) -> None:
    """State the unit of some numbers, as NetCDF does; without one nothing is written."""
    if unit:
        node.attrs["units"] = unit


def _write_names(node: h5py.Group, attribute: str, names: Sequence[str]) -> None:
    node.attrs.create(attribute, np.array(list(names), dtype=object), shape=(len(names),), dtype=TEXT)


def _write_boundary(group: h5py.Group, axis: Axis) -> None:
    """Which points of the axis lie at a boundary, and of what kind; both kinds prescribe no values."""
    _write_names(group, "associated_dims", [axis.name])
    _write_names(group, "associated_fields", [])
    group.attrs.update(
        {"bc_type": "periodic" if axis.periodic else "open", "sample_varying": False, "time_varying": False}
    )
    mask = np.zeros(axis.points, dtype=bool)
    mask[[0, -1]] = True
    group.create_dataset("mask", data=mask, chunks=True, **CHECKED)
    group.create_dataset("values", data=np.zeros(mask.sum(), dtype=np.float32), chunks=True, **CHECKED)


# A file in our layout that grows frame by frame: for forecasts that never fit into memory.
#
# The layout is that of `ssno.data.storage`, so whatever reads datasets reads these files; only the chunks differ:
# one chunk holds a block of frames of one trajectory and one field. Unlike a dataset, a forecast may hold values that
# are not finite, because that is what the model said; `ssno data inspect` lists them.
#
# Axes: b trajectory of a batch, t frame of a block, c field, k context field.

BLOCK_BYTES = 4 * 2**20  # of frames written at once
MOST_FRAMES = 32


class FrameWriter:
    """Writes `count` trajectories to a new file, a block of frames of some of them at a time. Use it with `with`.

    `constant_context` says that context fields do not vary in time; they are then stored once per trajectory.
    """

    def __init__(self, path: Path, layout: Layout, *, count: int, constant_context: bool = False):
        if count < 1:
            raise ValueError(f"`count` must be at least 1, got {count}.")
        self.layout, self.count, self.constant = layout, count, constant_context
        self.file = h5py.File(path, "w", libver=("v110", "v110"))
        describe_shard(self.file, layout, count=count)
        names = self.file.create_group("scalars").attrs
        for attribute in ("field_names", "vector_names"):
            names.create(attribute, np.array([], dtype=object), shape=(0,), dtype=h5py.string_dtype())
        frames = len(layout.times)
        for name in layout.fields:
            self._make(name, (frames, *layout.grid))
        for name in layout.context_fields:
            self._make(name, layout.grid if constant_context else (frames, *layout.grid))

    @property
    def block(self) -> int:
        """How many frames to hand over at once: a few megabytes per trajectory and field."""
        return block_frames(self.layout.grid, len(self.layout.times))

    def write(
        self, first: int, frame: int, state: Float[np.ndarray, "b t c *grid"], context: np.ndarray | None = None
    ) -> None:
        """Frames `frame`, `frame + 1`, ... of trajectories `first`, `first + 1`, ...; context is (b, t, k, *grid)."""
        end = (first + len(state), frame + state.shape[1])
        if end[0] > self.count or end[1] > len(self.layout.times) or min(first, frame) < 0:
            raise ValueError(
                f"`state` ends at trajectory {end[0]} and frame {end[1]}, but the file was declared with {self.count} "
                f"trajectories of {len(self.layout.times)} frames."
            )
        rows, columns = slice(first, end[0]), slice(frame, end[1])
        self._store(self.layout.fields, state, rows, columns)
        if context is not None and not (self.constant and frame):
            self._store(self.layout.context_fields, context, rows, columns)

    def truncate(self, frames: int) -> None:
        """Keep the first `frames` frames of every trajectory."""
        if frames == len(self.layout.times):
            return
        names = self.layout.fields if self.constant else (*self.layout.fields, *self.layout.context_fields)
        for name in names:
            self.file["t0_fields"][name].resize(frames, axis=1)
        self.file["dimensions/time"].resize(frames, axis=0)

    def remark(self, name: str, lines: Sequence[str]) -> None:
        """A root attribute with these lines; none if there are none."""
        if lines:
            self.file.attrs[name] = "\n".join(lines)

    def __enter__(self) -> "FrameWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()

    def _make(self, name: str, shape: tuple[int, ...]) -> None:
        varies = len(shape) > len(self.layout.grid)
        chunk = (1, min(self.block, shape[0]), *shape[1:]) if varies else (1, *shape)
        create_field(self.file, self.layout, name, (self.count, *shape), chunk=chunk)

    def _store(self, names: Sequence[str], values: np.ndarray, rows: slice, columns: slice) -> None:
        for number, name in enumerate(names):
            target = self.file["t0_fields"][name]
            if target.ndim == 1 + len(self.layout.grid):
                target[rows] = values[:, 0, number]
            else:
                target[rows, columns] = values[:, :, number]


def block_frames(grid: Sequence[int], frames: int) -> int:
    """Frames of one field that make a block."""
    return max(1, min(frames, BLOCK_BYTES // (4 * prod(grid)), MOST_FRAMES))
