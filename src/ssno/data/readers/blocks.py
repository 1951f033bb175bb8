"""Stored arrays with named axes, and the group of them that makes up one file of trajectories.

A `Block` is one array, the pattern that names its axes and the channels taken from it. A `Part` is everything
read from one file: blocks that give the state and blocks that give the context (context fields that are not
predicted). Formats differ only in how their blocks are found (`ssno.data.readers`); from here on everything
is (trajectory, frame, channel, *grid).

Axes: n trajectory, t frame, c channel, then the space axes.
"""

import re
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ssno.base import nearest
from ssno.base.checks import in_units
from ssno.data.errors import DataError
from ssno.data.readers.arrays import UNPACKED, LazyArray, MemoryArray, Packing, Rows

# Names for the axes of an array, such as "batch time x channel".
#
# A pattern gives every axis of an array one word, in the order in which the axes are stored:
#
#     batch      trajectory             (also: sample, trajectory, run, case, experiment, simulation, realization,
#                                        ensemble, member, b, n)
#     time       stored frame           (also: t, step, frame, snapshot)
#     channel    physical field         (also: c, field, variable)
#     1          an axis of length one, dropped
#     any other  a space axis: x, y, z, lat, lon, ...
#
# `batch`, `channel` and, for fields that do not change, `time` may be missing; one to three space axes must be
# there. Space axes called x, y, z come out in that order however they are stored; other names keep the order of
# the pattern. `Pattern.arrange` turns an array stored in any order into our layout (batch, time, channel,
# *grid).

SYNONYMS = {
    "batch": {"batch", "sample", "trajectory", "member", "realization", "realisation", "ensemble", "run", "case"}
    | {"experiment", "simulation", "b", "n"},
    "time": {"time", "t", "step", "frame", "snapshot"},
    "channel": {"channel", "channels", "c", "field", "fields", "variable", "component"},
    "x": {"x", "nx"},
    "y": {"y", "ny"},
    "z": {"z", "nz"},
}
MEANING = {word + end: role for role, words in SYNONYMS.items() for word in words for end in ("", "s")}
MEANING["trajectories"] = "batch"
CANONICAL_SPACE = ("x", "y", "z")
SPACE = {
    *CANONICAL_SPACE,
    "lat",
    "lon",
    "latitude",
    "longitude",
    "r",
    "radius",
    "theta",
    "phi",
    "depth",
    "height",
    "level",
}


@dataclass(frozen=True)
class Pattern:
    """One word per stored axis. Build it with `parse_pattern`."""

    words: tuple[str, ...]

    @property
    def stored_space(self) -> tuple[str, ...]:
        """The space axes in the order in which they are stored and named."""
        return tuple(word for word in self.words if word not in ("batch", "time", "channel", "1"))

    @property
    def space(self) -> tuple[str, ...]:
        """The space axes in the order of our layout."""
        words = self.stored_space
        return tuple(sorted(words)) if set(words) <= set(CANONICAL_SPACE) else words

    def axis(self, word: str) -> int | None:
        """Position of a word among the stored axes, or None."""
        return self.words.index(word) if word in self.words else None

    def size(self, word: str, shape: tuple[int, ...]) -> int:
        """Length of an axis of an array of this shape; 1 if the pattern does not have it."""
        position = self.axis(word)
        return 1 if position is None else shape[position]

    def check(self, shape: tuple[int, ...], *, what: str) -> None:
        """Refuse a shape that the pattern does not describe."""
        if len(self.words) != len(shape):
            raise DataError(
                f"`axes` names {len(self.words)} axes ({self}) but {what} has {len(shape)}: {shape}. "
                f"Give one word per axis, for example {example_pattern(len(shape))!r}."
            )
        for word, length in zip(self.words, shape, strict=True):
            if word == "1" and length != 1:
                raise DataError(f"`axes` marks an axis of {what} with 1, but it has length {length}: {shape}.")
            if length < 1:
                raise DataError(f"{what} is empty along {word!r}: its shape is {shape}.")

    def arrange(self, array: np.ndarray, space: tuple[str, ...]) -> np.ndarray:
        """View an array as (batch, time, channel, *space); missing axes get length one."""
        kept = [word for word in self.words if word != "1"]
        array = array.reshape([n for n, word in zip(array.shape, self.words, strict=True) if word != "1"])
        wanted = ("batch", "time", "channel", *space)
        array = array.transpose([kept.index(word) for word in wanted if word in kept])
        return np.expand_dims(array, tuple(i for i, word in enumerate(wanted) if word not in kept))

    def __str__(self) -> str:
        return " ".join(self.words)


