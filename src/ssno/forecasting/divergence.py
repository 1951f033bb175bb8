"""Watch a forecast without knowing the truth: when it leaves the range of the training data, and when it diverges.

A *diverged* forecast is non-finite, or ten times larger than the data: the largest value that is known of the field,
from its input frames, the record of the training data, or |shift| + scale of the normalisation.

A *departure* is a reason for doubt, nothing more: at every step the smallest and the largest value of each field, its
mean (compared with that of the input frame where training conserved it) and its energy in each band of wavenumbers are
compared with those of the training data (`ssno.data.envelope`). A forecaster from before envelopes were recorded is
compared with its input frames and its normalisation instead (`Envelope.guessed`).

A *guard* keeps a forecast bounded, if asked to: it takes what is above the energies that count as seen out of every
frame before it is fed back.

Memory does not grow with the horizon. All words about diverged forecasts are made here.

Axes: b trajectory, t frame, c field, q quantity, then the grid.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ssno.data.envelope import BANDS, HIGH, LOW, MEAN, Envelope, Gauge
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.metrics import Mask, State
from ssno.forecasting.rollout import Context, context_reader
from ssno.pde.geometry import CARTESIAN, Axis, Geometry

NEVER = -1
FACTOR = 10.0
"""A forecast has diverged when a value exceeds this many times the largest that its field is known to take."""
NOT_FINITE, TOO_LARGE = "not finite", "too large"
OnDivergence = Literal["stop", "continue"]
"""What to do when a forecast diverges: stop before that step, or continue with whatever comes."""
BATCH, VALUES = 16, 2**16  # compare this many frames at a time, but no more values than that
NOT_YET = 2**63 - 1
LISTED = 8
INPUT = -1
"""As a step: the input frame itself."""


def largest_values(frames: State) -> Float[Tensor, "b c"]:
    """The largest absolute value of each field over all frames."""
    return frames.flatten(3).abs().amax((1, 3))


def divergence_step(prediction: State, usual: Float[Tensor, "b c"]) -> Int[Tensor, " b"]:
    """The first frame of each trajectory with a value that is not finite or above `FACTOR` times `usual`; -1 if none.

    `usual` is the largest absolute value that each field is known to take. A field known only as zero has no scale, so
    only values that are not finite count there.
    """
    limit = torch.where(usual > 0, FACTOR * usual, torch.inf)[:, None]  # b 1 c
    size = prediction.flatten(3).abs().amax(3)
    return _first((~prediction.flatten(3).isfinite().all(3) | (size > limit)).any(2))


@dataclass(frozen=True)
class Divergence:
    """A diverged forecast, non-finite or ten times larger than the data: which trajectory, which step (from 0), why."""

    trajectory: int
    step: int
    reason: str

    def words(self) -> str:
        """A line for readers, who count steps from 1."""
        what = self.reason if self.reason == NOT_FINITE else f"more than {FACTOR:g} times larger than the data"
        return f"trajectory {self.trajectory} diverges: {what} from step {self.step + 1} on"


class ForecastDiverged(RuntimeError):
    """A forecast diverged at its first step."""

    def __init__(self, first: Divergence):
        super().__init__(first)
        self.first = first

    def __str__(self) -> str:
        return (
            f"{self.first.words()}. No step before it is valid, so nothing was written. Use `on_divergence='continue'` "
            "(--on-divergence continue) to write the forecast all the same."
        )


def divergence_lines(divergences: Sequence[Divergence]) -> list[str]:
    """A line for each of the first few, and one that counts the others."""
    lines = [f"! {one.words()}" for one in divergences[:LISTED]]
    return lines + ([f"! and {len(divergences) - LISTED} more; --json lists them all"] if divergences[LISTED:] else [])


def divergence_sentence(divergences: Sequence[Divergence]) -> str:
    """How many forecasts diverged, for summaries; empty if none did."""
    count = len({one.trajectory for one in divergences})
    return f"{count} forecast{'s' if count > 1 else ''} diverged." if count else ""


@dataclass(frozen=True)
class Departure:
    """A quantity of a field that left the range of the training data: in how many trajectories, and where first."""

    field: str
    what: str
    trajectories: int
    trajectory: int
    step: int
    """Predicted step from 0; -1 if the input frame was out of range already."""
    value: float
    low: float
    high: float
    """The range of the training data."""

    def words(self, *, recorded: bool = True) -> str:
        """A line for readers, who count steps from 1."""
        when = "in the input frames" if self.step == INPUT else f"at step {self.step + 1}"
        known = "the range of the training data" if recorded else "the expected range"
        return (
            f"{self.field}: {self.what} leaves {known} {when} (trajectory {self.trajectory}): {self.value:.5g}, "
            f"not {self.low:.5g} to {self.high:.5g}"
        )


def first_departures(some: Iterable[Departure]) -> tuple[Departure, ...]:
    """One of each quantity, the earliest, with the trajectories of all of them; by step."""
    found: dict[tuple[str, str], Departure] = {}
    for one in some:
        other = found.get((one.field, one.what), replace(one, trajectories=0))
        count = one.trajectories + other.trajectories
        found[one.field, one.what] = replace(one if one.step < other.step else other, trajectories=count)
    return tuple(sorted(found.values(), key=lambda one: one.step))


def horizon_words(trained: int | None, asked: int) -> str | None:
    """A warning before a forecast that is longer than those of training; None if it is not."""
    if trained is None or asked <= trained:
        return None
    return f"trained on forecasts of {trained:,} steps, you ask for {asked:,}"


class ForecastWatch:
    """Takes every predicted frame in turn and records the first departure and divergence of each trajectory.

    Args:
        forecaster: what predicts.
        first_frames: the input frames of the forecast.
        axes: of the grid of the frames, with its `geometry`.
        context: context fields as `stream` takes them; points under a mask among them do not count.
        on_divergence: whether `look_at` asks to stop once a trajectory has diverged.
    """

    def __init__(
        self,
        forecaster: Forecaster | Ensemble,
        first_frames: State,
        *,
        axes: Sequence[Axis],
        geometry: Geometry = CARTESIAN,
        context: Context = None,
        on_divergence: OnDivergence = "continue",
    ):
        units, envelope = forecaster.units(first_frames), forecaster.envelope
        self.recorded, self.stops = envelope is not None, on_divergence == "stop"
        self.fields, self.masked = forecaster.normalisers.state.fields, forecaster.mask is not None
        self._context, self._find_mask = context_reader(first_frames, context), forecaster.find_mask
        self._begins = first_frames.shape[1]
        bands = {} if envelope is None else {"length": envelope.length, "bands": envelope.bands}
        self.gauge = Gauge(axes, geometry, **bands)  # type: ignore[arg-type]
        before = self.gauge(first_frames, self._mask(0, self._begins))
        if envelope is None:
            fitted = forecaster.normalisers.state.method != "none"
            envelope = Envelope.guessed(before, units if fitted else None, length=self.gauge.length)
        self.conserved = envelope.conserved
        self.seen, self.limits = envelope.seen(before[:, -1]), envelope.limits(before[:, -1], self.gauge)
        scale = (units.shift.abs() + units.scale.abs()).cpu().double()
        known = torch.maximum(largest_values(first_frames).cpu().double(), scale)
        self.usual = torch.maximum(known, torch.tensor([envelope.low, envelope.high]).abs().amax(0).double())
        self.first = torch.full(before[:, 0].shape, NOT_YET)
        self.value = torch.zeros_like(before[:, 0])
        self.bad = {reason: torch.full((len(first_frames),), NOT_YET) for reason in (TOO_LARGE, NOT_FINITE)}
        self.steps, self.waiting = 0, list[Tensor]()
        if not geometry.is_steady:  # else the input frame is the inlet flow, no state
            self._compare(before[:, -1:], INPUT)

    def look_at(self, frame: Float[Tensor, "b c *grid"]) -> bool:
        """The next predicted frame, in physical units; whether to stop here with the first `good_steps` frames."""
        self.waiting.append(frame)
        if len(self.waiting) >= min(BATCH, VALUES // frame.numel()):
            self.settle()
        return self.stops and self.diverged

    def settle(self) -> None:
        """Compare the frames that still wait."""
        frames, self.waiting = self.waiting, []
        if not frames:
            return
        begins, self.steps = self.steps, self.steps + len(frames)
        if (self.bad[NOT_FINITE] == NOT_YET).any():  # else there is nothing left to see
            at = self._begins + begins
            self._compare(self.gauge(torch.stack(frames, dim=1), self._mask(at, at + len(frames))), begins)

    def _compare(self, measured: Float[Tensor, "b t c q"], begins: int) -> None:
        ends = measured[..., [LOW, HIGH]]
        finite = ends.isfinite().flatten(2).all(2)
        for reason, at in (
            (NOT_FINITE, _first(~finite)),
            (TOO_LARGE, divergence_step(torch.where(finite[..., None, None], ends, 0.0), self.usual)),
        ):
            step = torch.where(at == NEVER, NOT_YET, at + begins)
            self.bad[reason] = torch.minimum(self.bad[reason], step)
        inside = (measured >= self.limits[0][:, None]) & (measured <= self.limits[1][:, None])
        at = _first(~inside & finite[..., None, None])
        new = (at != NEVER) & (self.first == NOT_YET)
        self.first = torch.where(new, at + begins, self.first)
        self.value = torch.where(new, measured.gather(1, at.clamp_min(0)[:, None])[:, 0], self.value)

    def _mask(self, first: int, stop: int) -> Mask:
        return self._find_mask(self._context(first, stop)) if self.masked else None

    @property
    def diverged(self) -> bool:
        """Whether a trajectory has diverged, among the frames compared so far."""
        return any((first != NOT_YET).any() for first in self.bad.values())

    @property
    def good_steps(self) -> int:
        """Frames before any trajectory diverged."""
        self.settle()
        return max(0, min(self.steps, *(int(first.min()) for first in self.bad.values())))

    def divergences(self, *, first_trajectory: int = 0) -> tuple[Divergence, ...]:
        """Those so far by trajectory, counted from `first_trajectory`, then by step."""
        self.settle()
        found = [
            Divergence(first_trajectory + row, int(first[row]), reason)
            for reason, first in self.bad.items()
            for row in (first != NOT_YET).nonzero().flatten().tolist()
        ]
        return tuple(sorted(found, key=lambda one: (one.trajectory, one.step, one.reason)))

    def departures(self, *, first_trajectory: int = 0) -> tuple[Departure, ...]:
        """Quantities that left the range of the training data so far, each once: where it did so first."""
        self.settle()
        found = []
        for channel, field in enumerate(self.fields):
            for quantity in range(self.first.shape[2]):
                step, row = self.first[:, channel, quantity].min(0)
                if step != NOT_YET:
                    place = (int(row), channel, quantity)
                    numbers = (float(values[place]) for values in (self.value, *self.seen))
                    count = int((self.first[:, channel, quantity] != NOT_YET).sum())
                    where = (first_trajectory + int(row), int(step))
                    found.append(Departure(field, self._name(channel, quantity), count, *where, *numbers))
        return first_departures(found)

    def _name(self, channel: int, quantity: int) -> str:
        if quantity < BANDS:
            mean = "the conserved mean" if self.conserved[channel] else "the mean"
            return {LOW: "the smallest value", HIGH: "the largest value", MEAN: mean}[quantity]
        band, last = quantity - BANDS, self.gauge.bands - 1
        if last == 0:
            return "the energy"
        ends = f"k < {2 ** (band + 1)}" if band == 0 else f"{2**band} <= k < {2 ** (band + 1)}"
        return f"the energy at {ends if band < last else f'k >= {2**band}'}"


class EnergyGuard:
    """Limits every predicted frame to the energies of the training data, band by band of waves, and to their means.

    A band with more energy than counts as seen (`Envelope.limits`) is scaled down to that, its phases stay. A forecast
    can then not diverge, however long it is; `limited` counts the frames that were changed, which are no longer those
    of the model alone.

    Args:
        forecaster: what predicts; its record of the training data sets the limits.
        first_frames: the input frames of the forecast.
        axes: of their grid, all periodic, with its `geometry`.
    """

    def __init__(
        self,
        forecaster: Forecaster | Ensemble,
        first_frames: State,
        *,
        axes: Sequence[Axis],
        geometry: Geometry = CARTESIAN,
    ):
        envelope = forecaster.envelope
        if envelope is None:
            raise ValueError(
                "`guard` needs the energies of the training data, which this model does not record. Train it again "
                "with this version, or forecast without `guard`."
            )
        if geometry is not CARTESIAN or not all(axis.periodic for axis in axes) or forecaster.mask is not None:
            raise ValueError(
                "`guard` needs periodic, unmasked data on a Cartesian grid: it limits the energy of their Fourier "
                "modes. Forecast without `guard`."
            )
        self.gauge = Gauge(axes, geometry, length=envelope.length, bands=envelope.bands)
        measured = self.gauge(first_frames[:, -1:])[:, 0]
        (low, high), self.axes = envelope.limits(measured, self.gauge), len(axes)
        # A little less than what a `ForecastWatch` allows, so that rounding brings nothing above it.
        room = 0.001 * (high - low)
        self.most, self.means = 0.999 * high[..., BANDS:], ((low + room)[..., MEAN], (high - room)[..., MEAN])
        self.band = self.gauge.shares.argmax(1)
        self.steps, self.limited, self.first = 0, 0, 0

    def __call__(self, frame: Float[Tensor, "b c *grid"]) -> Float[Tensor, "b c *grid"]:
        """The frame within the limits; as it is where it is within them already, or not finite."""
        self.steps += 1
        measured = self.gauge(frame[:, None])[:, 0]
        mean, energy = measured[..., MEAN], measured[..., BANDS:]
        factor = (self.most / energy.clamp_min(torch.finfo(energy.dtype).tiny)).clamp_max(1).sqrt()  # b c bands
        kept = torch.minimum(torch.maximum(mean, self.means[0]), self.means[1])
        changed = ((factor < 1).any(2) | (kept != mean)).any(1) & measured.isfinite().flatten(1).all(1)
        if not changed.any():
            return frame
        self.limited, self.first = self.limited + int(changed.sum()), self.first or self.steps
        waves = torch.fft.rfftn(frame[changed].double(), dim=tuple(range(2, 2 + self.axes)))
        scale = factor[changed][..., self.band].to(waves.device).view(waves.shape)
        limited = torch.fft.irfftn(waves * scale, s=frame.shape[2:], dim=tuple(range(2, 2 + self.axes)))
        shift = kept[changed].to(limited.device) - limited.flatten(2).mean(2)
        limited = limited + shift.view(*shift.shape, *(1,) * self.axes)
        return frame.index_put((changed.nonzero().flatten().to(frame.device),), limited.to(frame.dtype))


def guard_words(limited: int, first: int) -> str:
    """What a guard did, in a line: how many frames it changed, and the first step of them."""
    frames = f"{limited:,} predicted frame{'s were' if limited > 1 else ' was'}"
    return f"! guard: {frames} limited to the energies of the training data, the first at step {first:,}"


def _first(flags: Bool[Tensor, "b t ..."]) -> Int[Tensor, "b ..."]:
    """The first frame of each trajectory whose flag is set; -1 if none."""
    return torch.where(flags.any(1), flags.int().argmax(1), NEVER)
