"""A file in our layout that grows frame by frame: for forecasts that never fit into memory.

The layout is that of `ssno.data.store.storage`, so whatever reads datasets reads these files; only the chunks differ:
one chunk holds a block of frames of one trajectory and one field. Unlike a dataset, a forecast may hold values that are
not finite, because that is what the model said; `ssno data inspect` lists them.

Axes: b trajectory of a batch, t frame of a block, c field, k context field.
"""

from collections.abc import Sequence
from math import prod
from pathlib import Path
from types import TracebackType

import h5py
import numpy as np
from jaxtyping import Float

from ssno.data.store.storage import CHECKED, Layout, describe_shard, write_unit

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
        made = self.file["t0_fields"].create_dataset(name, (self.count, *shape), np.float32, chunks=chunk, **CHECKED)
        made.attrs["dim_varying"] = np.ones(len(self.layout.axes), dtype=bool)
        made.attrs.update({"sample_varying": True, "time_varying": varies})
        write_unit(made, self.layout.units.fields.get(name, ""))

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
