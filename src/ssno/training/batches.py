"""Which trajectories come when: a function of (seed, epoch), whatever the number of workers or processes.

An epoch is one permutation cut into batches, of all trajectories or within a buffer (`ssno.training.streaming`).
Resuming in the middle of an epoch is starting at a later batch of the same permutation. With several processes each
takes its share of every batch.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ssno.data.grids import coarse_points, fitting
from ssno.data.point_clouds import at_points, drawn_points, wall_mask
from ssno.data.trajectories import Frames, Trajectories
from ssno.data.windows import Reflection, context_at_steps, next_frames, noise_like, reflected, sample_generator
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.metrics import apply_mask
from ssno.layers.space import SpaceMesh
from ssno.runs.options import Stage
from ssno.training.streaming import batches_of, block_size, needed, streamed_order

# A batch made ready for the loss: pieces of trajectories, or their images, normalised, with noise, true frames chosen.
#
# Everything random here is drawn from (seed, epoch, step, sample), so a resumed run draws the same.
#
# Axes: b trajectory, t time step, c state field, k context field, then the grid.

TEACHER, PLACE = 2, 3  # keep the keys of these draws apart from each other

Key = tuple[int, int, int]
"""Seed, epoch and step."""


class Prepared(NamedTuple):
    """Inputs and targets of a batch, and the time steps that its loss counts."""

    inputs: Tensor
    """b t c *grid, the true frames with noise."""
    context: Tensor
    """b t k *grid, context fields with noise."""
    targets: Tensor
    """b t c *grid, the frame after each time step."""
    teacher_forced: Tensor | None
    """b t, which inputs are true frames; None if all are, so that no time step waits for another."""
    input_frames: int
    """True frames before the first prediction."""
    parts: tuple[range, ...]
    """Time steps of the loss, in pieces between which no gradient passes."""
    stage: Stage
    spacing: tuple[float, ...] | None = None
    """Of the grid, if it may be another than the one that weights refer to."""
    wall: Tensor | None = None
    """b p, which points of a cloud lie on the wall, if the loss is to tell them apart."""
    mask: Tensor | None = None
    """b t 1 *grid, where the frame after each time step has no data."""

    def piece(self, space: SpaceMesh) -> "Prepared":
        """The piece of the fields that this process of a mesh computes on."""
        inputs, context, targets = (space.cut(field) for field in (self.inputs, self.context, self.targets))
        mask = None if self.mask is None else space.cut(self.mask)
        return self._replace(inputs=inputs, context=context, targets=targets, mask=mask)


def prepare(
    forecaster: Forecaster,
    frames: Frames,
    samples: Sequence[int] = (),
    *,
    stage: Stage,
    key: Key = (0, 0, 0),
    noise: float = 0.0,
    mirror: Reflection = "none",
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
        frames = reflected(frames, mirror, key, samples)
    state, context = frames
    wall = wall_mask(context, forecaster.normalisers.context.fields) if walls else None
    plan = window.plan(state.shape[1])
    mask = forecaster.find_mask(context)
    clean = apply_mask(forecaster.units(plan.first(state)).encode(state), mask)
    inputs, context = clean[:, :-1], context_at_steps(forecaster.encode_context(context), forecaster.context_time)
    if noise and samples:
        seed, epoch, step = key
        added = noise_like(torch.cat(frames, dim=2), std=noise, seed=seed, epoch=epoch, step=step, samples=samples)[
            :, :-1
        ]
        # Inputs get noise, targets do not.
        inputs, context = inputs + added[:, :, : state.shape[2]], context + added[:, :, state.shape[2] :]
        inputs = apply_mask(inputs, None if mask is None else mask[:, :-1])
    if stage.parallel:
        # A model that takes K frames as channels has no answer before its first window.
        steps, forced = range(max(plan.loss_steps.start, forecaster.frames_as_channels - 1), plan.loss_steps.stop), None
    else:
        steps = range(plan.start, plan.loss_steps.stop)
        forced = teacher_forced_frames(stage.teacher_forcing, inputs.shape[1], key, drawn_for).to(inputs.device)
    size = (0 if stage.parallel else stage.truncate) or max(len(steps), 1)
    return Prepared(
        inputs,
        context,
        targets=next_frames(clean),
        teacher_forced=forced,
        input_frames=plan.input_frames.stop,
        parts=tuple(steps[first : first + size] for first in range(0, len(steps), size)),
        stage=stage,
        spacing=spacing,
        wall=wall,
        mask=None if mask is None else mask[:, 1:],
    )


def places(room: int, key: Key, samples: Sequence[int]) -> list[int]:
    """Where the piece of each sample begins, 0 to `room`."""
    return [int(torch.randint(room + 1, (), generator=sample_generator(*key, n, PLACE))) for n in samples]


def cut_out(frames: Float[Tensor, "b t c *grid"], firsts: Sequence[int], length: int) -> Float[Tensor, "b s c *grid"]:
    """A piece of each trajectory, from its own first frame on."""
    return torch.stack([frames[n, first : first + length] for n, first in enumerate(firsts)])


def teacher_forced_frames(share: float, frames: int, key: Key, samples: Sequence[int]) -> Bool[Tensor, "b t"]:
    """Which inputs of each sample are true frames; each with probability `share`."""
    if share in (0, 1):
        return torch.full((len(samples), frames), bool(share))
    drawn = [torch.rand(frames, generator=sample_generator(*key, n, TEACHER)) for n in samples]
    return torch.stack(drawn) < share


# Training on several grids at once: one model, each batch on one of the grids, all grids equally often.
#
# A grid is named by its points along the first axis; the other axes go in proportion. Fields are brought to it as a
# coarser dataset would be read: every n-th point where that fits, and on periodic axes otherwise their waves up to what
# the grid resolves. Weights refer to the finest of the grids, on which runs are also validated; coarser ones meet the
# same kernels, cut to the waves that they resolve.
#
# Batches come in rounds of as many as there are grids, each grid once in a round, in an order drawn from (seed, epoch,
# round). A resumed run and every process of several therefore see the same.

GRID = 4  # keeps the key of this draw apart from those of order, teacher forcing and place


def on_finest(data: Trajectories, grids: Sequence[int]) -> Trajectories:
    """The trajectories on the finest of the grids; as they are if none is named."""
    return on_grid(data, max(grids)) if grids and max(grids) != data.axes[0].points else data


def on_grids(data: Trajectories, grids: Sequence[int]) -> tuple[Trajectories, ...]:
    """The same trajectories on every grid; as they are if none is named."""
    return tuple(on_grid(data, points) for points in grids) or (data,)


def on_grid(data: Trajectories, points: int) -> Trajectories:
    """The trajectories on a grid with `points` points along the first axis, which must not be finer than theirs."""
    first = data.axes[0]
    data.geometry.require_box("grids", data.name)
    if points > first.points:
        raise ValueError(
            f"`grids` names {points} points along {first.name}, but the data have {first.points}: there is nothing to "
            f"learn between them. Read them on a finer grid (`data.resolution`), or leave {points} out."
        )
    try:
        grid = coarse_points(data.axes, points)
    except ValueError:
        shape = " x ".join(str(axis.points) for axis in data.axes)
        raise ValueError(
            f"`grids` names {points} points along {first.name}, which does not divide {shape} evenly."
        ) from None
    how = fitting(data.axes, grid)
    if how == "spectral" and not (data.mask is None and all(axis.periodic for axis in data.axes)):
        raise ValueError(
            f"`grids`: {points} does not divide the {first.points} points of {first.name}. Spectral resampling needs "
            f"periodic, unmasked data; choose divisors of {first.points}."
        )
    return data.select(resolution=grid, reduction=how)


def drawn_grid(count: int, *, seed: int, epoch: int, batch: int) -> int:
    """Which of `count` grids a batch of an epoch is on."""
    if count == 1:
        return 0
    turn, place = divmod(batch, count)
    return int(torch.randperm(count, generator=sample_generator(seed, epoch, turn, GRID))[place])


ORDER = 1  # keeps the key of the permutation apart from the keys of noise and dropout


class Batch(NamedTuple):
    """Frames of some trajectories, their numbers in the dataset, the size over all processes, and the grid."""

    frames: Frames
    samples: tuple[int, ...]
    global_size: int
    grid: int = 0


def epoch_batches(count: int, batch_size: int, *, seed: int, epoch: int) -> list[list[int]]:
    """The batches of an epoch over `count` trajectories, the last one perhaps smaller."""
    return cut(torch.randperm(count, generator=sample_generator(seed, epoch, ORDER)).tolist(), batch_size)


def cut(order: list[int], batch_size: int) -> list[list[int]]:
    """An order in batches."""
    return [order[first : first + batch_size] for first in range(0, len(order), batch_size)]


def share(batch: list[int], *, rank: int, world: int) -> list[int]:
    """What one of `world` processes takes of a batch; shares differ by one trajectory at most."""
    return batch[rank::world]


@dataclass
class Reading:
    """What loader processes delivered of an epoch so far, and how long the training waited for it."""

    read: int = 0
    """Bytes of float32 frames."""
    waited: float = 0.0
    """Seconds."""
    began: float = field(default_factory=time.monotonic)

    def rates(self) -> dict[str, float]:
        """For the log: megabytes per second, and the share of the time that was spent waiting for them."""
        seconds = max(time.monotonic() - self.began, 1e-9)
        return {"read_mb_per_s": self.read / 1e6 / seconds, "waited": self.waited / seconds}


class BatchSource:
    """Hands out batches of an epoch, read here or by loader processes, each on one of the `grids`.

    With a `buffer` of so many trajectories, files are read in order and shuffled within it; `files` says in which every
    trajectory is, if the data no longer do because they were read into memory.
    """

    def __init__(
        self,
        data: Trajectories,
        *,
        batch_size: int,
        seed: int,
        grids: Sequence[int] = (),
        buffer: int = 0,
        files: Int[np.ndarray, " n"] | None = None,
        workers: int = 0,
        rank: int = 0,
        world: int = 1,
    ):
        self.count, self.batch_size, self.seed = len(data), batch_size, seed
        self.buffer, self.rank, self.world = buffer, rank, world
        self.views = on_grids(data, grids)
        self.files = data.rows[:, 0] if files is None else files
        if buffer and len(self.views) > 1:
            raise ValueError(
                f"`shuffle_buffer` is {buffer} and `grids` {tuple(grids)}: a buffer holds trajectories on one grid. "
                "Leave one of them out."
            )
        self.block = block_size(data, buffer) if buffer else 0
        self.reading = Reading()
        self.schedule = _Schedule()
        self.loader: DataLoader[Any] | None = None
        if workers:
            self.loader = DataLoader(
                _Trajectory(self.views),
                batch_sampler=self.schedule,
                num_workers=workers,
                collate_fn=_first,
                persistent_workers=True,
                multiprocessing_context="spawn",
                generator=torch.Generator(),  # the loader draws a base seed: not from the global generator
            )

    @property
    def batches_per_epoch(self) -> int:
        return -(-self.count // self.batch_size)

    def epoch(self, epoch: int, *, first: int = 0) -> Iterator[Batch]:
        """Batches of an epoch from number `first` on."""
        read: list[list[int]] = []
        if self.buffer:
            read, shown = streamed_order(
                self.files, block=self.block, buffer=self.buffer, key=(self.seed, epoch, ORDER)
            )
            whole = cut(shown, self.batch_size)[first:]
        else:
            whole = epoch_batches(self.count, self.batch_size, seed=self.seed, epoch=epoch)[first:]
        mine = [share(batch, rank=self.rank, world=self.world) for batch in whole]
        # A process without a share still takes part in the step: it computes one trajectory, which weighs nothing.
        grids = [
            drawn_grid(len(self.views), seed=self.seed, epoch=epoch, batch=first + number)
            for number in range(len(whole))
        ]
        wanted = [samples or batch[:1] for samples, batch in zip(mine, whole, strict=True)]
        if self.buffer:
            blocks = needed(read, wanted)
            frames = batches_of(blocks, self._read([0] * len(blocks), blocks), wanted)
        else:
            frames = self._read(grids, wanted)
        for loaded, samples, batch, grid in zip(frames, mine, whole, grids, strict=True):
            yield Batch(loaded, tuple(samples), len(batch), grid)

    def _read(self, grids: Sequence[int], requests: Sequence[list[int]]) -> Iterator[Frames]:
        """The trajectories of one request after the other, read ahead by loader processes if there are any."""
        self.reading = Reading()
        if self.loader is None:
            yield from (self.views[grid].read(samples) for grid, samples in zip(grids, requests, strict=True))
            return
        self.schedule.batches = list(zip(grids, requests, strict=True))
        frames = iter(self.loader)
        for _ in requests:
            since = time.monotonic()
            loaded = Frames(*next(frames))
            self.reading.waited += time.monotonic() - since
            self.reading.read += sum(part.nbytes for part in loaded)
            yield loaded


class _Schedule:
    """A batch sampler whose content is set before each epoch; one batch is one request to a worker."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, list[int]]] = []

    def __iter__(self) -> Iterator[list[tuple[int, tuple[int, ...]]]]:
        return iter([[(grid, tuple(batch))] for grid, batch in self.batches])

    def __len__(self) -> int:
        return len(self.batches)


class _Trajectory(Dataset[Any]):
    def __init__(self, views: Sequence[Trajectories]):
        self.views = views

    def __getitem__(self, wanted: tuple[int, tuple[int, ...]]) -> Frames:
        grid, samples = wanted
        return self.views[grid].read(list(samples))


def _first(items: list[Frames]) -> Frames:
    return items[0]
