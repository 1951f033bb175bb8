"""Minimum, maximum, mean and standard deviation per channel, gathered chunk by chunk in float64.

Each chunk is summed about its own mean, and chunks are merged by Chan's formula

    mean = mean_a + d n_b / n,   M2 = M2_a + M2_b + d^2 n_a n_b / n,   d = mean_b - mean_a,  n = n_a + n_b,

so a mean much larger than the deviation costs no digits (the textbook E[u^2] - E[u]^2 would give noise, or
NaN). Values that are not finite are counted and left out.

Axes: n trajectory, t frame, c channel, then the space axes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from ssno.data.sizes import trajectory_bytes
from ssno.data.trajectories import Frames, Trajectories

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
    """Statistics of a dataset: fields, known fields, and one-step changes of either."""

    state: Moments
    context: Moments
    state_change: Moments
    context_change: Moments

    @classmethod
    def of(cls, frames: Frames, *, first: int = 0, mask: int | None = None) -> "Summary":
        """Statistics of some trajectories in memory; fields are looked at from frame `first` on.

        Where the known field number `mask` is not zero, predicted fields are left out.
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
    step = max(1, size // trajectory_bytes(data))
    for start in range(0, len(data), step):
        yield slice(start, min(start + step, len(data)))


def check_finite(data: Trajectories) -> None:
    """Refuse trajectories that are not finite, reading a chunk at a time; the message says where."""
    for chunk in chunks(data):
        data.read(chunk)


def summarise(data: Trajectories, *, size: int = CHUNK, look: Callable[[Frames], None] = lambda chunk: None) -> Summary:
    """Statistics over all trajectories, frames and points, reading a chunk at a time.

    The first frame of a flow past a body is the undisturbed stream, no flow: on clouds of points it does not count.
    `look` is handed every chunk, so that whoever wants to know more need not read the data again.
    """
    if len(data) == 0:
        raise ValueError(f"`data` {data.name!r} has no trajectories to take statistics of.")
    total = None
    for chunk in chunks(data, size=size):
        first = int(data.grid_type == "points")
        frames = data.read(chunk)
        part = Summary.of(frames, first=first, mask=data.mask_channel)
        look(frames)
        total = part if total is None else total.merged(part)
    assert total is not None
    return total
