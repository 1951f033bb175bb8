"""A batch made ready for the loss: pieces of trajectories, or their images, normalised, with noise, true frames chosen.

Everything random here is drawn from (seed, epoch, step, sample), so a resumed run draws the same.

Axes: b trajectory, t slot, c state field, k context field, then the grid.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ssno.data.clouds import at_points, drawn_points, wall_mask
from ssno.data.mirror import Mirror, mirrored
from ssno.data.noise import noise_like, sample_generator
from ssno.data.trajectories import Frames
from ssno.data.windows import next_frames, slot_context
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.masks import hold
from ssno.runs.unrolling import Stage

FORCING, PLACE = 2, 3  # keep the keys of these draws apart from each other

Key = tuple[int, int, int]
"""Seed, epoch and step."""


class Prepared(NamedTuple):
    """What the model may see, what it should say, and in which slots that counts."""

    seen: Tensor
    """b t c *grid, the true frames with noise."""
    known: Tensor
    """b t k *grid, known fields with noise."""
    truth: Tensor
    """b t c *grid, the frame after each slot."""
    forced: Tensor | None
    """b t, which inputs are true; None if all are, so that slots need not wait for each other."""
    given: int
    """True frames before the first prediction."""
    parts: tuple[range, ...]
    """Slots that count, in pieces between which no gradient passes."""
    stage: Stage
    spacing: tuple[float, ...] | None = None
    """Of the grid, if it may be another than the one that weights refer to."""
    wall: Tensor | None = None
    """b p, which points of a cloud lie on the wall, if the loss is to tell them apart."""
    outside: Tensor | None = None
    """b t 1 *grid, where the frame after each slot has no data."""


def prepare(
    forecaster: Forecaster,
    frames: Frames,
    samples: Sequence[int] = (),
    *,
    stage: Stage,
    key: Key = (0, 0, 0),
    noise: float = 0.0,
    mirror: Mirror = "none",
    spacing: tuple[float, ...] | None = None,
    points: int = 0,
    walls: bool = False,
) -> Prepared:
    """Make a batch ready; `samples` are the trajectories' numbers in the dataset, and none gets no noise and no image.

    Of clouds, `points` points are drawn, the same of every case in the batch (0: all), and `walls` finds their walls.
    """
    window, drawn_for = forecaster.window, samples or (0,) * len(frames.state)
    if stage.frames:
        room = window.plan(frames.state.shape[1]).predicted.stop
        length = stage.length(window, room)
        firsts = places(room - length, key, drawn_for)
        frames, window = Frames(*(cut_out(part, firsts, length) for part in frames)), stage.window(window)
    if points and points < frames.state.shape[-1]:
        frames = at_points(frames, drawn_points(frames.state.shape[-1], points, *key).to(frames.state.device))
    if samples:
        frames = mirrored(frames, mirror, key, samples)
    state, context = frames
    wall = wall_mask(context, forecaster.normalisers.context.fields) if walls else None
    plan = window.plan(state.shape[1])
    outside = forecaster.outside(context)
    clean = hold(forecaster.units(state[:, plan.given.start : plan.given.stop]).encode(state), outside)
    after = None if outside is None else outside[:, 1:]
    seen, known = clean[:, :-1], slot_context(forecaster.encode_context(context), forecaster.alignment)
    if noise and samples:
        seed, epoch, step = key
        added = noise_like(
            torch.cat([state, context], dim=2), std=noise, seed=seed, epoch=epoch, step=step, samples=samples
        )
        # Noise is added to what the model sees, never to what it should say.
        seen, known = seen + added[:, :-1, : state.shape[2]], known + added[:, :-1, state.shape[2] :]
        seen = hold(seen, None if outside is None else outside[:, :-1])
    if stage.parallel:
        # A model that takes K frames as channels has no answer before its first window.
        slots = range(max(plan.loss_slots.start, forecaster.frames_as_channels - 1), plan.loss_slots.stop)
        return Prepared(seen, known, next_frames(clean), None, plan.given.stop, (slots,), stage, spacing, wall, after)
    forced = forced_frames(stage.forcing, seen.shape[1], key, drawn_for).to(seen.device)
    slots = range(plan.start, plan.loss_slots.stop)
    size = stage.cut or len(slots)
    parts = tuple(slots[first : first + size] for first in range(0, len(slots), size))
    return Prepared(seen, known, next_frames(clean), forced, plan.given.stop, parts, stage, spacing, wall, after)


def places(room: int, key: Key, samples: Sequence[int]) -> list[int]:
    """Where the piece of each sample begins, 0 to `room`."""
    return [int(torch.randint(room + 1, (), generator=sample_generator(*key, n, PLACE))) for n in samples]


def cut_out(frames: Float[Tensor, "b t c *grid"], firsts: Sequence[int], length: int) -> Float[Tensor, "b s c *grid"]:
    """A piece of each trajectory, from its own first frame on."""
    return torch.stack([frames[n, first : first + length] for n, first in enumerate(firsts)])


def forced_frames(share: float, frames: int, key: Key, samples: Sequence[int]) -> Bool[Tensor, "b t"]:
    """Which frames of each sample are given true; each with probability `share`."""
    if share in (0, 1):
        return torch.full((len(samples), frames), bool(share))
    drawn = [torch.rand(frames, generator=sample_generator(*key, n, FORCING)) for n in samples]
    return torch.stack(drawn) < share