def parse_pattern(text: str) -> Pattern:
    """Read a pattern such as "batch time x channel"; words may be separated by spaces or commas."""
    raw = [word for word in re.split(r"[\s,]+", text.strip().lower()) if word]
    words = tuple(MEANING.get(word, word) for word in raw)
    for word in words:
        if not (word.isidentifier() or word == "1"):
            raise DataError(f"`axes` has the word {word!r}, which is not a name. {_HELP}")
    repeated = sorted({word for word in words if word != "1" and words.count(word) > 1})
    if repeated:
        raise DataError(f"`axes` names {' and '.join(repeated)} more than once in {text!r}. {_HELP}")
    pattern = Pattern(words)
    # A misspelt reserved word would silently become a space axis.
    for word in pattern.space:
        if near := nearest(word, ("batch", "time", "channel"), cutoff=0.75):
            raise DataError(f"`axes` has the word {word!r}; did you mean {near!r}? {_HELP}")
    if len(pattern.space) == 3 and (odd := [word for word in pattern.space if word not in SPACE]):
        raise DataError(
            f"`axes` has the word {odd[0]!r}, which would be a third space axis beside "
            f"{' and '.join(word for word in pattern.space if word != odd[0])}. Call it batch if it counts "
            "trajectories, or x, y, z if it is space."
        )
    if not 1 <= len(pattern.space) <= 3:
        raise DataError(f"`axes` {text!r} names {len(pattern.space)} space axes, expected 1 to 3. {_HELP}")
    return pattern


def example_pattern(ndim: int) -> str:
    """A plausible pattern for an array of `ndim` axes, to show in messages."""
    examples = {2: "time x", 3: "batch time x", 4: "batch time x channel", 5: "batch time x y channel"}
    return examples.get(ndim, "batch time x y z channel" if ndim == 6 else "time x")


_HELP = 'Write one word per stored axis, for example "batch time x channel".'


# Frames at equally spaced times from frames at any times: linear interpolation, trajectory by trajectory.
#
#  u(t) = (1 - w) u_i + w u_{i+1},   w = (t - t_i) / (t_{i+1} - t_i),   t counted from the first frame of its own
#
# Axes: n trajectory, t frame, c channel, then the space axes.

MOST_FRAMES = 10**6
ROUNDING = 1e-6  # of a step: the last frame counts although its time was rounded


