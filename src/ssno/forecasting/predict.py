"""Forecasts without truth, of any length, straight into a file.

    predict(load_forecaster("runs/ks-ssno"), load_dataset("now.h5", "all"), "next.h5", steps=1000)

The last frames of every trajectory are the input (as many as the model takes); the following ones are predicted in
batches of trajectories and written in blocks of frames, so memory depends on neither the horizon nor the number of
trajectories. The file appears when it is complete and is read like any dataset (`ssno.data.storage` has the
layout).

Axes: b trajectory, t frame, c state field, k context field, then the grid.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base.atomic_write import whole_file
from ssno.base.checks import require_one_of, require_positive
from ssno.base.provenance import provenance
from ssno.data.context import context_is_constant
from ssno.data.errors import DataError
from ssno.data.storage import FrameWriter, Layout, block_frames
from ssno.data.trajectories import Trajectories
from ssno.forecasting.divergence import (
    Departure,
    Divergence,
    EnergyGuard,
    ForecastDiverged,
    ForecastWatch,
    OnDivergence,
    first_departures,
    guard_words,
)
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import stream

Report = Callable[[int, int], None]
TIMED_STEPS = 3


@dataclass(frozen=True)
class Job:
    """A forecast to be made: its input frames, its steps and their times."""

    forecaster: Forecaster
    data: Trajectories
    inputs: range
    """Frames of the data that are the input."""
    steps: int
    times: Float[np.ndarray, " t"]
    constant_context: bool
    """Context fields that are constant in time."""

    @property
    def bytes(self) -> int:
        """Size of all predicted frames before compression."""
        trajectories, _, channels, *grid = self.data.shape
        return 4 * trajectories * self.steps * channels * int(np.prod(grid))


@dataclass(frozen=True)
class Prediction:
    """A forecast that was made: where it is, how large, and which trajectories diverged."""

    path: Path
    trajectories: int
    steps: int
    """Frames written of each."""
    times: tuple[float, float]
    divergences: tuple[Divergence, ...]
    seconds: float
    steps_asked: int
    trained_steps: int | None
    """Steps of the training trajectories, if recorded."""
    departures: tuple[Departure, ...]
    """Quantities that left the range of the training data, each once: where it did so first."""
    recorded: bool
    """The range of the training data is recorded; else departures are from the input frames and units."""
    limited: int = 0
    """Predicted frames that the guard changed."""
    limited_first: int = 0
    """The first step of these."""


def plan_prediction(
    forecaster: Forecaster,
    data: Trajectories,
    *,
    steps: int,
    input_frames: int | None = None,
    time_step: float | None = None,
) -> Job:
    """Check that this forecast can be made, before anything is computed.

    Args:
        forecaster: what predicts.
        data: trajectories; forecasts start from their first `input_frames` frames (by default all).
        steps: how many frames to predict after them.
        time_step: time between frames, if the data have a single one.
    """
    require_positive("steps", steps)
    frames = len(data.times)
    end = frames if input_frames is None else input_frames
    if not 1 <= end <= frames:
        raise ValueError(f"`input_frames` must be from 1 to the {frames} frames of {data.name!r}, got {input_frames}.")
    for what, names, wanted in (
        ("fields", data.fields, forecaster.normalisers.state.fields),
        ("context fields", data.context_fields, forecaster.normalisers.context.fields),
    ):
        if names != wanted:
            option = "fields" if what == "fields" else "context"
            raise DataError(
                f"{data.name!r} has the {what} {names}, but the model was trained with {wanted}. Use the same names in "
                f"the same order (--{option} {' '.join(wanted) or 'none'}), or another run."
            )
    if time_step is not None and not 0 < time_step < np.inf:
        raise ValueError(f"`time_step` must be positive and finite, got {time_step:g}.")
    if time_step is None:
        if frames < 2:
            raise DataError(f"{data.name!r} has one frame, so the time between frames is unknown. Pass `time_step`.")
        time_step = data.time_step
    seen = range(max(0, end - forecaster.window.frames_seen), end)
    used = data.select(time_index=slice(seen.start, end + steps))
    job = Job(
        forecaster,
        data,
        seen,
        steps,
        data.times[end - 1] + time_step * np.arange(1, steps + 1),
        context_is_constant(used, given=len(seen)),
    )
    if data.context_fields and not job.constant_context and steps > frames - end:
        raise DataError(
            f"{data.name!r} has its context fields {data.context_fields} for {frames - end} steps after the {end} "
            f"input frames, but {steps} are to be predicted. Use fewer `input_frames`, or a longer file."
        )
    return job


def predict(
    forecaster: Forecaster,
    data: Trajectories,
    path: str | Path,
    *,
    steps: int,
    input_frames: int | None = None,
    time_step: float | None = None,
    batch_size: int = 16,
    overwrite: bool = False,
    on_divergence: OnDivergence = "stop",
    guard: bool = False,
    report: Report = lambda done, total: None,
) -> Prediction:
    """Forecast `steps` frames after the input frames of every trajectory and write them to `path`.

    Attributes of the file tell how far to trust it (`ssno.forecasting.divergence`): `steps_asked`, `trained_steps`, and
    if there are any, departures from the training data (`outside_training`) and diverged forecasts (`divergence`).

    Args:
        forecaster: what `train` returned or `load_forecaster` read.
        data: trajectories to start from; only the last input frames and the context fields are read.
        path: the new HDF5 file.
        steps: how many frames to predict.
        input_frames: predict after this many frames of `data`; by default after all of them.
        time_step: time between frames, if `data` has a single one.
        batch_size: trajectories forecast together; changes memory and speed, not results.
        overwrite: replace an existing file.
        on_divergence: "stop" writes, of all trajectories, the frames before the first one diverges; raises
            `ForecastDiverged` if there are none. "continue" writes all `steps`.
        guard: limit every predicted frame to the energies of the training data (`EnergyGuard`).
        report: called with (frames done, frames in all).
    """
    began, path = time.monotonic(), Path(path)
    require_positive("batch_size", batch_size)
    require_one_of("on_divergence", on_divergence, get_args(OnDivergence))
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already. Choose another name, or overwrite it (`overwrite=True`).")
    if path.exists() and is_source(path, data):
        raise FileExistsError(f"{path} has the data to start from, so it is never replaced. Choose another name.")
    job = plan_prediction(forecaster, data, steps=steps, input_frames=input_frames, time_step=time_step)
    layout = Layout(
        # Another name, because conventions of a dataset (thinned frames, published splits) are not its forecasts'.
        name=f"{data.name.removesuffix('-forecast')}-forecast",
        fields=data.fields,
        axes=data.axes,
        times=job.times,
        context_fields=data.context_fields,
        geometry=data.geometry,
        units=data.units,
        attributes={
            "generator": "ssno predict",
            "generator_version": provenance()["ssno"],
            "commit": provenance()["commit"],
            "input_frames": len(job.inputs),
            "last_input_time": float(data.times[job.inputs[-1]]),
            "steps_asked": steps,
            **({} if forecaster.trained_steps is None else {"trained_steps": forecaster.trained_steps}),
            **({} if forecaster.mask is None else {"mask_field": forecaster.mask}),
        },
    )
    divergences, departures, good, recorded = list[Divergence](), list[Departure](), steps, bool(forecaster.envelope)
    limited, limited_first = 0, 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        whole_file(path) as partial,
        FrameWriter(partial, layout, count=len(data), constant_context=job.constant_context) as writer,
    ):
        for first in range(0, len(data), batch_size):
            rows = range(first, min(first + batch_size, len(data)))
            watch, limits = _forecast(job, rows, good, writer, report, on_divergence, guard)
            divergences += watch.divergences(first_trajectory=first)
            departures += watch.departures(first_trajectory=first)
            if limits is not None and limits.limited:
                limited += limits.limited
                limited_first = min(limits.first, limited_first or limits.first)
            if on_divergence == "stop":
                good = watch.good_steps
            if good == 0:
                raise ForecastDiverged(min(divergences, key=lambda one: one.step))
        found = first_departures(departures)
        writer.truncate(good)
        writer.remark("outside_training", [one.words(recorded=recorded) for one in found])
        writer.remark("divergence", [one.words() for one in divergences])
        writer.remark("guard", [guard_words(limited, limited_first)] if limited else [])
    return Prediction(
        path=path,
        trajectories=len(data),
        steps=good,
        times=(float(job.times[0]), float(job.times[good - 1])),
        divergences=tuple(divergences),
        seconds=time.monotonic() - began,
        steps_asked=steps,
        trained_steps=forecaster.trained_steps,
        departures=found,
        recorded=recorded,
        limited=limited,
        limited_first=limited_first,
    )


def is_source(path: Path, data: Trajectories) -> bool:
    """Whether a file is one of those that trajectories are read from."""
    arrays = [block.array for part in data.parts for block in (*part.state, *part.context)]
    stamps = [getattr(getattr(array, "array", array), "stamp", None) for array in arrays]
    return any(stamp is not None and path.samefile(stamp.path) for stamp in stamps)


def estimate_seconds(job: Job, *, batch_size: int) -> float:
    """Seconds that the forecast will take, from a few steps of its first batch."""
    rows = range(min(batch_size, len(job.data)))
    first, context = _start(job, rows)
    frames = stream(job.forecaster, first, context=context, spacing=job.data.spacing)
    next(frames)
    began, steps = time.perf_counter(), min(TIMED_STEPS, job.steps)
    for _ in islice(frames, max(0, steps - 1)):
        pass
    per_step = (time.perf_counter() - began) / max(1, steps - 1)
    return per_step * job.steps * -(-len(job.data) // len(rows))


def _start(job: Job, rows: range) -> tuple[Tensor, Callable[[int], Tensor] | None]:
    """Input frames of some trajectories, and the context fields as a function of the frame's number."""
    some = job.data.select(indices=rows)
    first = some.select(time_index=list(job.inputs)).read(slice(None)).state.to(job.forecaster.device)
    if not job.data.context_fields:
        return first, None
    if job.constant_context:
        constant = some.select(time_index=[job.inputs[-1]]).read(slice(None)).context[:, 0]
        return first, lambda number: constant
    blocks = _Blocks(some, block_frames(job.data.shape[3:], len(job.data.times)))
    return first, lambda number: blocks(job.inputs[0] + number)


