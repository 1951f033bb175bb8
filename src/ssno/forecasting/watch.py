"""Watch a forecast without knowing the truth: when it leaves what training saw, and when it stops being a forecast.

At every step the smallest and the largest value of each field, its mean (held to the given one where training conserved
it) and its energy in each band of waves are compared with those of the training data (`ssno.data.envelope`). The first
step of each trajectory beyond them is a `Departure`: a reason for doubt, nothing more. A `Divergence` is the end:
values that are not finite, or beyond ten times the largest that is known: given, recorded of the training data, or
|shift| + scale of the units.

A forecaster from before envelopes were recorded is held to its given frames and its units instead
(`Envelope.guessed`). Memory does not grow with the horizon; small frames are looked at a few at a time, which makes
them cheap.

Axes: b trajectory, t frame, c field, q quantity, then the grid.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ssno.data.envelope import BANDS, HIGH, LOW, MEAN, Envelope, Gauge
from ssno.forecasting.divergence import NEVER, NOT_FINITE, TOO_LARGE, Divergence, OnDivergence, largest, runaway_step
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.quadrature_weights import Outside
from ssno.forecasting.rollout import Context, known_fields
from ssno.pde.geometry import CARTESIAN, Geometry
from ssno.pde.problems.problem import Axis

TOGETHER, VALUES = 16, 2**16  # frames looked at together: so many at most, and no more values than this
NOT_YET = 2**63 - 1
GIVEN = -1
"""As a step: the given frame itself."""


@dataclass(frozen=True)
class Departure:
    """A quantity of a field that left what training saw: in how many trajectories, and where it did so first."""

    field: str
    what: str
    trajectories: int
    trajectory: int
    step: int
    """Predicted step from 0; -1 if the given frame was beyond already."""
    value: float
    low: float
    high: float
    """What training saw."""

    def words(self, *, recorded: bool = True) -> str:
        """A line for readers, who count steps from 1."""
        when = "in the given frames" if self.step == GIVEN else f"at step {self.step + 1}"
        known = "what training saw" if recorded else "what is expected"
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
    """What to say before a forecast that goes beyond what the model was trained on; nothing if it does not."""
    if trained is None or asked <= trained:
        return None
    return f"trained on forecasts of {trained:,} steps, you ask for {asked:,}"


class ForecastWatch:
    """Hand it every predicted frame in turn; it keeps the first step of each trouble per trajectory.

    Args:
        forecaster: what predicts.
        given: the frames that the forecast goes on from.
        axes: of the grid that frames come on, with its `geometry`.
        context: known fields as `stream` takes them; a mask among them says which points do not count.
        on_divergence: whether `look_at` asks to stop once a trajectory has run away.
    """

    def __init__(
        self,
        forecaster: Forecaster | Ensemble,
        given: Float[Tensor, "b t c *grid"],
        *,
        axes: Sequence[Axis],
        geometry: Geometry = CARTESIAN,
        context: Context = None,
        on_divergence: OnDivergence = "continue",
    ):
        units, envelope = forecaster.units(given), forecaster.envelope
        self.recorded, self.stops = envelope is not None, on_divergence == "stop"
        self.fields, self.masked = forecaster.normalisers.state.fields, forecaster.mask is not None
        self._known, self._outside, self._begins = known_fields(given, context), forecaster.outside, given.shape[1]
        bands = {} if envelope is None else {"length": envelope.length, "bands": envelope.bands}
        self.gauge = Gauge(axes, geometry, **bands)  # type: ignore[arg-type]
        before = self.gauge(given, self._no_data(0, given.shape[1]))
        if envelope is None:
            fitted = forecaster.normalisers.state.method != "none"
            envelope = Envelope.guessed(before, units if fitted else None, length=self.gauge.length)
        self.conserved = envelope.conserved
        self.seen, self.limits = envelope.seen(before[:, -1]), envelope.limits(before[:, -1], self.gauge)
        known = torch.maximum(largest(given).cpu().double(), (units.shift.abs() + units.scale.abs()).cpu().double())
        self.usual = torch.maximum(known, torch.tensor([envelope.low, envelope.high]).abs().amax(0).double())
        self.first = torch.full(before[:, 0].shape, NOT_YET)
        self.value = torch.zeros_like(before[:, 0])
        self.bad = {reason: torch.full((len(given),), NOT_YET) for reason in (TOO_LARGE, NOT_FINITE)}
        self.steps, self.waiting = 0, list[Tensor]()
        if not geometry.is_steady:  # else the input frame is the inlet flow, no state
            self._compare(before[:, -1:], GIVEN)

    def look_at(self, frame: Float[Tensor, "b c *grid"]) -> bool:
        """The next predicted frame, in physical units; whether to stop here, `good_steps` then says what to keep."""
        self.waiting.append(frame)
        if len(self.waiting) >= min(TOGETHER, VALUES // frame.numel()):
            self.settle()
        return self.stops and self.diverged

    def settle(self) -> None:
        """Look at the frames that still wait."""
        frames, self.waiting = self.waiting, []
        if not frames:
            return
        begins, self.steps = self.steps, self.steps + len(frames)
        if (self.bad[NOT_FINITE] == NOT_YET).any():  # else there is nothing left to see
            at = self._begins + begins
            self._compare(self.gauge(torch.stack(frames, dim=1), self._no_data(at, at + len(frames))), begins)

    def _compare(self, measured: Float[Tensor, "b t c q"], begins: int) -> None:
        ends = measured[..., [LOW, HIGH]]
        finite = ends.isfinite().flatten(2).all(2)
        for reason, at in (
            (NOT_FINITE, _first(~finite)),
            (TOO_LARGE, runaway_step(torch.where(finite[..., None, None], ends, 0.0), self.usual)),
        ):
            step = torch.where(at == NEVER, NOT_YET, at + begins)
            self.bad[reason] = torch.minimum(self.bad[reason], step)
        inside = (measured >= self.limits[0][:, None]) & (measured <= self.limits[1][:, None])
        at = _first(~inside & finite[..., None, None])
        new = (at != NEVER) & (self.first == NOT_YET)
        self.first = torch.where(new, at + begins, self.first)
        self.value = torch.where(new, measured.gather(1, at.clamp_min(0)[:, None])[:, 0], self.value)

    def _no_data(self, first: int, stop: int) -> Outside:
        return self._outside(self._known(first, stop)) if self.masked else None

    @property
    def diverged(self) -> bool:
        """Whether a trajectory has run away, among the frames looked at."""
        return any((first != NOT_YET).any() for first in self.bad.values())

    @property
    def good_steps(self) -> int:
        """Frames before any trajectory ran away."""
        self.settle()
        return max(0, min(self.steps, *(int(first.min()) for first in self.bad.values())))

    def runaways(self, *, first_trajectory: int = 0) -> tuple[Divergence, ...]:
        """The ends so far, by trajectory, counted from `first_trajectory`, then by step."""
        self.settle()
        found = [
            Divergence(first_trajectory + row, int(first[row]), reason)
            for reason, first in self.bad.items()
            for row in (first != NOT_YET).nonzero().flatten().tolist()
        ]
        return tuple(sorted(found, key=lambda trouble: (trouble.trajectory, trouble.step, trouble.reason)))

    def departures(self, *, first_trajectory: int = 0) -> tuple[Departure, ...]:
        """What left the training data so far, each quantity once: where it did so first."""
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


def _first(flags: Bool[Tensor, "b t ..."]) -> Int[Tensor, "b ..."]:
    """The first frame of each trajectory whose flag is set; -1 if none."""
    return torch.where(flags.any(1), flags.int().argmax(1), NEVER)
