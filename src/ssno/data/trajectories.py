"""Trajectories: what every dataset looks like to the rest of the library.

    data = load_dataset("ks", "train").select(resolution=64)       # nothing read yet
    frames = data.read([0, 5, 9])                              # frames.state: (3, 26, 1, 64) float32

`Trajectories` is a lazy view: it knows names, times, grid and where the numbers are, and reads only what
`read` asks for. `select` makes another view (fewer frames, points or trajectories); strides in time and space
go into the file read. It holds no open file, so it can be pickled to worker processes. Formats live in
`ssno.data.readers`, windows in `ssno.data.windows`, normalisation in `ssno.data.normalise`.

Axes: n trajectory, t frame, c state field, k context field (known, not predicted), then the space axes (x, y,
z).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int, Num
from torch import Tensor

from ssno.base import byte_size
from ssno.data.errors import DataError
from ssno.data.grids import How, Periodic, Reduction, box, coarse_points, strides, uniform_step
from ssno.data.readers.arrays import MemoryArray
from ssno.data.readers.blocks import Part, default_fields, parse_pattern, split_channels
from ssno.data.units import NO_UNITS, PhysicalUnits, merged
from ssno.pde.geometry import CARTESIAN, Axis, Geometry

# How large a trajectory is: 4 bytes (float32) times frames, channels and points, context fields counted as varying.


@runtime_checkable
class Described(Protocol):
    """Anything that says what its trajectories look like: a problem, a layout, a set of trajectories."""

    @property
    def fields(self) -> tuple[str, ...]: ...

    @property
    def context_fields(self) -> tuple[str, ...]: ...

    @property
    def times(self) -> np.ndarray: ...

    @property
    def axes(self) -> Sequence[Axis]: ...


def trajectory_bytes(described: Described) -> int:
    """Bytes of one trajectory before compression."""
    channels = len(described.fields) + len(described.context_fields)
    return 4 * len(described.times) * channels * prod(axis.points for axis in described.axes)


Indices = slice | Sequence[int] | Int[np.ndarray, " n"]
DEFAULT_LIMIT = 8 * 2**30  # bytes that one `read` may take
MOST = 2**24  # trajectories
NAN = "nan"  # as the name of a mask: where values are not finite
MASKED = 0.0  # what fields hold where there are no data
PIECE = 64 * 2**20  # bytes taken from a file at once, so that converting and reducing need little memory of their own


class Frames(NamedTuple):
    """Frames of some trajectories in physical units, float32. Without context, `context` has no channels."""

    state: Float[Tensor, "n t c *grid"]
    context: Float[Tensor, "n t k *grid"]

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> "Frames":
        """The same frames on a device. Copies to CUDA go by pinned memory and do not wait for each other."""
        if device.type == "cuda" and self.state.device.type == "cpu":
            return Frames(*(part.pin_memory().to(device, dtype, non_blocking=True) for part in self))
        return Frames(*(part.to(device, dtype) for part in self))


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories:
    """A lazy set of trajectories on one grid. Make one with `load_dataset` or `Trajectories.from_array`.

    `rows` says where trajectory n is: part, row in that part, first frame. `frame_index` counts from that
    frame. `conventions` is the published dataset whose conventions hold (`ssno.data.windows`), whatever the name.
    `units` are those that the files state.
    """

    name: str
    fields: tuple[str, ...]
    context_fields: tuple[str, ...]
    times: Float[np.ndarray, " t"]
    axes: tuple[Axis, ...]
    parameters: Mapping[str, np.ndarray]
    parts: tuple[Part, ...]
    rows: Int[np.ndarray, "n 3"]
    frame_index: Int[np.ndarray, " t"]
    steps: tuple[int, ...]
    reductions: tuple[Reduction, ...] = ()
    notes: tuple[str, ...] = ()
    limit: int = DEFAULT_LIMIT
    geometry: Geometry = CARTESIAN
    mask: str | None = None
    mask_from_nan: bool = False
    conventions: str | None = None
    units: PhysicalUnits = NO_UNITS

    @classmethod
    def from_parts(
        cls,
        parts: Sequence[Part],
        *,
        name: str,
        fields: Sequence[str],
        context_fields: Sequence[str] = (),
        times: Float[np.ndarray, " t"],
        axes: Sequence[Axis],
        parameters: Mapping[str, np.ndarray] | None = None,
        notes: Sequence[str] = (),
        limit: int = DEFAULT_LIMIT,
        geometry: Geometry = CARTESIAN,
        published: bool = False,
        axis_units: Mapping[str, str] | None = None,
        time_unit: str = "",
    ) -> "Trajectories":
        """All trajectories of some parts (files), in order. What readers call; `notes` are remarks for the user.

        `published` says that the name is that of a published dataset or of our generator, not one that a user chose.
        Units of fields are those of the blocks.
        """
        grid = tuple(axis.points for axis in axes)
        for part in parts:
            where = part.state[0].array.label
            if part.grid != grid:
                raise DataError(f"{where} has the grid {part.grid}, expected {grid}.")
            if part.frames != len(times):
                raise DataError(f"{where} has {part.frames} frames, but there are {len(times)} times.")
            for blocks, names in ((part.state, fields), (part.context, context_fields)):
                channels = sum(len(block.channels) for block in blocks)
                if channels != len(names):
                    raise DataError(f"{where} has {channels} channels but {len(names)} names: {tuple(names)}.")
        if len({*fields, *context_fields}) < len(fields) + len(context_fields):
            raise DataError(f"Field names must differ, got {(*fields, *context_fields)}.")
        if not np.isfinite(times).all() or (np.diff(times) <= 0).any():
            raise DataError(f"Times must be finite and increasing, got {np.array2string(times, threshold=8)}.")
        if (count := sum(part.count for part in parts)) > MOST:
            raise DataError(f"{name!r} has {count} trajectories, more than the {MOST} that are read. Check its `axes`.")
        rows = [np.stack(np.broadcast_arrays(p, np.arange(part.count), 0), 1) for p, part in enumerate(parts)]
        return cls(
            name=name,
            fields=tuple(fields),
            context_fields=tuple(context_fields),
            times=np.asarray(times, np.float64),
            axes=tuple(axes),
            parameters=dict(parameters or {}),
            parts=tuple(parts),
            rows=np.concatenate(rows),
            frame_index=np.arange(len(times)),
            steps=(1,) * len(grid),
            notes=tuple(notes),
            limit=limit,
            geometry=geometry,
            conventions=name if published else None,
            units=PhysicalUnits(
                {key: unit for key, unit in _field_units(parts[0], (*fields, *context_fields)).items() if unit},
                {key: unit for key, unit in (axis_units or {}).items() if unit},
                time_unit,
            ),
        )

    @classmethod
    def from_array(
        cls,
        array: Num[np.ndarray, "..."] | Num[Tensor, "..."],
        *,
        axes: str | None = None,
        name: str = "array",
        fields: Sequence[str] | None = None,
        context_fields: Sequence[str] = (),
        dt: float | int = 1.0,
        times: Float[np.ndarray, " t"] | None = None,
        lengths: Sequence[float | int] | None = None,
        spacing: Sequence[float | int] | None = None,
        offsets: Sequence[float | int] | None = None,
        periodic: Periodic | Sequence[bool] | str = True,
        parameters: Mapping[str, np.ndarray] | None = None,
    ) -> "Trajectories":
        """Your own array: (batch, time, channel, *grid), or as `axes` says, for example "batch time x channel".

        `fields` names all channels, `context_fields` those among them that are known and not predicted.
        `lengths` are the physical lengths of the space axes (1 each if not given) or `spacing` the distances between
        points, in the order in which `axes` names them; `periodic` says which axes repeat: all or none, names, or a
        flag for each. `dt` is the time between frames.
        """
        values = array.detach().cpu().numpy() if isinstance(array, Tensor) else array
        if axes is None and not 4 <= values.ndim <= 6:
            raise DataError(
                f"`array` has shape {values.shape}, expected (batch, time, channel, x[, y[, z]]). "
                'Name its axes if they are others, for example axes="batch time x".'
            )
        pattern = parse_pattern(axes or " ".join(["batch time channel", *"xyz"[: values.ndim - 3]]))
        pattern.check(values.shape, what="`array`")
        names = default_fields(pattern.size("channel", values.shape)) if fields is None else tuple(fields)
        part = split_channels(MemoryArray(values, "`array`"), pattern, names, tuple(context_fields))
        if spacing is not None:
            if lengths is not None or len(spacing) != len(part.grid):
                raise DataError(f"Give `lengths` or `spacing`, one number per space axis {pattern.stored_space}.")
            lengths = [step * part.size(word) for step, word in zip(spacing, pattern.stored_space, strict=True)]
        named = pattern.stored_space
        stored = box(named, [part.size(word) for word in named], lengths=lengths, offsets=offsets, periodic=periodic)
        return cls.from_parts(
            [part],
            name=name,
            fields=[field for field in names if field not in context_fields],
            context_fields=context_fields,
            times=dt * np.arange(part.frames, dtype=np.float64) if times is None else times,
            axes=[stored[named.index(word)] for word in pattern.space],
            parameters=parameters,
        )

    def __post_init__(self) -> None:
        for key, values in self.parameters.items():
            if values.shape[:1] != (len(self.rows),):
                raise DataError(f"Parameter {key!r} has shape {values.shape} for {len(self.rows)} trajectories.")

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        known = f", context {', '.join(self.context_fields)}" if self.context_fields else ""
        grid = " x ".join(str(axis.points) for axis in self.axes)
        fields = ", ".join(self.fields)
        return f"Trajectories({self.name!r}: {len(self)} x {len(self.times)} frames of {fields} on {grid}{known})"

    @property
    def shape(self) -> tuple[int, ...]:
        """(trajectories, frames, state channels, *grid)."""
        return (len(self), len(self.times), len(self.fields), *(axis.points for axis in self.axes))

    @property
    def spacing(self) -> tuple[float, ...]:
        """Distance between neighbouring points along each space axis."""
        return tuple(axis.spacing for axis in self.axes)

    @property
    def quadrature_weights(self) -> Tensor | None:
        """Share of the domain per point, to broadcast over the grid; None where all points weigh the same."""
        weights = self.geometry.quadrature_weights([axis.points for axis in self.axes])
        return None if weights is None else torch.from_numpy(weights)

    @property
    def time_step(self) -> float:
        """Time between frames; an error if frames are not equally spaced."""
        return uniform_step(self.times, what=f"the times of {self.name!r}")

    def select(
        self,
        *,
        time_index: Indices | None = None,
        resolution: int | tuple[int, ...] | None = None,
        reduction: How = "stride",
        indices: Indices | None = None,
    ) -> "Trajectories":
        """Another view: some frames, some trajectories, fewer points.

        `resolution` counts points along the first axis and the others shrink in proportion; or one number per axis.
        """
        view = self
        if time_index is not None:
            chosen = _positions(time_index, len(self.times), what="time_index")
            if not len(chosen):
                raise DataError(f"`time_index` must choose some of the {len(self.times)} frames, got {time_index!r}.")
            if (np.diff(chosen) <= 0).any():
                raise DataError(f"`time_index` must increase, got {chosen.tolist()}.")
            view = replace(view, times=view.times[chosen], frame_index=view.frame_index[chosen])
        if resolution is not None:
            if not self.geometry.can_coarsen:
                raise DataError(f"{self.name!r} is a point cloud, which cannot be coarsened; leave `resolution` out.")
            if self.mask is not None and reduction != "stride":
                raise DataError(f"{self.name!r} has a mask; use reduction='stride', which mixes no points.")
            step = Reduction(coarse_points(self.axes, resolution), reduction)
            coarse = step.applied_to(self.axes)
            if reduction == "stride" and not self.reductions:
                finer = strides(self.axes, step.points)
                view = replace(view, steps=tuple(a * b for a, b in zip(self.steps, finer, strict=True)))
            else:
                view = replace(view, reductions=(*self.reductions, step))
            view = replace(view, axes=coarse)
        if indices is not None:
            chosen = _positions(indices, len(self), what="indices")
            kept = {key: values[chosen] for key, values in self.parameters.items()}
            view = replace(view, rows=view.rows[chosen], parameters=kept)
        return view

    def masked(self, name: str) -> "Trajectories":
        """The same trajectories with the context field `name` as mask: there are no data where it is not zero.

        "nan" makes a context field `mask` of the places where a field is not finite. Fields read as 0 there, the mask
        as 1, and statistics leave those points out.
        """
        if name != NAN and name not in self.context_fields:
            raise DataError(f"{self.name!r} has no context field {name!r} to be its mask, only {self.context_fields}.")
        if self.reductions:
            raise DataError(f"{self.name!r} has a mask; use reduction='stride', which mixes no points.")
        if name != NAN:
            return replace(self, mask=name)
        if "mask" in (*self.fields, *self.context_fields):
            raise DataError(f"{self.name!r} has a field called `mask` already; name it instead of nan.")
        return replace(self, context_fields=(*self.context_fields, "mask"), mask="mask", mask_from_nan=True)

    @property
    def mask_channel(self) -> int | None:
        """Which context field is the mask."""
        return None if self.mask is None else self.context_fields.index(self.mask)

    def cut(self, frames: int) -> "Trajectories":
        """Cut every trajectory into pieces of `frames` frames: one long run becomes many short ones."""
        if not 2 <= frames <= len(self.times):
            raise DataError(f"`frames` must be between 2 and {len(self.times)}, got {frames}.")
        uniform_step(self.frame_index.astype(np.float64), what="the time index of a dataset to be cut")
        pieces = len(self.times) // frames
        rows = np.repeat(self.rows, pieces, axis=0)
        rows[:, 2] += np.tile(self.frame_index[: pieces * frames : frames] - self.frame_index[0], len(self))
        kept = {key: np.repeat(values, pieces, axis=0) for key, values in self.parameters.items()}
        index = self.frame_index[:frames]
        return replace(self, rows=rows, times=self.times[:frames], frame_index=index, parameters=kept)

    def read(self, indices: Indices, *, finite: bool = True) -> Frames:
        """Read these trajectories only. With `finite`, NaN or infinity is an error that says where."""
        rows = self.rows[_positions(indices, len(self), what="indices")]
        need = len(rows) * trajectory_bytes(self)
        if need > self.limit:
            raise DataError(
                f"Reading {len(rows)} trajectories of {self.name!r} takes {byte_size(need)}, above the "
                f"limit of {byte_size(self.limit)}. Read fewer, select fewer points or raise the limit."
            )
        state = torch.empty(len(rows), *self.shape[1:])
        context = torch.empty(len(rows), len(self.times), len(self.context_fields), *self.shape[3:])
        with np.errstate(over="ignore", invalid="ignore"):  # beyond float32 is infinity, which `finite` reports
            for at, numbers in self._pieces(rows):
                state.numpy()[at] = numbers[0]
                context.numpy()[at, :, : numbers[1].shape[2]] = numbers[1]
        if (channel := self.mask_channel) is not None:
            outside = ~state.isfinite().all(2) if self.mask_from_nan else context[:, :, channel] != 0
            context[:, :, channel] = outside.to(context)
            state.masked_fill_(outside[:, :, None], MASKED)
        if finite:
            self._check_finite(state, self.fields, rows)
            self._check_finite(context, self.context_fields, rows)
        return Frames(state, context)

    def in_memory(self) -> "Trajectories":
        """The same trajectories, read once and kept: for sets that fit."""
        frames = self.read(slice(None))
        both = torch.cat(frames, dim=2).numpy()
        names = (*self.fields, *self.context_fields)
        pattern = parse_pattern(" ".join(["batch time channel", *(axis.name for axis in self.axes)]))
        part = split_channels(MemoryArray(both, f"{self.name!r} in memory"), pattern, names, self.context_fields)
        data = Trajectories.from_parts(
            [part],
            name=self.name,
            fields=self.fields,
            context_fields=self.context_fields,
            times=self.times,
            axes=self.axes,
            parameters=self.parameters,
            notes=self.notes,
            limit=self.limit,
            geometry=self.geometry,
        )
        data = replace(data, conventions=self.conventions, units=self.units)
        return data if self.mask is None else data.masked(self.mask)

    def _pieces(self, rows: Int[np.ndarray, "m 3"]) -> Iterator[tuple[slice, tuple[np.ndarray, np.ndarray]]]:
        """Runs of neighbouring rows, each read with one request of bounded size, after reduction."""
        span = np.ptp(self.frame_index) + 1
        grid = [-(-n // step) for n, step in zip(self.parts[0].grid, self.steps, strict=True)]
        one = 8 * int(span) * (len(self.fields) + len(self.context_fields)) * prod(grid)
        longest = max(1, PIECE // one)
        covered, inner = _as_slice(self.frame_index)
        length = len(self.times) * covered.step if isinstance(inner, slice) else 0  # of a piece that others may follow
        start = 0
        while start < len(rows):
            part, row, first = (int(value) for value in rows[start])
            scattered = self.parts[part].in_memory  # from memory, any rows can be taken at once
            stop = start + 1
            while stop < len(rows) and stop - start < longest:
                here, at, begins = rows[stop]
                if (here, begins) != (part, first) or not (scattered or at == row + stop - start):
                    break
                stop += 1
            count = 1
            while length and stop == start + count < len(rows) and count < longest:
                if tuple(rows[stop]) != (part, row, first + count * length):
                    break
                stop, count = stop + 1, count + 1
            wanted = rows[start:stop, 1] if scattered and count == 1 else slice(row, row + stop - start - count + 1)
            frames = slice(covered.start + first, covered.stop + first + (count - 1) * length, covered.step)
            numbers = self.parts[part].read(wanted, frames, self.steps)
            if count > 1:  # pieces of one trajectory that follow each other are read with one request, too
                numbers = tuple(values[0].reshape(count, len(self.times), *values.shape[2:]) for values in numbers)
            yield slice(start, stop), tuple(self._reduce(values[:, inner]) for values in numbers)  # type: ignore[misc]
            start = stop

    def _reduce(self, values: np.ndarray) -> np.ndarray:
        for step in self.reductions:
            values = step(values)
        return values

    def _check_finite(self, values: Float[Tensor, "m t c *grid"], names: tuple[str, ...], rows: np.ndarray) -> None:
        if not values.numel() or bool(values.sum().isfinite()):
            return  # a finite sum has finite terms; the converse is settled below
        bad = (~values.isfinite()).flatten(3).any(-1).nonzero()
        if len(bad):
            n, t, c = bad[0].tolist()
            part, row, _ = rows[n]
            where = self.parts[part].state[0].array.label
            raise DataError(
                f"{names[c]!r} is not finite in trajectory {row}, frame "
                f"{self.frame_index[t] + rows[n, 2]} of {where} ({len(bad)} such frames). "
                "`ssno data inspect` lists them. Gaps (land, obstacles) are read with --mask nan (--data.mask nan in "
                "training); `ssno data convert --drop-not-finite` leaves broken trajectories out."
            )


def _field_units(part: Part, names: Sequence[str]) -> dict[str, str]:
    blocks = (*part.state, *part.context)
    return dict(zip(names, [block.unit for block in blocks for _ in block.channels], strict=True))


def _positions(indices: Indices, length: int, *, what: str) -> Int[np.ndarray, " n"]:
    """Positions among `length` things, checked; negative ones count from the end."""
    if isinstance(indices, slice):
        return np.arange(length)[indices]
    chosen = np.asarray(indices)
    if chosen.size == 0:
        return np.zeros(0, np.int64)
    if not np.issubdtype(chosen.dtype, np.integer) or chosen.ndim != 1:
        raise TypeError(f"`{what}` must be a slice or a list of integers, got {indices!r}.")
    if chosen.min() < -length or chosen.max() >= length:
        raise DataError(f"`{what}` must lie between {-length} and {length - 1}, got {chosen.tolist()}.")
    return np.where(chosen < 0, chosen + length, chosen)


def _as_slice(index: Int[np.ndarray, " t"]) -> tuple[slice, slice | Int[np.ndarray, " t"]]:
    """The tightest strided read that covers increasing positions, and which of the frames read to keep."""
    step = gcd(*np.diff(index).tolist()) or 1
    covered = slice(int(index[0]), int(index[-1]) + 1, step)
    inner = (index - index[0]) // step
    return covered, slice(None) if len(inner) == inner[-1] + 1 else inner


# Several files of trajectories as one set.


def concatenate(sets: Sequence[Trajectories]) -> Trajectories:
    """Trajectories of several files, one after the other. Names, times and grids must agree."""
    first = sets[0]
    for other in sets[1:]:
        for what in (
            "name",
            "fields",
            "context_fields",
            "mask",
            "mask_from_nan",
            "geometry",
            "axes",
            "steps",
            "reductions",
        ):
            if getattr(other, what) != getattr(first, what):
                raise DataError(
                    f"These files cannot be joined: {what} is {getattr(first, what)} in {_where(first)} but "
                    f"{getattr(other, what)} in {_where(other)}."
                )
        if len(first.times) != len(other.times) or not np.allclose(first.times, other.times, rtol=1e-6, atol=0):
            raise DataError(f"These files cannot be joined: times differ between {_where(first)} and {_where(other)}.")
    offsets = np.cumsum([0, *(len(data.parts) for data in sets[:-1])])
    rows = [data.rows + np.array([offset, 0, 0]) for data, offset in zip(sets, offsets, strict=True)]
    shared = set.intersection(*(set(data.parameters) for data in sets))
    units, remarks = merged([data.units for data in sets]) if len(sets) > 1 else (first.units, [])
    return replace(
        first,
        parts=tuple(part for data in sets for part in data.parts),
        rows=np.concatenate(rows),
        parameters={key: np.concatenate([data.parameters[key] for data in sets]) for key in sorted(shared)},
        notes=tuple(dict.fromkeys([*(note for data in sets for note in data.notes), *remarks])),
        units=units,
    )


def _where(data: Trajectories) -> str:
    return data.parts[0].state[0].array.label