class _Blocks:
    """Context fields frame by frame, read from the file a block at a time."""

    def __init__(self, data: Trajectories, size: int):
        self.data, self.size, self.number = data, size, -1
        self.block = torch.empty(0)

    def __call__(self, frame: int) -> Float[Tensor, "b k *grid"]:
        wanted, inside = divmod(frame, self.size)
        if wanted != self.number:
            index = list(range(wanted * self.size, min((wanted + 1) * self.size, len(self.data.times))))
            # The state of later frames is not known yet and may be anything, NaN included.
            self.block = self.data.select(time_index=index).read(slice(None), finite=False).context
            self.number = wanted
        return self.block[:, inside]


def _forecast(
    job: Job, rows: range, steps: int, writer: FrameWriter, report: Report, on_divergence: OnDivergence, guard: bool
) -> tuple[ForecastWatch, EnergyGuard | None]:
    """One batch of trajectories, block by block, until `steps` or, with "stop", until one diverges."""
    first, context = _start(job, rows)
    axes, geometry = job.data.axes, job.data.geometry
    watch = ForecastWatch(
        job.forecaster, first, axes=axes, geometry=geometry, context=context, on_divergence=on_divergence
    )
    limits = EnergyGuard(job.forecaster, first, axes=axes, geometry=geometry) if guard else None
    frames = stream(job.forecaster, first, context=context, spacing=job.data.spacing, guard=limits)

    def block(begins: int, stop: int) -> bool:  # a function, so that one block is gone before the next is made
        state = torch.empty(len(rows), stop - begins, *job.data.shape[2:])
        for number, frame in enumerate(islice(frames, stop - begins)):
            state[:, number] = frame
            if watch.look_at(frame):
                stop, state = begins + number + 1, state[:, : number + 1]
                break
        numbers = range(len(job.inputs) + begins, len(job.inputs) + stop)
        fields = None if context is None else torch.stack([context(number) for number in numbers], dim=1).numpy()
        writer.write(rows.start, begins, state.numpy(), fields)
        return watch.stops and watch.diverged

    for begins in range(0, steps, writer.block):
        stop = min(begins + writer.block, steps)
        ended = block(begins, stop)
        report(rows.start * job.steps + len(rows) * stop, len(job.data) * job.steps)
        if ended:
            break
    return watch, limits
