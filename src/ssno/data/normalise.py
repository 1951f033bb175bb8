"""Normalisers: one affine map per channel, fitted on the training split and frozen.

    encoded = (value - shift[c]) / scale[c]

    minmax             shift = min, scale = max - min  over all trajectories, frames and points: onto [0, 1]
    zscore             shift = mean, scale = standard deviation
    none               shift = 0, scale = 1
    per_sample_minmax  as minmax, with the extremes of each trajectory's input frames

A constant channel maps to 0 and comes back as its constant. `increment` is the standard deviation of
u[t+1] - u[t] per channel in physical units, for models that predict the change. State and context have one
normaliser each; validation and test use those of the training split.

    norms = fit(load_dataset("ks", "train"), "zscore")
    norm = norms.state.bind(given)          # `given` matters for per_sample_minmax only
    prediction = norm.decode(model(norm.encode(given)))

Axes: n trajectory, t frame, c channel, then the space axes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ssno.base import require_one_of
from ssno.data.trajectories import Frames, Trajectories, trajectory_bytes

# Minimum, maximum, mean and standard deviation per channel, gathered chunk by chunk in float64.
#
# Each chunk is summed about its own mean, and chunks are merged by Chan's formula
#
#     mean = mean_a + d n_b / n,   M2 = M2_a + M2_b + d^2 n_a n_b / n,   d = mean_b - mean_a,  n = n_a + n_b,
#
# so a mean much larger than the deviation costs no digits (the textbook E[u^2] - E[u]^2 would give noise, or
# NaN). Values that are not finite are counted and left out.
#
# Axes: n trajectory, t frame, c channel, then the space axes.

CHUNK = 32 * 2**20  # bytes of float32 frames in memory at a time


@dataclass(frozen=True)
class Moments:
    """Statistics of each channel; `count` finite values, `bad` others. Without values, low > high."""

    count: Int[np.ndarray, " c"]
    bad: Int[np.ndarray, " c"]
    low: Float[np.ndarray, " c"]
    high: Float[np.ndarray, " c"]
    mean: Float[np.ndarray, " c"]
    squares: Float[np.ndarray, " c"]  # sum of squared deviations from the mean

    @classmethod
    def of(cls, values: Float[np.ndarray, "n t c *grid"]) -> "Moments":
        """Statistics of one chunk."""
        channels = values.shape[2]
        lines = np.moveaxis(values, 2, 0).reshape(channels, values.size // max(channels, 1)).astype(np.float64)
        fine = np.isfinite(lines)
        whole = bool(fine.all())
        count = fine.sum(axis=1)
        mean = (lines if whole else np.where(fine, lines, 0.0)).sum(axis=1) / np.maximum(count, 1)
        low = (lines if whole else np.where(fine, lines, np.inf)).min(axis=1, initial=np.inf)
        high = (lines if whole else np.where(fine, lines, -np.inf)).max(axis=1, initial=-np.inf)
        gaps = lines if whole else np.where(fine, lines, mean[:, None])
        gaps -= mean[:, None]
        return cls(count, lines.shape[1] - count, low, high, mean, np.einsum("cl,cl->c", gaps, gaps))

    def merged(self, other: "Moments") -> "Moments":
        """Statistics of both chunks together."""
        count = self.count + other.count
        share = other.count / np.maximum(count, 1)
        gap = other.mean - self.mean
        return Moments(
            count=count,
            bad=self.bad + other.bad,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
            mean=self.mean + gap * share,
            squares=self.squares + other.squares + gap**2 * self.count * share,
        )

    @property
    def std(self) -> Float[np.ndarray, " c"]:
        """Standard deviation (of the population: divided by the count)."""
        return np.sqrt(self.squares / np.maximum(self.count, 1))


@dataclass(frozen=True)
class Summary:
    """Statistics of a dataset: fields, context fields, and one-step changes of either."""

    state: Moments
    context: Moments
    state_change: Moments
    context_change: Moments

    @classmethod
    def of(cls, frames: Frames, *, first: int = 0, mask: int | None = None) -> "Summary":
        """Statistics of some trajectories in memory; fields are looked at from frame `first` on.

        Where the context field number `mask` is not zero, predicted fields are left out.
        """
        both = [values.numpy() for values in frames]
        left_out = 0
        if mask is not None:
            outside = both[1][:, :, mask] != 0
            both[0], left_out = np.where(outside[:, :, None], np.float32(np.nan), both[0]), outside[:, first:].sum()
        with np.errstate(over="ignore", invalid="ignore"):  # infinity minus infinity, or more than float32 holds
            changes = [np.diff(values, axis=1) for values in both]
            state, *rest = (Moments.of(values) for values in (*(values[:, first:] for values in both), *changes))
            return cls(replace(state, bad=state.bad - left_out), *rest)

    def merged(self, other: "Summary") -> "Summary":
        """Statistics of both sets together."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Summary(*(mine.merged(theirs) for mine, theirs in pairs))