@dataclass(frozen=True, eq=False)
class Resampling:
    """From stored `stored_times` (one for every trajectory, or one for all) to `times`; both begin with zero."""

    stored_times: Float[np.ndarray, "n t"]
    times: Float[np.ndarray, " m"]

    @classmethod
    def every(cls, step: float, stored_times: Float[np.ndarray, "n t"], *, what: str) -> "Resampling":
        """Frames `step` apart, from the first of each trajectory to the end of the shortest."""
        if not np.isfinite(stored_times).all() or (np.diff(stored_times) <= 0).any():
            raise DataError(f"{what} must be finite and increasing to be resampled.")
        stored_times = stored_times - stored_times[:, :1]
        shortest = float(stored_times[:, -1].min())
        count = int(in_units(shortest, step, rounding=ROUNDING)) + 1
        if count < 2:
            raise DataError(
                f"`resample={step:g}` exceeds the shortest trajectory, {shortest:g}. Choose a smaller step."
            )
        if count > MOST_FRAMES:
            raise DataError(f"`resample={step:g}` makes {count} frames of {shortest:g}. Choose a larger step.")
        return cls(stored_times, np.minimum(step * np.arange(count), shortest))

    def source(self, frames: slice) -> slice:
        """Stored frames between which the wanted ones lie, in every trajectory."""
        wanted = self.times[frames]
        before = [int(np.searchsorted(row, wanted.min(), side="right")) - 1 for row in self.stored_times]
        after = [int(np.searchsorted(row, wanted.max(), side="left")) for row in self.stored_times]
        last = self.stored_times.shape[1] - 1
        return slice(min(max(0, min(before)), last - 1), min(last, max(*after, 1)) + 1)

    def interpolate(
        self, stored: Float[np.ndarray, "n s c *grid"], rows: Rows, frames: slice
    ) -> Float[np.ndarray, "n t c *grid"]:
        """The wanted frames of some trajectories from the stored frames `source(frames)`."""
        wanted, taken = self.times[frames], self.source(frames)
        stored_times = self.stored_times[:, taken] if len(self.stored_times) == 1 else self.stored_times[rows][:, taken]
        stored_times = np.broadcast_to(stored_times, (len(stored), stored_times.shape[1]))
        out = np.empty((len(stored), len(wanted), *stored.shape[2:]), stored.dtype)
        for values, row, result in zip(stored, stored_times, out, strict=True):
            index = np.clip(np.searchsorted(row, wanted, side="right") - 1, 0, len(row) - 2)
            weight = ((wanted - row[index]) / (row[index + 1] - row[index])).astype(stored.dtype)
            for frame, (i, w) in enumerate(zip(index, weight, strict=True)):
                if w in (0, 1):  # a stored frame is taken as it is: its neighbour may have gaps that it has not
                    result[frame] = values[i + int(w)]
                else:
                    result[frame] = (1 - w) * values[i] + w * values[i + 1]
        return out


@dataclass(frozen=True)
class Block:
    """Channels of one stored array, unpacked.

    `space` are the axes of the grid. An array that does not have all of them is constant along the others.
    """

    array: LazyArray
    pattern: Pattern
    space: tuple[str, ...]
    channels: tuple[int, ...] = (0,)
    packing: Packing = UNPACKED
    resampling: Resampling | None = None
    """Brings stored frames to equally spaced times."""
    unit: str = ""
    """Of its numbers, as the file states it."""

    def __post_init__(self) -> None:
        self.pattern.check(self.array.shape, what=self.array.label)
        available = self.size("channel")
        if not self.channels or not all(0 <= channel < available for channel in self.channels):
            raise DataError(f"{self.array.label} has channels 0 to {available - 1}, asked for {self.channels}.")

    def size(self, word: str) -> int:
        """Length of the axis with this name, 1 if there is none."""
        if word == "time" and self.resampling is not None:
            return len(self.resampling.times)
        return self.pattern.size(word, self.array.shape)

    def read(self, rows: Rows, frames: slice, steps: tuple[int, ...]) -> Float[np.ndarray, "n t c *grid"]:
        """Some trajectories and frames at every `steps[i]`-th point; a missing axis gets length one."""
        first, last = min(self.channels), max(self.channels)
        stored = frames if self.resampling is None else self.resampling.source(frames)
        wanted = {"batch": rows, "time": stored, "channel": slice(first, last + 1), "1": slice(None)}
        wanted |= {word: slice(None, None, step) for word, step in zip(self.space, steps, strict=True)}
        values = self.packing.unpack(self.array.read(tuple(wanted[word] for word in self.pattern.words)))
        if values.dtype != np.float32:
            values = values.astype(np.float64, copy=False)
        values = self.pattern.arrange(values, self.space)
        if self.channels != tuple(range(first, last + 1)):
            values = values[:, :, [channel - first for channel in self.channels]]
        return values if self.resampling is None else self.resampling.interpolate(values, rows, frames)


