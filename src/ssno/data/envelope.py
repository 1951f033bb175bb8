"""What training data look like: in a few numbers per field, to which every frame of a forecast can be held (envelope),
and in the mean (climatology).

    low, high   the smallest and the largest value
    mean        the smallest and the largest mean over the grid, and the most it changes along one trajectory (drift)
    energy      the smallest and the largest mean square of each band of waves, about the mean

Band j holds the waves that fit between 2^j and 2^(j+1) times into the longest axis; the first also holds longer ones,
the last has no end. Fourier's transform takes apart axes that repeat, the cosine transform axes between walls. On a
sphere waves run along circles of latitude, and points weigh by their area; a cloud of points has one band. Points
without data count in nothing. `Gauge` measures frames, `Envelope` is what the training frames had, and
`Envelope.limits` says how far beyond it a frame still counts as seen.

Axes: n trajectory, t frame, c field, q quantity (low, high, mean, then the bands), then the space axes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ssno.base import read_regular, write_whole
from ssno.data.normalise import AffineMap, chunks
from ssno.data.trajectories import Frames, Trajectories
from ssno.pde.geometry import Axis, Geometry
from ssno.transforms.periodic import cosine_transform

LOW, HIGH, MEAN, BANDS = 0, 1, 2, 3  # places along q; bands begin at the last
BEYOND = 0.25
"""Part of a range by which a forecast may lie beyond it: unseen data of the same kind do, too."""
TIMES = 2.0
"""How many times the largest energy of a band a forecast may have, and into how many parts the smallest may fall."""
NEGLIGIBLE = 0.01
"""Part of a field's energy that is too little to speak of in any band."""
STEADY, OFF = 0.01, 0.05
"""In standard deviations: a mean that changes less than the first along every trajectory is conserved; any mean may be
off by the second."""
USUAL = 3.0
"""Without a record of the training data: scales from the shift within which values lie."""
ROUNDING = 1e-5  # of the largest value: a field that never changes may do so in its last digits
TINY = float(np.finfo(np.float32).tiny)


