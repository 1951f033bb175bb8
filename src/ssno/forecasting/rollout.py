"""Forecasts: feed a model its own predictions, in physical units, one frame at a time.

Memory does not grow with the horizon: the model keeps the features of the last K frames, and `stream` yields one frame
after the other.

A model may prefer another grid of the same box to that of the input frames (`working_grid`). Then the forecast runs on
that grid, and only the frames that are yielded are resampled: finer scales stay in the forecast.

Axes: b trajectory, t frame, c state field, k context field, then the grid.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base.device import choose_device
from ssno.forecasting.ensemble import Ensemble
from ssno.forecasting.forecaster import Forecaster, Frame, rescaled
from ssno.forecasting.metrics import State, apply_mask
from ssno.transforms.periodic import resample

Context = Float[Tensor, "b s k *grid"] | Callable[[int], Float[Tensor, "b k *grid"]] | None


def rollout(
    forecaster: Forecaster | Ensemble,
    first_frames: State,
    steps: int,
    *,
    context: Context = None,
    spacing: Sequence[float] | None = None,
    device: str | torch.device | None = None,
    watch: Callable[[Frame], bool] | None = None,
    guard: Callable[[Frame], Frame] | None = None,
) -> Float[Tensor, "b made c *grid"]:
    """Forecast `steps` frames after the input frames, returned on the device of those.

    Args:
        forecaster: what `train` returned or `load_forecaster` read.
        first_frames: input frames (batch, time, channel, *grid) in physical units, the newest last.
        steps: how many frames to predict.
        context: context fields at the times of the input and the predicted frames, if the model uses any.
        spacing: grid spacing, if it differs from the training grid.
        device: move the forecaster there first (`ssno.base.device`); by default it computes where it is.
        watch: called with every predicted frame; ends the forecast by returning True (`ForecastWatch.look_at`).
        guard: replaces every predicted frame before it is fed back (`EnergyGuard`).
    """
    if steps < 1:
        raise ValueError(f"`steps` must be at least 1, got {steps}.")
    if device is not None:
        forecaster.to(choose_device(device))
    frames = stream(forecaster, first_frames, context=context, spacing=spacing, guard=guard)
    made = []
    for frame in islice(frames, steps):
        made.append(frame)
        if watch is not None and watch(frame):
            break
    return torch.stack(made, dim=1).to(first_frames.device)


def stream(
    forecaster: Forecaster | Ensemble,
    first_frames: State,
    *,
    context: Context = None,
    spacing: Sequence[float] | None = None,
    guard: Callable[[Frame], Frame] | None = None,
) -> Iterator[Frame]:
    """Predicted frames one by one, without end (or until `context` ends), on the forecaster's device.

    `context` may be a function of a frame's number, counted from the first input frame: then context fields are read
    one frame at a time, and memory does not grow with the horizon. `guard` takes frames on the grid of the input.
    """
    _check_inputs(forecaster, first_frames, context)
    first_frames = first_frames.to(forecaster.device)
    inputs, fields_on_grid = first_frames.shape[1], context_reader(first_frames, context)
    units, grid = forecaster.units(first_frames), first_frames.shape[3:]
    working = forecaster.working_grid(grid, spacing=spacing)
    if working != tuple(grid):
        if guard is not None:
            raise ValueError(
                f"`guard` needs a forecast on the grid of its input, but this model forecasts {tuple(grid)} points on "
                f"{working}. Resample the input to that grid, or forecast without `guard`."
            )
        first_frames = resample(first_frames, working)
        assert spacing is not None, "another grid than that of training has a spacing"
        spacing = rescaled(spacing, grid, working)

    def fields(first: int, stop: int) -> Tensor:
        return resample(fields_on_grid(first, stop), working)

    def encoded(first: int, stop: int) -> Tensor:
        return forecaster.encode_context(fields(first, stop)).to(forecaster.dtype)

    ahead = 1 if forecaster.context_time == "target" else 0
    was_training = forecaster.training
    forecaster.eval()
    try:
        with torch.inference_mode():
            frames = units.encode(first_frames).to(forecaster.dtype)  # frames are fed back in the model's own numbers
            if forecaster.mask is not None:
                frames = apply_mask(frames, forecaster.find_mask(fields(0, inputs)))
            earlier = encoded(ahead, ahead + inputs - 1)
            # The context of the newest frame is passed to the first step; here it only has to have the right shape.
            placeholder = earlier[:, -1:] if inputs > 1 else encoded(0, 1)
            state: Any = forecaster.start(frames, torch.cat([earlier, placeholder], dim=1), spacing=spacing)
            frame = frames[:, -1]
        for number in count(inputs):
            with torch.inference_mode():
                now = encoded(number - 1 + ahead, number + ahead)[:, 0]
                frame, state = forecaster.step(frame, now, state)
                if guard is not None:
                    physical = guard(units.decode(frame[:, None])[:, 0])
                    frame = units.encode(physical[:, None])[:, 0].to(forecaster.dtype)
                if forecaster.mask is not None:
                    frame = apply_mask(frame[:, None], forecaster.find_mask(fields(number, number + 1)))[:, 0]
                decoded = resample(units.decode(frame[:, None])[:, 0].to(first_frames.dtype), grid)
                if forecaster.mask is not None:
                    mask = forecaster.find_mask(fields_on_grid(number, number + 1))
                    decoded = apply_mask(decoded[:, None], mask)[:, 0]
            yield decoded
    finally:
        forecaster.train(was_training)


def context_reader(first_frames: State, context: Context) -> Callable[[int, int], Tensor]:
    """A function (first, stop) -> (b, stop - first, k, *grid) that returns the context fields of some frames."""
    if context is None:
        return lambda first, stop: first_frames.new_zeros(
            first_frames.shape[0], stop - first, 0, *first_frames.shape[3:]
        )
    if not isinstance(context, Tensor):
        return lambda first, stop: torch.stack(
            [context(number) for number in range(first, max(stop, first + 1))], dim=1
        )[:, : stop - first].to(first_frames.device)

    def of_tensor(first: int, stop: int) -> Tensor:
        if stop > context.shape[1]:
            raise ValueError(
                f"`context` covers {context.shape[1]} frames, but that of frame {stop} is needed. "
                "Pass the context fields at the times of all frames to be predicted."
            )
        return context[:, first:stop].to(first_frames.device)

    return of_tensor


def _check_inputs(forecaster: Forecaster | Ensemble, first_frames: Tensor, context: Context) -> None:
    """Refuse frames that do not fit the forecaster, before anything is computed."""
    fields, known = forecaster.normalisers.state.fields, forecaster.normalisers.context.fields
    if first_frames.ndim < 4 or first_frames.shape[2] != len(fields):
        raise ValueError(
            f"`first_frames` must be (batch, time, channel, *grid) with the fields {fields}, "
            f"got shape {tuple(first_frames.shape)}."
        )
    if first_frames.shape[1] < max(1, forecaster.frames_as_channels):
        raise ValueError(
            f"`first_frames` has {first_frames.shape[1]} frames, but this model needs at least "
            f"{max(1, forecaster.frames_as_channels)}."
        )
    channels = context.shape[2] if isinstance(context, Tensor) else 0 if context is None else len(known)
    if channels != len(known):
        raise ValueError(
            f"`context` must be (batch, time, channel, *grid) with the fields {known}, "
            f"got {f'shape {tuple(context.shape)}' if isinstance(context, Tensor) else 'nothing'}."
        )