@dataclass(frozen=True)
class Part:
    """The trajectories of one file: `count` of them with `frames` stored frames each."""

    state: tuple[Block, ...]
    context: tuple[Block, ...] = ()

    def __post_init__(self) -> None:
        words = {"batch": "trajectories", "time": "frames"} | {axis: f"points along {axis}" for axis in self.space}
        for block in (*self.state, *self.context):
            for word, meaning in words.items():
                if block.pattern.axis(word) is not None and block.size(word) != self.size(word):
                    raise DataError(
                        f"{block.array.label} has {block.size(word)} {meaning}, but {self._owner(word).array.label} "
                        f"has {self.size(word)}."
                    )
        for block in self.state:
            if block.pattern.axis("time") is None:
                raise DataError(
                    f"{block.array.label} has no time axis in {str(block.pattern)!r}, so there is nothing to "
                    "predict. Name a time axis in `axes`, or use the array as context."
                )

    def _owner(self, word: str) -> Block:
        """The first state block that has an axis."""
        return next((block for block in self.state if block.pattern.axis(word) is not None), self.state[0])

    def size(self, word: str) -> int:
        """Length of an axis of the state, 1 if no field has it."""
        return self._owner(word).size(word)

    @property
    def space(self) -> tuple[str, ...]:
        """Names of the space axes."""
        return self.state[0].space

    @property
    def count(self) -> int:
        """Number of trajectories."""
        return self.size("batch")

    @property
    def frames(self) -> int:
        """Number of stored frames."""
        return self.size("time")

    @property
    def in_memory(self) -> bool:
        """Whether nothing has to be read from a file."""
        return all(isinstance(block.array, MemoryArray) for block in (*self.state, *self.context))

    @property
    def grid(self) -> tuple[int, ...]:
        """Points along each space axis."""
        return tuple(self.size(word) for word in self.space)

    def read(
        self, rows: Rows, frames: slice, steps: tuple[int, ...]
    ) -> tuple[Float[np.ndarray, "n t c *grid"], Float[np.ndarray, "n t k *grid"]]:
        """State and context of a run of trajectories; fields that do not change are repeated, as views."""
        count = len(range(*rows.indices(self.count))) if isinstance(rows, slice) else len(rows)
        time = len(range(*frames.indices(self.frames)))
        grid = tuple(len(range(0, points, step)) for points, step in zip(self.grid, steps, strict=True))

        def gather(blocks: tuple[Block, ...]) -> np.ndarray:
            pieces = [block.read(rows, frames, steps) for block in blocks]
            pieces = [np.broadcast_to(piece, (count, time, piece.shape[2], *grid)) for piece in pieces]
            if len(pieces) == 1:
                return pieces[0]
            return np.concatenate(pieces, axis=2) if pieces else np.empty((count, time, 0, *grid), np.float32)

        return gather(self.state), gather(self.context)


def split_channels(array: LazyArray, pattern: Pattern, names: tuple[str, ...], context: tuple[str, ...]) -> Part:
    """One array whose channels are called `names`: those in `context` are known, the others are predicted."""
    pattern.check(array.shape, what=array.label)
    channels = pattern.size("channel", array.shape)
    if len(names) != channels:
        raise DataError(f"{array.label} has {channels} channels but {len(names)} names were given: {names}.")
    unknown = [name for name in context if name not in names]
    if unknown:
        raise DataError(f"Context field {unknown[0]!r} is not among the fields {names}.")
    known = tuple(names.index(name) for name in context)
    predicted = tuple(i for i in range(channels) if i not in known)
    if not predicted:
        raise DataError(f"No field to predict: all of {names} were named as context.")
    context_blocks = (Block(array, pattern, pattern.space, known),) if known else ()
    return Part((Block(array, pattern, pattern.space, predicted),), context_blocks)


def default_fields(channels: int) -> tuple[str, ...]:
    """Names for channels that came without: u, or u0, u1, ..."""
    return ("u",) if channels == 1 else tuple(f"u{i}" for i in range(channels))