class Gauge:
    """Measures frames on one grid: smallest and largest value, mean, and energy of each band of waves.

    Bands are counted in waves per `length`, by default that of the longest axis, and are as many as the grid resolves.
    """

    def __init__(
        self, axes: Sequence[Axis], geometry: Geometry, *, length: float | None = None, bands: int | None = None
    ):
        kinds = geometry.transforms([axis.periodic for axis in axes])
        self.cosine = [number for number, kind in enumerate(kinds) if kind == "cosine"]
        self.fourier = [number for number, kind in enumerate(kinds) if kind == "fourier"]
        self.length = max(axis.length for axis in axes) if length is None else length
        finest = min((axis.spacing for axis, kind in zip(axes, kinds, strict=True) if kind != "none"), default=math.inf)
        self.resolved = max(1, math.ceil(math.log2(max(1.0, self.length / finest / 2)) - 1e-6))
        self.bands = self.resolved if bands is None else bands
        square, share = np.zeros(()), np.ones(())  # of every mode: waves per length, part in the mean square
        for number, (axis, kind) in enumerate(zip(axes, kinds, strict=True)):
            waves, part = np.zeros(axis.points), np.full(axis.points, 1 / axis.points)
            if kind == "cosine":
                waves = np.arange(axis.points) / (2 * axis.length)
                part = np.where(waves > 0, 2, 1) * part**2
            elif kind == "fourier":
                waves, part = np.abs(np.fft.fftfreq(axis.points, axis.spacing)), part**2
                if number == self.fourier[-1]:  # half of the spectrum, whose inner waves stand for two
                    half = np.arange(axis.points // 2 + 1)
                    waves, part = waves[half], part[half] * np.where((half > 0) & (2 * half < axis.points), 2, 1)
            square, share = square[..., None] + waves**2, share[..., None] * part
        self.weights, grid = None, [axis.points for axis in axes]
        if (weights := geometry.quadrature_weights(grid)) is not None:
            self.weights, share = torch.from_numpy(weights).float(), share * weights * math.prod(grid)
        waves = np.sqrt(square).ravel() * self.length
        band = (np.log2(np.maximum(waves, 1.0)) + 1e-9).astype(int).clip(max=self.bands - 1)
        shares = np.where(band[:, None] == np.arange(self.bands), share.reshape(-1, 1), 0.0)
        self.shares = torch.from_numpy(shares).float()

    def __call__(
        self, frames: Float[Tensor, "n t c *grid"], outside: Bool[Tensor, "n t 1 *grid"] | None = None
    ) -> Float[Tensor, "n t c q"]:
        """Every quantity of every frame and field, in float64 on the CPU."""
        frames, device = frames.float(), frames.device
        if outside is not None:
            frames = frames.masked_fill(outside, 0.0)
            mean = frames.flatten(3).sum(-1) / (~outside).flatten(3).sum(-1).clamp_min(1)
            frames = torch.where(outside, _over_grid(mean, frames), frames)
        elif self.weights is not None:
            mean = (frames * self.weights.to(device)).flatten(3).sum(-1)
        else:
            mean = frames.flatten(3).mean(-1)
        low, high = frames.flatten(3).aminmax(dim=-1)
        # Squares of the values themselves may exceed float32; what is constant but for rounding has no waves.
        width = torch.maximum(high - low, ROUNDING * torch.maximum(low.abs(), high.abs())).clamp_min(TINY)
        waves = (frames - _over_grid(mean, frames)) / _over_grid(width, frames)
        for axis in self.cosine:
            waves = cosine_transform(waves, dim=3 + axis)
        if self.fourier:
            waves = torch.view_as_real(torch.fft.rfftn(waves, dim=[3 + axis for axis in self.fourier]))
            power = waves.square().sum(-1)
        else:
            power = waves.square()
        energy = power.flatten(3) @ self.shares.to(device)
        found = torch.cat([torch.stack([low, high, mean, width], dim=-1), energy], dim=-1).cpu().double()
        return torch.cat([found[..., :3], found[..., 4:] * found[..., 3:4].square()], dim=-1)


def _over_grid(values: Float[Tensor, "n t c"], frames: Float[Tensor, "n t c *grid"]) -> Tensor:
    return values.view(*values.shape, *(1,) * (frames.ndim - 3))


PerField = tuple[float, ...]


@dataclass(frozen=True)
class Envelope:
    """The extremes over all frames of all trajectories, a number per field, and per band for energies."""

    frames: int
    """Of one trajectory."""
    length: float
    """Bands count waves per this length."""
    low: PerField
    high: PerField
    mean_low: PerField
    mean_high: PerField
    drift: PerField
    energy_low: tuple[PerField, ...]
    energy_high: tuple[PerField, ...]

    def __post_init__(self) -> None:
        numbers = [getattr(self, entry.name) for entry in fields(self)[2:7]]
        energies = (*self.energy_low, *self.energy_high)
        counts = {len(values) for values in (*numbers, self.energy_low, self.energy_high)}
        if len(counts) > 1 or len({len(bands) for bands in energies}) > 1 or not all(energies):
            raise ValueError("An envelope needs one number per field, and per field equally many bands.")
        if not all(math.isfinite(value) for values in (*numbers, *energies, (self.length,)) for value in values):
            raise ValueError("An envelope must be finite.")
        if self.frames < 1 or self.length <= 0:
            raise ValueError(f"`frames` and `length` must be positive, got {self.frames} and {self.length:g}.")

    @property
    def bands(self) -> int:
        """How many there are."""
        return len(self.energy_high[0])

    @property
    def conserved(self) -> tuple[bool, ...]:
        """Of which fields every trajectory keeps its mean."""
        pairs = zip(self.drift, self.energy_high, strict=True)
        return tuple(drift <= STEADY * math.sqrt(sum(energy)) for drift, energy in pairs)

    @classmethod
    def of(cls, measured: Float[Tensor, "n t c q"], *, length: float, first: int = 0) -> "Envelope":
        """The envelope of whole trajectories that a `Gauge` measured; but for means, from frame `first` on."""
        low, high = measured[:, first:].amin((0, 1)), measured[:, first:].amax((0, 1))
        drift = (measured[..., MEAN].amax(1) - measured[..., MEAN].amin(1)).amax(0)
        ends = (low[:, LOW], high[:, HIGH], low[:, MEAN], high[:, MEAN], drift)
        energies = (tuple(map(tuple, side[:, BANDS:].tolist())) for side in (low, high))
        return cls(measured.shape[1], length, *(tuple(end.tolist()) for end in ends), *energies)

    @classmethod
    def guessed(cls, given: Float[Tensor, "n t c q"], units: AffineMap | None, *, length: float) -> "Envelope":
        """Without a record of the training data: from the input frames and the units that were fitted to those data.

        Values may be `USUAL` scales from the shift, means one. Bands may have the energy of the input frames and what
        they would share of scale^2 if each had half of the one before. Without units, those of the input frames hold.
        """
        low, high = given.amin((0, 1)), given.amax((0, 1))
        shift, scale = given[:, -1, :, MEAN], given[:, -1, :, BANDS:].sum(-1).sqrt()
        if units is not None:
            shift, scale = units.shift.double().cpu(), units.scale.double().cpu()
        below, above = (shift - USUAL * scale).amin(0), (shift + USUAL * scale).amax(0)
        halves = 0.5 ** torch.arange(given.shape[-1] - BANDS, dtype=torch.float64)
        energy = high[:, BANDS:] + scale.amax(0).square()[:, None] * halves
        ends = (
            torch.minimum(low[:, LOW], below),
            torch.maximum(high[:, HIGH], above),
            torch.minimum(low[:, MEAN], (shift - scale).amin(0)),
            torch.maximum(high[:, MEAN], (shift + scale).amax(0)),
            torch.maximum(scale.amax(0), energy.sum(-1).sqrt()),
        )
        energies = (tuple(map(tuple, side.tolist())) for side in (torch.zeros_like(energy), energy))
        return cls(given.shape[1], length, *(tuple(end.tolist()) for end in ends), *energies)

    def merged(self, other: "Envelope") -> "Envelope":
        """The envelope of both sets of trajectories."""
        return Envelope(
            max(self.frames, other.frames),
            self.length,
            *(_extreme(name, getattr(self, name), getattr(other, name)) for name in _EXTREMES),
        )

    def seen(self, given: Float[Tensor, "n c q"]) -> tuple[Float[Tensor, "n c q"], Float[Tensor, "n c q"]]:
        """Smallest and largest values of the training data, for trajectories that go on from the `given` frame.

        A conserved mean is held to that of the input frame, any other to those of the training data.
        """
        tensors = (torch.tensor(getattr(self, name), dtype=torch.float64) for name in _EXTREMES)
        low, high, mean_low, mean_high, drift, energy_low, energy_high = tensors
        conserved = torch.tensor(self.conserved)
        sides = (low, mean_low, -drift, energy_low), (high, mean_high, drift, energy_high)
        return tuple(  # type: ignore[return-value]
            torch.cat(
                [
                    torch.stack([value, value], -1).expand(len(given), -1, -1),
                    torch.where(conserved, given[..., MEAN] + change, mean)[..., None],
                    energy.expand(len(given), -1, -1),
                ],
                dim=-1,
            )
            for value, mean, change, energy in sides
        )

    def limits(
        self, given: Float[Tensor, "n c q"], gauge: Gauge
    ) -> tuple[Float[Tensor, "n c q"], Float[Tensor, "n c q"]]:
        """How small and how large values may be to count as seen: a little beyond what was.

        Bands of which the grid of the forecast may lack a part need not hold anything.
        """
        low, high = self.seen(given)
        energy = high[..., BANDS:].sum(-1, keepdim=True)
        rounding = ROUNDING * torch.maximum(low[..., :1].abs(), high[..., 1:2].abs())
        room = BEYOND * (high - low)[..., :BANDS] + rounding
        room[..., MEAN] += OFF * energy[..., 0].sqrt()
        fewest = (low[..., BANDS:] / TIMES - NEGLIGIBLE * energy).clamp_min(0.0)
        fewest[..., gauge.resolved - 1 :] = 0.0
        most = high[..., BANDS:] * TIMES + NEGLIGIBLE * energy + rounding.square()
        return (
            torch.cat([low[..., :BANDS] - room, fewest], dim=-1),
            torch.cat([high[..., :BANDS] + room, most], dim=-1),
        )


_EXTREMES = tuple(entry.name for entry in fields(Envelope)[2:])


def _extreme(name: str, one: Sequence, other: Sequence) -> tuple:
    """The smaller of two numbers, or of each pair in nested ones, if the name says low; else the larger."""
    if one and isinstance(one[0], tuple):
        return tuple(_extreme(name, *pair) for pair in zip(one, other, strict=True))
    return tuple((min if name.endswith("low") else max)(pair) for pair in zip(one, other, strict=True))


# Climatology: the mean of the training trajectories, frame by frame.
#
#     climatology   u[t] = mean over training trajectories of their frame t, per field and grid point
#     mean          the mean of these over all frames
#
# Both ignore what they are given, so a model that does not beat them has learned no dynamics
# (`ssno.evaluation.trivial`). Stored with the run as climatology.safetensors, as large as one trajectory.
#
# Of pieces of long runs, frame t of one is not frame t of another: they have a mean, but no climatology. Points of
# clouds differ from one trajectory to the next: clouds have neither.

LARGEST = 2**34
"""Bytes that are read at most."""


@dataclass(frozen=True, eq=False)
class Climatology:
    """The mean of each frame in physical units, and the times of these frames."""

    frames: Float[Tensor, "t c *grid"]
    times: Float[np.ndarray, " t"]
    pieces: bool = False
    """Whether the trajectories were pieces of long runs."""

    @classmethod
    def of(cls, data: Trajectories) -> "Climatology":
        """The climatology of training trajectories, read once and a chunk at a time."""
        sums = FrameSums(data)
        for chunk in chunks(data):
            sums.add(data.read(chunk))
        return sums.climatology()

    def at(self, data: Trajectories) -> Float[Tensor, "t c *grid"]:
        """The mean frames at the times of `data`; an error says why there are none."""
        if self.pieces:
            raise ValueError("the training trajectories are pieces of long runs, whose frame numbers mean nothing")
        self._check_grid(data)
        places = np.abs(self.times[:, None] - data.times).argmin(0)
        step = np.diff(data.times).min(initial=np.inf)
        far = np.abs(self.times[places] - data.times) > 1e-3 * step
        if far.any():
            raise ValueError(f"the training trajectories have no frame at t = {data.times[far][0]:g}")
        return self.frames[places]

    def mean_of(self, data: Trajectories) -> Float[Tensor, "t c *grid"]:
        """The mean over all frames, at every time of `data`."""
        self._check_grid(data)
        mean = self.frames.mean(0, dtype=torch.float64).to(self.frames)
        return mean.expand(len(data.times), *mean.shape)

    def fits(self, data: Trajectories) -> bool:
        """Whether both have the same fields and grid."""
        return tuple(self.frames.shape[1:]) == data.shape[2:]

    def _check_grid(self, data: Trajectories) -> None:
        if not self.fits(data):
            raise ValueError(f"the training trajectories have (fields, *grid) {tuple(self.frames.shape[1:])}")

    def write(self, path: Path) -> None:
        """Store it as safetensors, atomically."""
        times, pieces = torch.from_numpy(self.times), torch.tensor(self.pieces)
        write_whole(path, safetensors.torch.save({"frames": self.frames, "times": times, "pieces": pieces}))

    @classmethod
    def read(cls, path: Path) -> "Climatology":
        """Read what `write` stored."""
        try:
            tensors = safetensors.torch.load(read_regular(path, limit=LARGEST))
            frames, times, pieces = (tensors[name] for name in ("frames", "times", "pieces"))
            if len(frames) != len(times) or frames.ndim < 3 or not frames.isfinite().all():
                raise ValueError(f"frames {tuple(frames.shape)}, times {tuple(times.shape)}")
            return cls(frames.float(), times.double().numpy(), bool(pieces))
        except (safetensors.SafetensorError, KeyError, ValueError, RuntimeError) as error:
            raise ValueError(f"{path} is damaged ({error}). Delete it; it is made anew of the training data.") from None


class FrameSums:
    """Gathers a climatology from chunks of trajectories. Where a mask says that there are no data, nothing counts."""

    def __init__(self, data: Trajectories):
        shape = data.shape[1:]
        self.times, self.mask = data.times, data.mask_channel
        self.pieces = len(np.unique(data.rows[:, 2])) > 1
        self.total = torch.zeros(shape, dtype=torch.float64)
        self.count: Tensor = torch.zeros(1 if self.mask is None else (shape[0], 1, *shape[2:]), dtype=torch.float64)

    def add(self, frames: Frames) -> None:
        """Whole trajectories; masked points are 0 in them."""
        for trajectory in frames.state:  # one by one: a sum in float64 would copy the chunk first
            self.total += trajectory
        if self.mask is None:
            self.count += len(frames.state)
        else:
            self.count += (frames.context[:, :, self.mask, None] == 0).sum(0)

    def climatology(self) -> Climatology:
        """The mean of what was added."""
        return Climatology((self.total / self.count.clamp_min(1)).float(), self.times, self.pieces)


class Surveyor:
    """Collects envelope and climatology of a dataset while its chunks pass by.

    Make it before trajectories are read into memory, which forgets where pieces of long runs began.
    """

    def __init__(self, data: Trajectories):
        self.gauge, self.mask = Gauge(data.axes, data.geometry), data.mask_channel
        self.first = int(data.geometry.is_steady)  # frame 0 is the inlet flow (`ssno.data.normalise`)
        self.envelope: Envelope | None = None
        self.sums = None if data.geometry.is_steady else FrameSums(data)

    def look_at(self, chunk: Frames) -> None:
        """Whole trajectories, the next of the dataset."""
        outside = None if self.mask is None else chunk.context[:, :, self.mask, None] != 0
        here = Envelope.of(self.gauge(chunk.state, outside), length=self.gauge.length, first=self.first)
        self.envelope = here if self.envelope is None else self.envelope.merged(here)
        if self.sums is not None:
            self.sums.add(chunk)

    @property
    def climatology(self) -> Climatology | None:
        """Of what was looked at; None of clouds."""
        return None if self.sums is None else self.sums.climatology()