def chunks(data: Trajectories, *, size: int = CHUNK) -> Iterator[slice]:
    """Consecutive trajectories that together take about `size` bytes."""
    step = max(1, min(size, data.limit) // trajectory_bytes(data))
    for start in range(0, len(data), step):
        yield slice(start, min(start + step, len(data)))


def check_finite(data: Trajectories) -> None:
    """Refuse trajectories that are not finite, reading a chunk at a time; the message says where."""
    for chunk in chunks(data):
        data.read(chunk)


def summarise(data: Trajectories, *, size: int = CHUNK, look: Callable[[Frames], None] = lambda chunk: None) -> Summary:
    """Statistics over all trajectories, frames and points, reading a chunk at a time.

    The first frame of a flow past a body is the undisturbed stream, no flow: of steady flows it does not count.
    `look` is handed every chunk, so that whoever wants to know more need not read the data again.
    """
    if len(data) == 0:
        raise ValueError(f"`data` {data.name!r} has no trajectories to take statistics of.")
    total = None
    for chunk in chunks(data, size=size):
        frames = data.read(chunk)
        part = Summary.of(frames, first=int(data.geometry.is_steady), mask=data.mask_channel)
        look(frames)
        total = part if total is None else total.merged(part)
    assert total is not None
    return total


NormalisationMethod = Literal["minmax", "zscore", "none", "per_sample_minmax"]
SMALLEST = float(np.finfo(np.float32).tiny)  # a narrower range than this has no reciprocal in float32


@dataclass(frozen=True)
class AffineMap:
    """The map of each trajectory (or, with n = 1, of all): what encodes and decodes tensors."""

    shift: Float[Tensor, "n c"]
    scale: Float[Tensor, "n c"]

    def encode(self, values: Float[Tensor, "..."], *, dim: int = 2) -> Float[Tensor, "..."]:
        """To normalised units. The batch is dimension 0, channels are along `dim`."""
        shift, scale = self._aligned(values, dim)
        constant = scale < SMALLEST
        return torch.where(constant, 0.0, (values - shift) / torch.where(constant, 1.0, scale))

    def decode(self, values: Float[Tensor, "..."], *, dim: int = 2) -> Float[Tensor, "..."]:
        """Back to physical units."""
        shift, scale = self._aligned(values, dim)
        return values * scale + shift

    def _aligned(self, values: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        channels, count = values.shape[dim], self.shift.shape[0]
        if channels != self.shift.shape[1] or count not in (1, values.shape[0]):
            raise ValueError(
                f"`values` has shape {tuple(values.shape)} with channels along dimension {dim}; this normaliser "
                f"expects {self.shift.shape[1]} channels" + (f" of {count} trajectories." if count > 1 else ".")
            )
        shape = [1] * values.ndim
        shape[0], shape[dim] = count, channels
        return self.shift.to(values).reshape(shape), self.scale.to(values).reshape(shape)


@dataclass(frozen=True)
class Normaliser:
    """A fixed description, one number per field, that goes into a run's config. `bind` makes it work."""

    method: NormalisationMethod
    fields: tuple[str, ...]
    shift: tuple[float, ...]
    scale: tuple[float, ...]
    increment: tuple[float, ...]

    def __post_init__(self) -> None:
        require_one_of("method", self.method, get_args(NormalisationMethod))
        for label in ("shift", "scale", "increment"):
            values = getattr(self, label)
            if len(values) != len(self.fields):
                raise ValueError(f"`{label}` needs one number per field {self.fields}, got {values}.")
            if not all(isfinite(value) for value in values):
                raise ValueError(f"`{label}` must be finite, got {values}.")
        if min((*self.scale, *self.increment), default=0.0) < 0:
            raise ValueError(f"`scale` and `increment` must not be negative: {self.scale}, {self.increment}.")

    @classmethod
    def from_moments(
        cls, values: Moments, changes: Moments, *, fields: Sequence[str], method: NormalisationMethod
    ) -> "Normaliser":
        """The normaliser for fields with these statistics."""
        shift, scale = np.zeros(len(fields)), np.ones(len(fields))
        if method == "minmax":
            shift, scale = values.low, values.high - values.low
        elif method == "zscore":
            shift, scale = values.mean, values.std
        constant = values.high == values.low
        if method in ("minmax", "zscore"):
            shift, scale = np.where(constant, values.low, shift), np.where(constant, 0.0, scale)
        return cls(method, tuple(fields), *(tuple(v.tolist()) for v in (shift, scale, changes.std)))

    @classmethod
    def identity(cls, fields: Sequence[str]) -> "Normaliser":
        """Physical units, of data that nobody has to look at."""
        return cls("none", tuple(fields), (0.0,) * len(fields), (1.0,) * len(fields), (0.0,) * len(fields))

    def bind(self, given: Float[Tensor, "n t c *grid"] | None = None) -> AffineMap:
        """The map for a batch. For `per_sample_minmax`, `given` are the input frames: never those to predict."""
        if self.method != "per_sample_minmax":
            return AffineMap(*(torch.tensor([v], dtype=torch.float64) for v in (self.shift, self.scale)))
        if given is None or given.shape[2] != len(self.fields):
            raise ValueError(
                f"'per_sample_minmax' needs the `given` frames (n, t, {len(self.fields)}, *grid), "
                f"got {None if given is None else tuple(given.shape)}."
            )
        lines = given.detach().movedim(2, 1).flatten(2)  # n c everything
        low, high = lines.amin(-1), lines.amax(-1)
        return AffineMap(low, high - low)

    def encode(self, values: Float[Tensor, "..."], *, dim: int = 2) -> Float[Tensor, "..."]:
        """To normalised units; channels are along `dim`."""
        return self.bind().encode(values, dim=dim)

    def decode(self, values: Float[Tensor, "..."], *, dim: int = 2) -> Float[Tensor, "..."]:
        """Back to physical units."""
        return self.bind().decode(values, dim=dim)

    @property
    def encoded_increment(self) -> tuple[float, ...]:
        """Standard deviation of one-step changes in normalised units; 1 where a field never changes."""
        pairs = zip(self.increment, self.scale, strict=True)
        return tuple(change / scale if change > 0 and scale >= SMALLEST else 1.0 for change, scale in pairs)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; Python writes the shortest decimal that reads back as the same float."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Normaliser":
        """The normaliser that `to_json` described; anything else is refused."""
        names = ("method", "fields", "shift", "scale", "increment")
        if not isinstance(data, Mapping) or set(data) != set(names):
            got = ", ".join(data) if isinstance(data, Mapping) else repr(data)
            raise ValueError(f"A normaliser has the entries {', '.join(names)}, got {got}.")
        for name in names[1:]:
            kind = str if name == "fields" else (int, float)
            if not isinstance(data[name], list) or not all(isinstance(v, kind) for v in data[name]):
                raise ValueError(f"`{name}` of a normaliser is a list of {kind}, got {data[name]!r}.")
        numbers = (tuple(float(v) for v in data[name]) for name in names[2:])
        return cls(data["method"], tuple(data["fields"]), *numbers)


class Normalisers(NamedTuple):
    """One for the predicted fields, one for the context fields."""

    state: Normaliser
    context: Normaliser


def reuse_units(known: Normalisers, fitted: Normalisers) -> Normalisers:
    """The `known` normalisers for other data of the same fields, as weights that were trained with them expect.

    A field that was constant there has no units: it takes the `fitted` ones. So does a mask, which is 0 and 1 in both.
    """
    return Normalisers(*(_kept(*both) for both in zip(known, fitted, strict=True)))


def _kept(known: Normaliser, fitted: Normaliser) -> Normaliser:
    numbers = {}
    for name in ("shift", "scale", "increment"):
        each = zip(getattr(known, name), getattr(fitted, name), known.scale, strict=True)
        numbers[name] = tuple(before if scale >= SMALLEST else now for before, now, scale in each)
    return replace(fitted, method=known.method, **numbers)


def fit(
    data: Trajectories,
    method: NormalisationMethod = "minmax",
    *,
    context_method: NormalisationMethod | None = None,
    look: Callable[[Frames], None] = lambda chunk: None,
) -> Normalisers:
    """Fit on the training split, all frames and points but masked ones; context uses `context_method`, or the same.

    `look` is handed every chunk of the data that is read.
    """
    summary = summarise(data, look=look)
    state = Normaliser.from_moments(summary.state, summary.state_change, fields=data.fields, method=method)
    known, changes = summary.context, summary.context_change
    context = Normaliser.from_moments(known, changes, fields=data.context_fields, method=context_method or method)
    if data.mask is not None:  # a mask stays 0 and 1
        here = [field == data.mask for field in data.context_fields]
        shift = tuple(0.0 if mask else value for mask, value in zip(here, context.shift, strict=True))
        scale = tuple(1.0 if mask else value for mask, value in zip(here, context.scale, strict=True))
        context = replace(context, shift=shift, scale=scale)
    return Normalisers(state, context)
